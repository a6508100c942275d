"""Conversion of user-supplied schemas (dictionaries, texts, paths) to JSON text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path

from formalm.automata.text_of_bytes import text_bytes
from formalm.errors import ArgumentError, LanguageError, LimitError, lone_surrogate

__all__ = ["resource_texts", "schema_text"]

#: Maximum nesting of dictionaries and lists, as in the JSON reader.
MAX_NESTING = 500


def explain_unread(error: LanguageError, schema: object) -> None:
    """Adds a hint to the error of a string that is not JSON."""
    if not isinstance(schema, str) or error.hint is not None:
        return
    text = schema.strip()
    name = text.rpartition("/")[2].rpartition("\\")[2]
    stem, dot, suffix = name.rpartition(".")
    if "\n" in text or any(one in text for one in '{}[]"') or not (stem and dot and suffix):
        return
    if suffix.isalnum() and suffix[0].isalpha():
        read = "TypeScript(Path(path).read_text())" if suffix == "ts" else "JsonSchema(Path(path))"
        error.hint = f"this is a path, not a schema: read the file with {read}"


def schema_text(schema: object) -> str:
    """Returns a schema as JSON text, with numbers unchanged."""
    if isinstance(schema, str):
        if text_bytes(schema) is None:
            message, advice, span = lone_surrogate("schema", schema)
            raise LanguageError(message, source=schema, span=span, hint=advice)
        return schema
    if isinstance(schema, Path):
        try:
            return schema.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ArgumentError(f"cannot read {str(schema)!r}: {reason}") from error
    if not isinstance(schema, Mapping | bool):
        kind, hint = type(schema).__name__, None
        if isinstance(schema, type):
            hint = f"write PythonType({schema.__name__}) for the JSON of a Python type"
        raise ArgumentError(f"schema must be a dict, bool, str or Path, got {kind}", hint=hint)
    return _encoded(schema) or _text(schema)


def resource_texts(resources: object) -> tuple[tuple[str, str], ...]:
    """Returns schemas by URI as JSON texts."""
    if resources is None:
        return ()
    if not isinstance(resources, Mapping):
        raise ArgumentError(
            f"resources must map URIs to schemas, got {type(resources).__name__}",
            hint='pass a dictionary, as in {"https://a.example/b": {"type": "null"}}',
        )
    for uri in resources:
        if not isinstance(uri, str):
            raise ArgumentError(f"keys of resources must be URIs, got {uri!r}")
    return tuple((uri, schema_text(one)) for uri, one in resources.items())


def _encoded(schema: object) -> str | None:
    """Returns the text of a value of the standard types, encoded in one call; None for others."""
    try:
        text = json.dumps(schema, allow_nan=False, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None
    # Lone surrogates, deep nesting, and what the encoder converts are read part by part.
    if "\\ud" in text or text.count("{") + text.count("[") > MAX_NESTING:
        return None
    return text if json.loads(text) == schema else None


def _text(schema: object) -> str:
    """Returns the text of a value without recursion, which Python limits."""
    parts: list[str] = []
    #: Open containers: the remaining items of each, and its closing bracket.
    above: list[tuple[Iterator[tuple[str, object]], str]] = []
    path: list[int] = []
    left: Iterator[tuple[str, object]] = iter((("", schema),))
    end = ""
    while True:
        before, value = next(left, ("", left))
        if value is left:
            parts.append(end)
            if not above:
                return "".join(parts)
            left, end = above.pop()
            path.pop()
            continue
        parts.append(before)
        if not isinstance(value, Mapping | list | tuple):
            parts.append(_scalar(value))
            continue
        if id(value) in path:
            raise ArgumentError(
                "schema must be a finite value, and contains itself",
                hint="refer to parts with $ref",
            )
        path.append(id(value))
        if len(path) > MAX_NESTING:
            raise LimitError("levels of nesting", len(path), MAX_NESTING)
        above.append((left, end))
        parts.append("{" if isinstance(value, Mapping) else "[")
        left, end = _inside(value), "}" if isinstance(value, Mapping) else "]"


def _inside(
    value: Mapping[object, object] | list[object] | tuple[object, ...],
) -> Iterator[tuple[str, object]]:
    """Returns the contents of a container, each with the text before it."""
    comma = ""
    if isinstance(value, Mapping):
        for name, member in value.items():
            if not isinstance(name, str):
                raise ArgumentError(f"property names of a schema must be strings, got {name!r}")
            yield f"{comma}{_scalar(name)}:", member
            comma = ","
    else:
        for item in value:
            yield comma, item
            comma = ","


def _scalar(value: object) -> str:
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if isinstance(value, str) and text_bytes(value) is None:
        message, hint, _ = lone_surrogate("strings of a schema", value)
        raise LanguageError(message, hint=hint)
    if value is None or isinstance(value, bool | int | float | str):
        try:
            return json.dumps(value, allow_nan=False)
        except ValueError as error:
            if isinstance(value, int):
                message = f"an integer of {value.bit_length()} bits is too long to write"
                hint = "numbers of schemas have some thousand digits at most"
                raise ArgumentError(message, hint=hint) from error
            raise ArgumentError(f"values of a schema must be JSON, got {value!r}") from error
    raise ArgumentError(f"values of a schema must be JSON, got {type(value).__name__}")
