"""Tokenizers that encode text to token ids, loaded lazily through the vocabulary's own library."""

from __future__ import annotations

import json
import struct
from collections import deque
from collections.abc import Callable, Collection, Sequence
from hashlib import sha256
from operator import index
from typing import Any, Protocol
from weakref import WeakValueDictionary

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError, lone_surrogate

__all__ = [
    "Description",
    "Encode",
    "FunctionTokenizer",
    "JsonTokenizer",
    "PackedDescription",
    "Tokenizer",
    "library_answers",
    "restored",
]

Encode = Callable[[str], Sequence[int]]


class Tokenizer(Protocol):
    """Encodes text to token ids: a description as bytes, and a library that is loaded on demand."""

    @property
    def kind(self) -> str:
        """The name of the kind in saved files; empty if it cannot be saved."""

    @property
    def data(self) -> bytes:
        """The description; together with ``kind``, all that needs to be saved."""

    @property
    def checksum(self) -> bytes:
        """The checksum of the description."""

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without recognizing special tokens."""


class PackedDescription(Protocol):
    """A compressed description of a tokenizer."""

    @property
    def checksum(self) -> bytes:
        """The checksum of the description."""

    def unpack(self) -> bytes:
        """Returns the description."""


class Description:
    """What a tokenizer is made from. That of a saved vocabulary is unpacked when it is needed:
    decoding with a constraint takes none.
    """

    def __init__(self, source: bytes | PackedDescription) -> None:
        self._source = source

    @property
    def data(self) -> bytes:
        """The description as bytes."""
        if not isinstance(self._source, bytes):
            self._source = self._source.unpack()
        return self._source

    @property
    def checksum(self) -> bytes:
        """The checksum of the description."""
        source = self._source
        return _core.checksum(source) if isinstance(source, bytes) else source.checksum


class FunctionTokenizer:
    """A tokenizer that calls a user-defined function."""

    kind = ""
    data = b""
    checksum = b""

    def __init__(self, function: Encode) -> None:
        if not callable(function):
            kind = type(function).__name__
            raise ArgumentError(f"encode must be a function from text to token ids, got {kind}")
        self.function = function

    def encode(self, text: str) -> list[int]:
        """Returns the ids that the function returns."""
        ids = self.function(text)
        try:
            return [index(token_id) for token_id in ids]
        except TypeError:
            raise ArgumentError(
                f"encode must return a list of token ids, got {ids!r:.80}"
            ) from None


class JsonTokenizer(Description):
    """A ``tokenizer.json``, loaded by the ``tokenizers`` package on first use."""

    kind = "tokenizer.json"

    def __init__(self, source: bytes | PackedDescription) -> None:
        super().__init__(source)
        self._text: _Library | None = None
        self._marked: _Library | None = None
        self._plain: dict[frozenset[str], _Library] = {}
        self._added: list[tuple[str, int, bool]] | None = None

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without tokens that the tokenizer would add by itself."""
        if self._text is None:
            # Otherwise "<|endoftext|>" in a user's text would become the end token.
            self._text = _library(self.data, special_is_text=True)
        return self._text.ids(text)

    def encode_marked(self, text: str) -> list[int]:
        """Returns the ids of a text in which the names of special tokens stand for the tokens."""
        if self._marked is None:
            self._marked = _library(self.data, special_is_text=False)
        return self._marked.ids(text)

    def encode_plain(self, text: str, control: Collection[str]) -> list[int]:
        """Returns the ids of a text in which the names of added tokens ``control`` are ordinary
        text.
        """
        key = frozenset(control)
        if key not in self._plain:
            file = json.loads(self.data)
            for token in file["added_tokens"]:
                token["special"] = token.get("special") or token["content"] in key
            data = json.dumps(file).encode()
            self._plain = {key: _library(data, special_is_text=True)}
        return self._plain[key].ids(text)

    def added_tokens(self) -> list[tuple[str, int, bool]]:
        """Returns string, id and special flag of each added token."""
        if self._added is None:
            added = json.loads(self.data).get("added_tokens") or []
            self._added = [(one["content"], one["id"], bool(one.get("special"))) for one in added]
        return self._added


