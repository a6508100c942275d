"""File access for vocabularies: reading tokenizer files, and the format of saved vocabularies.

A saved vocabulary is one line of JSON followed by its parts, whose sizes the line states: the
prepared vocabulary, the encoder (gzipped), other facts (gzipped JSON), and the verified data for
canonical tokens. Nothing in it is executed. Chat templates are text here and run in a sandbox when
a chat is encoded. The encoder is unpacked when something is encoded.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from formalm import _core
from formalm.errors import ArgumentError, LimitError, VocabularyError
from formalm.vocabulary.chat_template import ChatTemplate
from formalm.vocabulary.loaded_vocabulary import UNKNOWN, Parts
from formalm.vocabulary.tokenizer_libraries import JsonTokenizer, Tokenizer, restored

__all__ = ["read_bytes", "read_saved", "read_tokenizer_json", "write_saved"]

FORMAT = "formalm-vocabulary"
VERSION = 3
READABLE = (1, 2, 3)
MAX_TOKENIZER_BYTES = 1 << 28
MAX_HEADER_BYTES = 1000


def read_tokenizer_json(source: object) -> bytes:
    """Returns the bytes of a ``tokenizer.json`` given as path, text, bytes or parsed object."""
    if isinstance(source, Mapping):
        try:
            return json.dumps(source).encode()
        except (TypeError, ValueError) as error:
            raise VocabularyError(f"tokenizer must be JSON: {error}") from None
    if isinstance(source, bytes):
        return _unpack(source, "the tokenizer") if source[:2] == b"\x1f\x8b" else source
    if isinstance(source, str) and source.lstrip()[:1] == "{":
        return source.encode()
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(f"tokenizer must be a path, str, bytes or dict, got {source!r:.80}")
    path = Path(source)
    if path.is_dir():
        path /= "tokenizer.json"
    data = read_bytes(path)
    return _unpack(data, str(path)) if data[:2] == b"\x1f\x8b" else data


def write_saved(path: str | os.PathLike[str], parts: Parts, tokenizer: bool) -> None:
    """Writes a saved vocabulary, optionally without tokenizer and data for canonical tokens."""
    encoder = parts.tokenizer if tokenizer else None
    if encoder is not None and not encoder.kind:
        raise VocabularyError(
            "this vocabulary encodes with a Python function, which no file can hold",
            hint="save(path, tokenizer=False) leaves it out",
        )
    facts: dict[str, Any] = {"end_source": parts.end_source}
    if not tokenizer and parts.tokenizer is not None:
        facts["cannot_encode"] = "it was saved without its tokenizer"
    elif encoder is None:
        facts["cannot_encode"] = parts.cannot_encode
    if tokenizer and parts.chat is not None:
        facts["chat"] = {"templates": parts.chat.templates, "variables": parts.chat.variables}
    prepared = parts.core.save()
    packed = b"" if encoder is None else gzip.compress(encoder.data, 6, mtime=0)
    facts_bytes = gzip.compress(json.dumps(facts).encode(), 6, mtime=0)
    canonical = parts.encoder if tokenizer else b""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "prepared": len(prepared),
        "tokenizer": len(packed),
        "checksums": _checksums(encoder, packed),
        "kind": encoder.kind if encoder is not None else None,
        "facts": len(facts_bytes),
        "canonical": len(canonical),
    }
    body = prepared + packed + facts_bytes + canonical
    try:
        Path(path).write_bytes(json.dumps(header).encode() + b"\n" + body)
    except TypeError:
        raise ArgumentError(f"path must be a str or Path, got {path!r:.80}") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise VocabularyError(f"cannot write {path}: {reason}") from None


def read_saved(path: str | os.PathLike[str]) -> Parts:
    """Reads a file of :func:`write_saved`, of this version or an older one."""
    try:
        file = _opened(Path(path))
    except TypeError:
        raise ArgumentError(f"path must be a str or Path, got {path!r:.80}") from None
    with file:
        return _read(file, path)


def _read(file: BinaryIO, path: object) -> Parts:
    line = file.readline(MAX_HEADER_BYTES)
    try:
        header = json.loads(line) if line.endswith(b"\n") else None
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise VocabularyError(f"{path} is not a saved vocabulary", hint="see Vocabulary.save")
    version = header.get("version")
    if type(version) is not int or version not in READABLE:
        raise VocabularyError(
            f"the version of {path} must be 1 to {VERSION}, got {version}",
            hint="save it again from the tokenizer file",
        )
    header = {"facts": 0, "kind": JsonTokenizer.kind, "canonical": 0, **header}
    names = ("prepared", "tokenizer", "facts", "canonical")
    sizes: list[Any] = [header.get(name) for name in names]
    left = os.fstat(file.fileno()).st_size - len(line)
    if not all(type(size) is int and size >= 0 for size in sizes) or sum(sizes) != left:
        raise VocabularyError(f"{path} is damaged: its parts do not have the sizes it states")
    prepared, packed, facts_bytes, canonical = (file.read(size) for size in sizes)
    tokenizer = None
    if packed:
        tokenizer = restored(header["kind"], _packed(packed, header.get("checksums"), str(path)))
    parts = Parts(_core.Vocabulary.from_saved(prepared), tokenizer, encoder=canonical)
    return _with_facts(parts, _unpack(facts_bytes, str(path)), path) if facts_bytes else parts


@dataclass(frozen=True)
class _Packed:
    """The description of a tokenizer, gzipped. It is what was written; see :func:`_packed`."""

    packed: bytes
    checksum: bytes
    path: str

    def unpack(self) -> bytes:
        """Returns the description."""
        text = _unpack(self.packed, self.path)
        if _core.checksum(text) != self.checksum:
            raise VocabularyError(f"{self.path} is damaged: its tokenizer is not what was saved")
        return text


def _checksums(encoder: Tokenizer | None, packed: bytes) -> list[str]:
    return [] if encoder is None else [encoder.checksum.hex(), _core.checksum(packed).hex()]


def _packed(packed: bytes, checksums: Any, path: str) -> bytes | _Packed:
    """Returns a description that is unpacked later, if it is what was written."""
    if checksums is None:  # an older file
        return _unpack(packed, path)
    try:
        of_text, of_packed = map(bytes.fromhex, checksums)
    except (TypeError, ValueError):
        of_text = of_packed = b""
    if _core.checksum(packed) != of_packed:
        raise VocabularyError(f"{path} is damaged: its tokenizer is not what was saved")
    return _Packed(packed, of_text, path)


def _with_facts(parts: Parts, facts_bytes: bytes, path: object) -> Parts:
    try:
        facts = json.loads(facts_bytes)
        chat = facts.get("chat")
        made = ChatTemplate(_texts(chat["templates"]), _texts(chat["variables"])) if chat else None
        source = str(facts.get("end_source", UNKNOWN))
        cannot = str(facts.get("cannot_encode", parts.cannot_encode))
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError):
        raise VocabularyError(f"{path} is damaged: its facts cannot be read") from None
    return parts._replace(chat=made, end_source=source, cannot_encode=cannot)


def _texts(value: Any) -> dict[str, str]:
    if not all(isinstance(each, str) for each in value.values()):
        raise TypeError
    return dict(value)


def read_bytes(path: Path) -> bytes:
    """Returns the content of a file."""
    with _opened(path) as file:
        return file.read()


def _opened(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except (OSError, ValueError) as error:  # a path with a zero byte is a ValueError
        reason = getattr(error, "strerror", None) or error
        raise VocabularyError(f"cannot read {path}: {reason}") from None


def _unpack(data: bytes, name: str) -> bytes:
    """Decompresses gzip data, with a bound on the size of the result."""
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
