"""Reading tokenizer files, and the format of a saved vocabulary.

A saved vocabulary is one line of JSON, ``{"format": "formalm-vocabulary", "version": 1, "prepared":
n, "tokenizer": m}`` and then ``n`` bytes of the prepared vocabulary and ``m`` of the gzipped
``tokenizer.json``. Nothing in it is executed.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Mapping
from pathlib import Path

from formalm.errors import ArgumentError, LimitError, VocabularyError

__all__ = ["read_saved", "read_tokenizer_json", "write_saved"]

FORMAT = "formalm-vocabulary"
VERSION = 1
MAX_TOKENIZER_BYTES = 1 << 28


def read_tokenizer_json(source: object) -> bytes:
    """The bytes of a ``tokenizer.json`` given as path, text, bytes or parsed object."""
    if isinstance(source, Mapping):
        return json.dumps(source).encode()
    if isinstance(source, bytes):
        return _unpack(source, "the tokenizer") if source[:2] == b"\x1f\x8b" else source
    if isinstance(source, str) and source.lstrip()[:1] == "{":
        return source.encode()
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(f"a tokenizer is a path, text, bytes or a dict, not {source!r:.80}")
    path = Path(source)
    if path.is_dir():
        path /= "tokenizer.json"
    data = _read(path)
    return _unpack(data, str(path)) if data[:2] == b"\x1f\x8b" else data


def write_saved(
    path: str | os.PathLike[str], prepared: bytes, tokenizer_json: bytes | None
) -> None:
    """Write a saved vocabulary."""
    packed = b"" if tokenizer_json is None else gzip.compress(tokenizer_json, 6, mtime=0)
    sizes = {"prepared": len(prepared), "tokenizer": len(packed)}
    header = json.dumps({"format": FORMAT, "version": VERSION, **sizes}).encode()
    Path(path).write_bytes(header + b"\n" + prepared + packed)


def read_saved(path: str | os.PathLike[str]) -> tuple[bytes, bytes | None]:
    """The prepared vocabulary and the ``tokenizer.json`` of a saved one."""
    data = _read(Path(path))
    line, newline, body = data.partition(b"\n")
    try:
        header = json.loads(line) if newline and len(line) < 1000 else None
    except ValueError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise VocabularyError(f"{path} is not a saved vocabulary", hint="see Vocabulary.save")
    if header.get("version") != VERSION:
        raise VocabularyError(
            f"{path} has version {header.get('version')}, readable is {VERSION}",
            hint="save it again from the tokenizer file",
        )
    prepared, packed = header.get("prepared"), header.get("tokenizer")
    if not (
        isinstance(prepared, int) and isinstance(packed, int) and prepared + packed == len(body)
    ):
        raise VocabularyError(f"{path} is damaged: its parts do not have the sizes it states")
    return body[:prepared], _unpack(body[prepared:], str(path)) if packed else None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise VocabularyError(f"cannot read {path}: {error.strerror or error}") from None


def _unpack(data: bytes, name: str) -> bytes:
    """Gunzip, with a bound on what a small file may turn into."""
    try:
        stream = zlib.decompressobj(wbits=31)
        text = stream.decompress(data, MAX_TOKENIZER_BYTES + 1)
    except zlib.error as error:
        raise VocabularyError(f"{name} is not a readable gzip file: {error}") from None
    if len(text) > MAX_TOKENIZER_BYTES:
        raise LimitError("bytes of tokenizer file", len(text), MAX_TOKENIZER_BYTES)
    if not stream.eof:
        raise VocabularyError(f"{name} is a gzip file cut short")
    return text
