"""Query files: reading and writing queries as plain data, JSON and TOML.

A file has the label ``formalm-query`` and the version of its format. Defaults are omitted. Nothing
is executed; unknown entries are refused with their place.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any

from formalm.errors import ArgumentError
from formalm.languages.data_reader import DataReader
from formalm.languages.serialization import read_region, region_data, to_data
from formalm.query.decoding_rules import Decoding
from formalm.query.edits_and_weights import Edits
from formalm.query.limits import Limits
from formalm.query.query import Query
from formalm.query.toml import toml_data, toml_key, toml_value

__all__ = ["FORMAT", "VERSION", "from_json", "from_toml", "query_data", "read_query", "to_json"]

FORMAT = "formalm-query"
VERSION = 1
LANGUAGES = ("language", "given", "without")
PLAIN = {
    "event": str,
    "tokenization": str,
    "decoded": str,
    "renormalize": bool,
    "prefix_cost": str,
    "boundary": str,
    "unique": str,
    "max_tokens": int,
}
NUMBER = (int, float)


def query_data(query: Query, *, language: object = None) -> dict[str, Any]:
    """See :meth:`formalm.Query.to_data`.

    ``language``, if given, is written in place of the query's own: the caller's description of a
    language that cannot be written as data. It is not read again.
    """
    if query.keep is not None:
        raise ArgumentError(
            "cannot serialize a query with a Python function in keep",
            hint="exclude the strings by a language: without=...",
        )
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    for name in PLAIN:
        default = Query.__dataclass_fields__[name].default
        if getattr(query, name) != default:
            data[name] = getattr(query, name)
    if query.bos != "auto":
        data["bos"] = "none" if query.bos is None else query.bos
    weights = query.prefix_weights
    if weights != "strings":
        data["prefix_weights"] = weights if isinstance(weights, str) else dict(weights)
    for name, value in (("decoding", query.decoding), ("limits", query.limits)):
        if value != type(value)():
            data[name] = _changed(value)
    for name in LANGUAGES:
        if name == "language" and language is not None:
            data[name] = language
        elif getattr(query, name) is not None:
            data[name] = to_data(getattr(query, name))
    if query.edits is not None:
        data["edits"] = _edits_data(query.edits)
    return data


def read_query(data: object) -> Query:
    """See :meth:`formalm.Query.from_data`."""
    table = DataReader(data, "query")
    label, version = table.take("format", str), table.take("version", int)
    if label != FORMAT:
        raise ArgumentError(f"the format must be {FORMAT!r}, got {label!r:.60}")
    if version != VERSION:
        raise ArgumentError(f"the version of the query format must be {VERSION}, got {version}")
    options: dict[str, Any] = {}
    for name, kind in PLAIN.items():
        value = table.take(name, kind, None)
        if value is not None:
            options[name] = value
    bos = table.take("bos", (int, str), "auto")
    options["bos"] = None if bos == "none" else bos
    options["prefix_weights"] = table.take("prefix_weights", (str, dict), "strings")
    for name, kind in (("decoding", Decoding), ("limits", Limits)):
        options[name] = _numbers(DataReader(table.take(name, dict, {}), f"query.{name}"), kind)
    for name in LANGUAGES:
        options[name] = table.language(name, optional=name != "language")
    edits = table.take("edits", dict, None)
    options["edits"] = None if edits is None else _read_edits(DataReader(edits, "query.edits"))
    table.close()
    return Query(**options)


def to_json(query: Query) -> str:
    """See :meth:`formalm.Query.to_json`."""
    return json.dumps(query_data(query), ensure_ascii=False, indent=2, allow_nan=False)


def from_json(text: str) -> Query:
    """See :meth:`formalm.Query.from_json`."""
    try:
        data = json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentError(f"the query is not valid JSON: {error}") from None
    return read_query(data)


def to_toml(query: Query) -> str:
    """See :meth:`formalm.Query.to_toml`."""
    data = query_data(query)
    lines = [
        f"{key} = {toml_value(value)}" for key, value in data.items() if type(value) is not dict
    ]
    for key, value in data.items():
        if type(value) is dict:
            lines += ["", f"[{key}]"]
            lines += [f"{toml_key(name)} = {toml_value(part)}" for name, part in value.items()]
    return "\n".join(lines) + "\n"


def from_toml(text: str) -> Query:
    """See :meth:`formalm.Query.from_toml`."""
    try:
        data = toml_data(text)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(f"the query is not valid TOML: {error}") from None
    return read_query(data)


def _changed(value: Decoding | Limits) -> dict[str, Any]:
    """Returns the fields that differ from their defaults; no limit is written as "none"."""
    changed = {}
    for one in fields(value):
        number = getattr(value, one.name)
        if number != one.default:
            changed[one.name] = "none" if number is None else number
    return changed


def _numbers(table: DataReader, kind: Any) -> Any:
    values = {}
    for one in fields(kind):
        value = table.take(one.name, (*NUMBER, str), one.default)
        if isinstance(value, str) and value != "none":
            raise ArgumentError(
                f"{table.where}.{one.name} must be a number or 'none', got {value!r:.60}"
            )
        values[one.name] = None if value == "none" else value
    table.close()
    return kind(**values)


def _edits_data(edits: Edits) -> dict[str, Any]:
    data: dict[str, Any] = {"count": edits.count}
    if edits.alphabet is not None:
        data["alphabet"] = to_data(edits.alphabet)
    if edits.operations != Edits(0).operations:
        data["operations"] = list(edits.operations)
    if edits.region is not None:
        data["region"] = region_data(edits.region)
    return data


def _read_edits(table: DataReader) -> Edits:
    operations = table.take("operations", list, list(Edits(0).operations))
    alphabet = table.language("alphabet", optional=True)
    edits = Edits(table.take("count", int), alphabet, tuple(operations), read_region(table))
    table.close()
    return edits