def library_answers(data: bytes) -> list[str] | None:
    """Returns what the ``tokenizers`` package makes of the strings that tell its Unicode version.

    None if the normalizer of the file changes no text.
    """
    probes = _core.Encoder.probes(data)
    if not probes:
        return None
    try:
        from tokenizers import normalizers
    except ImportError:
        raise missing("tokenizers") from None

    def normalizer(kind: str) -> Any:
        name, _, option = kind.partition(".")
        if name == "Precompiled":
            return normalizers.Precompiled(_probing_map())
        options = ("clean_text", "handle_chinese_chars", "strip_accents", "lowercase")
        return getattr(normalizers, name)(**{one: one == option for one in options if option})

    return [normalizer(kind).normalize_str(text) for kind, text in probes]


def _probing_map() -> bytes:
    """Returns a compiled map of characters that replaces ``a + U+0301`` and ``↔ + U+0338`` by x.

    It is a double array: a node is a multiple of 256, and the child for a byte stands at the
    exclusive or of both, with the byte, the offset to the child's own node, and a flag for a value.
    """
    edges = [(0, 0x61, 1), (1, 0xCC, 2), (2, 0x81, 3)]
    edges += [(0, 0xE2, 4), (4, 0x86, 5), (5, 0x94, 6), (6, 0xCC, 7), (7, 0xB8, 8)]
    units = [0] * (256 * 11)
    units[0] = 256 << 10
    for node, byte, child in edges:
        at = 256 * (node + 1) ^ byte
        has_value = child in (3, 8)
        units[at] = (at ^ 256 * (child + 1)) << 10 | has_value << 8 | byte
        if has_value:
            units[256 * (child + 1)] = 1 << 31
    return struct.pack(f"<{len(units) + 1}I", 4 * len(units), *units) + b"x\0"


def restored(kind: str, source: bytes | PackedDescription) -> Tokenizer:
    """Returns a tokenizer from its saved kind and description."""
    if kind == JsonTokenizer.kind:
        return JsonTokenizer(source)
    if kind == "tiktoken":
        from formalm.vocabulary.tiktoken import TiktokenTokenizer

        return TiktokenTokenizer(source)
    if kind == "sentencepiece":
        from formalm.vocabulary.sentencepiece import SentencePieceTokenizer

        return SentencePieceTokenizer(source)
    raise VocabularyError(
        f"it encodes with {kind!r}, which this version does not know", hint="upgrade formalm"
    )


def missing(package: str) -> VocabularyError:
    """Returns the error for a package that encoding needs."""
    return VocabularyError(
        f"encoding this text needs the {package} package", hint=f"pip install {package}"
    )


def _tokenizer(data: bytes) -> Any:
    try:
        from tokenizers import Tokenizer as Library
    except ImportError:
        raise missing("tokenizers") from None
    try:
        tokenizer = Library.from_str(data.decode())
    except Exception as error:  # the package raises bare Exception
        raise VocabularyError(f"tokenizers cannot read this tokenizer: {error}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class _Library:
    """A tokenizer of the ``tokenizers`` package, shared by all vocabularies of one file.

    The package leaks the caches of such an object (up to some megabytes) when it is freed, so
    loading a file many times must not create one each time.
    """

    __slots__ = ("__weakref__", "_tokenizer")

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def ids(self, text: str) -> list[int]:
        """Returns the ids of a text; nothing is added to it."""
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return ids


# Those in use, and the latest, for a vocabulary that is loaded again. Two threads create two at
# worst, so there is no lock that a fork could find held.
_libraries: WeakValueDictionary[tuple[bytes, bool], _Library] = WeakValueDictionary()
_latest: deque[_Library] = deque(maxlen=2)


def _library(data: bytes, *, special_is_text: bool) -> _Library:
    """Returns the package's tokenizer of a file, with special tokens recognized or not."""
    key = sha256(data).digest(), special_is_text
    found = _libraries.get(key)
    if found is None:
        tokenizer = _tokenizer(data)
        tokenizer.encode_special_tokens = special_is_text
        found = _libraries.setdefault(key, _Library(tokenizer))
    if found not in _latest:
        _latest.append(found)
    return found


def checked_text(text: object) -> str:
    """Returns a string that can be encoded as UTF-8; raises otherwise."""
    if not isinstance(text, str):
        raise ArgumentError(f"text must be a str, got {type(text).__name__}")
    try:
        text.encode()
    except UnicodeEncodeError:
        message, hint, _ = lone_surrogate("text", text)
        raise ArgumentError(message, hint=hint) from None
    return text
