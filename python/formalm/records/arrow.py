"""Conversion of records to Arrow with nanoarrow: schema, columns, stream and file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from formalm.errors import ArgumentError
from formalm.records.record import Record

__all__ = ["columns", "schema", "stream", "write"]

KINDS = {
    "kind": "string",
    "rank": "int64",
    "text": "string",
    "data": "binary",
    "given": "binary",
    "prompt_token_ids": "ids",
    "given_token_ids": "ids",
    "token_ids": "ids",
    "logprob": "float64",
    "event": "string",
    "prefix_logprob": "float64",
    "suffix_logprob": "float64",
    "token_logprobs": "numbers",
    "ended": "bool",
    "log_weight": "float64",
    "tokenizations": "int64",
    "canonical": "bool",
    "edits": "int64",
    "edit_script": "string",
    "edited": "string",
    "groups": "string",
    "decoding": "string",
    "renormalize": "bool",
    "forwards": "int64",
    "calls": "int64",
    "tokens_computed": "int64",
    "cache_hits": "int64",
    "expansions": "int64",
    "seconds": "float64",
}


def schema() -> Any:
    """Returns the columns as a nanoarrow schema."""
    na = _nanoarrow()
    kinds = {
        "string": na.large_string(),
        "binary": na.large_binary(),
        "int64": na.int64(),
        "float64": na.float64(),
        "bool": na.bool_(),
        "ids": na.large_list(na.int64()),
        "numbers": na.large_list(na.float64()),
    }
    return na.c_schema(na.struct({name: kinds[kind] for name, kind in KINDS.items()}))


def columns(records: Sequence[Record]) -> Any:
    """Returns the records as an array of structs."""
    na, whole = _nanoarrow(), schema()
    children = [
        _column(na, whole.child(place), kind, [_value(record, name) for record in records])
        for place, (name, kind) in enumerate(KINDS.items())
    ]
    return na.c_array_from_buffers(whole, len(records), [None], 0, children=children)


def stream(records: Sequence[Record]) -> Any:
    """Returns the records as a stream of one batch."""
    return _nanoarrow().c_array_stream(columns(records))


def write(records: Sequence[Record], path: str | PathLike[str]) -> None:
    """Writes the records to a file as an Arrow IPC stream."""
    made = stream(records)
    ipc = import_module("nanoarrow.ipc")
    with Path(path).open("wb") as file, ipc.StreamWriter.from_writable(file) as writer:
        writer.write_stream(made)


def _value(record: Record, name: str) -> Any:
    value = getattr(record, name)
    if name == "edit_script":
        return None if value is None else json.dumps([edit._asdict() for edit in value])
    if name == "decoding":
        return json.dumps(asdict(value))
    return json.dumps(dict(value), ensure_ascii=False) if name == "groups" else value


def _column(na: Any, kind: Any, name: str, values: list[Any]) -> Any:
    known = [value is not None for value in values]
    nulls = known.count(False)
    validity = _bits(known) if nulls else None
    if name in ("int64", "float64"):
        numbers = np.array([0 if value is None else value for value in values], dtype=name)
        return na.c_array_from_buffers(kind, len(values), [validity, numbers], nulls)
    if name == "bool":
        bits = _bits([bool(value) for value in values])
        return na.c_array_from_buffers(kind, len(values), [validity, bits], nulls)
    if name in ("ids", "numbers"):
        dtype = "int64" if name == "ids" else "float64"
        items = np.array([one for value in values for one in value], dtype=dtype)
        inner = na.c_array_from_buffers(kind.child(0), len(items), [None, items], 0)
        buffers = [validity, _offsets(map(len, values))]
        return na.c_array_from_buffers(kind, len(values), buffers, nulls, children=[inner])
    parts = [b"" if value is None else _bytes(value) for value in values]
    buffers = [validity, _offsets(map(len, parts)), b"".join(parts)]
    return na.c_array_from_buffers(kind, len(values), buffers, nulls)


def _bytes(value: str | bytes) -> bytes:
    return value.encode(errors="replace") if isinstance(value, str) else value


def _offsets(lengths: Iterable[int]) -> Any:
    return np.concatenate([[0], np.cumsum(list(lengths), dtype=np.int64)]).astype(np.int64)


def _bits(values: list[bool]) -> Any:
    return np.packbits(np.array(values, dtype=bool), bitorder="little")


def _nanoarrow() -> Any:
    try:
        return import_module("nanoarrow")
    except ImportError:
        raise ArgumentError(
            "Arrow output requires the package nanoarrow", hint="pip install 'formalm[arrow]'"
        ) from None
