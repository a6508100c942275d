"""Records as JSON Lines: one object per line, separated by newline characters only."""

from __future__ import annotations

import base64
import binascii
import json
import math
import sys
from dataclasses import asdict, fields
from typing import Any, NoReturn, get_args

from formalm.automata.text_of_bytes import shown_text
from formalm.errors import ArgumentError
from formalm.languages import Edit
from formalm.languages.data_reader import DataReader
from formalm.query.decoding_rules import Decoding
from formalm.query.query import Event
from formalm.records.record import Record

__all__ = ["FORMAT", "VERSION", "read_line", "record_line", "split_lines"]

FORMAT = "formalm-record"
VERSION = 1
MOST = 1 << 63
FLOAT_MAX = sys.float_info.max
NONE = type(None)
NUMBER = (int, float)
KINDS = ("search", "sample", "score")
BYTES = ("data", "given")
IDS = ("prompt_token_ids", "given_token_ids", "token_ids")
NUMBERS = ("logprob", "prefix_logprob", "log_weight")
COUNTS = {
    "rank": 1,
    "tokenizations": 1,
    "edits": 0,
    **dict.fromkeys(("forwards", "calls", "tokens_computed", "cache_hits", "expansions"), 0),
}
"""Integer fields, and the minimum of each."""
PLAIN: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "text": (str,),
    "ended": (bool,),
    "event": (str, NONE),
    "canonical": (bool, NONE),
    "edited": (str, NONE),
    "renormalize": (bool,),
}


def split_lines(text: str) -> list[str]:
    """Splits text at newline characters only; no JSON string contains one."""
    lines = text.split("\n")
    return lines[:-1] if not lines[-1] else lines


def record_line(record: Record) -> str:
    """Returns a record as one line, without a newline."""
    row: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    row |= {name: getattr(record, name) for name in Record.__dataclass_fields__}
    for name in BYTES:
        row[name] = base64.b64encode(row[name]).decode()
    for name in NUMBERS:
        row[name] = _written(row[name])
    row["token_logprobs"] = [_written(value) for value in record.token_logprobs]
    row["decoding"] = asdict(record.decoding)
    row["groups"] = dict(record.groups)
    return json.dumps(row, ensure_ascii=False, allow_nan=False)


def _written(value: float | None) -> float | str | None:
    """Returns a number as JSON, which has no infinity."""
    return "-inf" if value == -math.inf else value


def read_line(line: str) -> Record:
    """Returns the record of a line.

    Raises
    ------
    ArgumentError
        With the name of the field that is missing or invalid.
    """
    try:
        data = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ArgumentError(str(error)) from None
    table = DataReader(data, "record")
    label, version = table.take("format", str), table.take("version", int)
    if (label, version) != (FORMAT, VERSION):
        found = f"{label!r:.60}, version {version!r:.20}"
        raise ArgumentError(f"the format must be {FORMAT!r}, version {VERSION}, got {found}")
    row: dict[str, Any] = {name: table.take(name, kind) for name, kind in PLAIN.items()}
    if row["kind"] not in KINDS:
        raise ArgumentError(
            f"record.kind must be one of {', '.join(KINDS)}, got {row['kind']!r:.60}"
        )
    if row["event"] not in (None, *get_args(Event)):
        raise ArgumentError(f"record.event must be an event, got {row['event']!r:.60}")
    row |= {name: _bytes(table, name) for name in BYTES}
    if row["text"] != shown_text(row["data"]):
        raise ArgumentError(f"record.text must be record.data decoded, got {row['text']!r:.60}")
    row |= {name: tuple(_ids(table, name)) for name in IDS}
    row |= {name: _count(table, name, least) for name, least in COUNTS.items()}
    for name in NUMBERS:
        value = table.take(name, (*NUMBER, str, *([NONE] if name == "log_weight" else [])))
        row[name] = None if value is None else _number(value, f"record.{name}")
    listed = table.items("token_logprobs")
    row["token_logprobs"] = tuple(_number(value, where) for where, value in listed)
    if len(row["token_logprobs"]) != len(row["token_ids"]) + row["ended"]:
        raise ArgumentError(
            "record.token_logprobs must have one entry per token of token_ids, plus one for an"
            " end token"
        )
    row["seconds"] = _number(table.take("seconds", NUMBER), "record.seconds")
    row["decoding"] = _decoding(DataReader(table.take("decoding", dict), "record.decoding"))
    row["edit_script"], row["groups"] = _script(table), _groups(table)
    table.close()
    return Record(**row)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _bytes(table: DataReader, name: str) -> bytes:
    digits = table.take(name, str)
    try:
        return base64.b64decode(digits, validate=True)
    except (binascii.Error, ValueError):
        raise ArgumentError(f"{table.where}.{name} must be base64, got {digits!r:.60}") from None


def _ids(table: DataReader, name: str) -> list[int]:
    found = []
    for where, value in table.items(name):
        if type(value) is not int or not 0 <= value < MOST:
            raise ArgumentError(f"{where} must be a token id, got {value!r:.60}")
        found.append(value)
    return found


def _count(table: DataReader, name: str, least: int) -> int | None:
    count: int | None = table.take(name, (int, NONE) if name == "edits" else int)
    if count is not None and not least <= count < MOST:
        raise ArgumentError(
            f"{table.where}.{name} must be an integer of at least {least}, got {count!r:.60}"
        )
    return count


def _number(value: Any, where: str) -> float:
    """Returns a finite float or minus infinity."""
    if value == "-inf":
        return -math.inf
    number = isinstance(value, NUMBER) and not isinstance(value, bool)
    if not number or not -FLOAT_MAX <= value <= FLOAT_MAX:
        raise ArgumentError(f"{where} must be a number or '-inf', got {value!r:.60}")
    return float(value)


def _decoding(table: DataReader) -> Decoding:
    kind = (*NUMBER, NONE)
    values = {one.name: table.take(one.name, kind, one.default) for one in fields(Decoding)}
    table.close()
    try:
        return Decoding(**values)
    except ArgumentError as error:
        raise ArgumentError(f"{table.where}: {error}") from None


def _script(table: DataReader) -> tuple[Edit, ...] | None:
    listed = table.take("edit_script", (list, NONE))
    if listed is None:
        return None
    wanted = (str, int, int, str, str)
    for value in listed:
        good = isinstance(value, list) and tuple(map(type, value)) == wanted
        if not good or value[0] not in ("insert", "delete", "substitute"):
            raise ArgumentError(
                f"{table.where}.edit_script must contain edits only, got {value!r:.60}"
            )
    return tuple(Edit(*value) for value in listed)


def _groups(table: DataReader) -> dict[str, str | None]:
    groups: dict[str, str | None] = table.take("groups", dict)
    for name, value in groups.items():
        if not isinstance(value, (str, NONE)):
            raise ArgumentError(
                f"{table.where}.groups must map names to strings, got {name!r:.60}: {value!r:.60}"
            )
    return groups
