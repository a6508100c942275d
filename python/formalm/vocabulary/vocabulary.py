"""The vocabulary: which bytes every token id stands for, and which ids end a sequence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import index
from os import PathLike
from typing import Any

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary import encoding, files
from formalm.vocabulary.canonical import NonCanonical, load_encoder, non_canonical

__all__ = ["Vocabulary"]

Encode = Callable[[str], Sequence[int]]


class Vocabulary:
    """Token id → bytes, with the ids that end a sequence.

    Build one with :meth:`from_tokenizer_json`, :meth:`from_tokens` or :meth:`load`. Vocabularies
    are immutable, picklable, shared freely between threads, and equal when every mask over them is
    (same token bytes, same end tokens): see :attr:`fingerprint`.

    Examples
    --------
    >>> vocabulary = Vocabulary.from_tokens([b"a", b".", b".2", b"1", None], end_token_ids=[4])
    >>> len(vocabulary), vocabulary.token_bytes(2), vocabulary.decode([3, 2])
    (5, b'.2', b'1.2')
    """

    __slots__ = ("_encode", "_encoder", "_tokenizer_json", "core")

    def __init__(
        self,
        core: _core.Vocabulary,
        *,
        tokenizer_json: bytes | None = None,
        encode: Encode | None = None,
    ) -> None:
        self.core = core
        self._tokenizer_json = tokenizer_json
        self._encode = encode
        self._encoder: _core.Encoder | None = None

    @classmethod
    def from_tokens(
        cls,
        tokens: Sequence[bytes | None],
        end_token_ids: Iterable[int] = (),
        encode: Encode | None = None,
    ) -> Vocabulary:
        """A vocabulary from the bytes of every token, in order of ids.

        Parameters
        ----------
        tokens
            One entry an id; None marks a special token, an id without bytes.
        end_token_ids
            Ids that end a sequence.
        encode
            Text → token ids, if the vocabulary is to tokenize.
        """
        try:
            entries = list(tokens)
        except TypeError:
            kind = type(tokens).__name__
            raise VocabularyError(f"tokens are a list of bytes, not {kind}") from None
        for position, token in enumerate(entries):
            if token is not None and not isinstance(token, bytes):
                kind = type(token).__name__
                raise VocabularyError(
                    f"token {position} is {kind}, not bytes",
                    hint="text tokens: [t.encode() for t in tokens]",
                )
        return cls(_core.Vocabulary.from_tokens(entries, _ids(end_token_ids)), encode=encode)

    @classmethod
    def from_tokenizer_json(
        cls,
        source: str | PathLike[str] | bytes | Mapping[str, Any],
        end_token_ids: Iterable[int | str] | int | str | None = None,
    ) -> Vocabulary:
        """A vocabulary from a Hugging Face ``tokenizer.json``.

        Parameters
        ----------
        source
            A path (``.gz`` is unpacked), the file's text or bytes, or the parsed object. A string
            that starts with ``{`` is the text itself.
        end_token_ids
            Ids or names, such as ``"<|endoftext|>"``, of the tokens that end a sequence. The file
            does not say which they are.

        Raises
        ------
        VocabularyError
            If the file is unreadable, of a kind we do not know, or lacks a token that was named.
        """
        data = files.read_tokenizer_json(source)
        core = _core.Vocabulary.from_tokenizer_json(data)
        if end_token_ids is not None:
            several = [end_token_ids] if isinstance(end_token_ids, (int, str)) else end_token_ids
            core = core.with_end_token_ids(_ids([_named(core, value) for value in several]))
        return cls(core, tokenizer_json=data)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the prepared vocabulary, its tokenizer with it; :meth:`load` reads it faster than
        the original. A function given as ``encode`` is not saved.
        """
        files.write_saved(path, self.core.save(), self._tokenizer_json)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Vocabulary:
        """Read what :meth:`save` wrote."""
        prepared, tokenizer_json = files.read_saved(path)
        return cls(_core.Vocabulary.from_saved(prepared), tokenizer_json=tokenizer_json)

    def __len__(self) -> int:
        return len(self.core)

    def token_bytes(self, token_id: int) -> bytes | None:
        """The bytes of a token; None for a special token."""
        return self.core.token_bytes(token_id)

    def tokens(self) -> list[bytes | None]:
        """The bytes of every token, in order of ids."""
        return self.core.all_token_bytes()

    def decode(self, token_ids: Iterable[int]) -> bytes:
        """The bytes of a token sequence; special tokens add none."""
        return b"".join(self.core.token_bytes(token_id) or b"" for token_id in token_ids)

    def decode_text(self, token_ids: Iterable[int]) -> str:
        """The text of a token sequence; bytes that are not UTF-8 become U+FFFD."""
        return self.decode(token_ids).decode(errors="replace")

    def encode(self, text: str) -> list[int]:
        """The tokenizer's own token ids of ``text``, none added in front or behind.

        Text is only text: the name of a special token, written in it, does not become that token.

        Raises
        ------
        VocabularyError
            If the vocabulary came without a tokenizer.
        """
        if not isinstance(text, str):
            raise ArgumentError(f"only a str is encoded, not {type(text).__name__}")
        if self._encode is None:
            if self._tokenizer_json is None:
                raise VocabularyError(
                    "this vocabulary has no tokenizer, so it cannot encode text",
                    hint="pass token ids, or give from_tokens(..., encode=function)",
                )
            self._encode = encoding.tokenizers_encode(self._tokenizer_json)
        return [index(token_id) for token_id in self._encode(text)]

    def encoder(self) -> _core.Encoder:
        """The tokenizer taken apart, for canonical tokens; made and checked when first asked for.

        Raises
        ------
        VocabularyError
            If there is no ``tokenizer.json``, or one that we cannot follow exactly.
        """
        if self._encoder is None:
            if self._tokenizer_json is None:
                raise VocabularyError(
                    "canonical tokens need the tokenizer's own file",
                    hint="Vocabulary.from_tokenizer_json(...) keeps it",
                )
            encode = encoding.tokenizers_encode(self._tokenizer_json)
            self._encoder = load_encoder(self._tokenizer_json, self.core, encode)
        return self._encoder

    def merges_like(self, other: Vocabulary) -> bool:
        """Whether both have the same tokenizer file, so that canonical tokens are the same."""
        return self._tokenizer_json == other._tokenizer_json

    def is_canonical(self, token_ids: Iterable[int]) -> bool:
        """Whether the tokenizer itself writes the tokens' text in these tokens.

        Special tokens separate texts. Where the tokenizer puts a space in front of every text,
        tokens are judged as the continuation of a text: as they spell it, with that space.

        Raises
        ------
        VocabularyError
            As :meth:`encoder`.
        """
        return self.canonical_error(token_ids) is None

    def canonical_error(self, token_ids: Iterable[int]) -> NonCanonical | None:
        """Where and why tokens are not canonical; None if they are. See :meth:`is_canonical`."""
        encoder = self.encoder()
        ids, start = _ids(token_ids), 0
        for end in range(len(ids) + 1):
            if end < len(ids) and self.core.token_bytes(ids[end]) is not None:
                continue
            error = non_canonical(encoder, self.core, ids[start:end])
            if error is not None:
                return replace(error, index=start + error.index)
            start = end + 1
        return None

    @property
    def can_encode(self) -> bool:
        """Whether :meth:`encode` has a tokenizer."""
        return self._encode is not None or self._tokenizer_json is not None

    @property
    def end_token_ids(self) -> tuple[int, ...]:
        """Ids that end a sequence."""
        return tuple(self.core.end_token_ids)

    @property
    def special_token_ids(self) -> tuple[int, ...]:
        """Ids without bytes."""
        return tuple(self.core.special_token_ids)

    @property
    def special_tokens(self) -> dict[str, int]:
        """Names of the special tokens, where the file gave them."""
        return dict(self.core.special_tokens)

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know about how the tokens were read."""
        return tuple(self.core.notes)

    @property
    def fingerprint(self) -> str:
        """Hex digest of token bytes and end tokens: equal fingerprint, equal masks."""
        return self.core.fingerprint

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Vocabulary):
            return NotImplemented
        return self is other or self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __reduce__(self) -> tuple[object, ...]:
        encode = None if self._tokenizer_json is not None else self._encode
        return _restore, (self.core.save(), self._tokenizer_json, encode)

    def __repr__(self) -> str:
        ends = list(self.end_token_ids)
        return f"<Vocabulary of {len(self):,} tokens, end tokens {ends}, {self.fingerprint[:8]}>"


def _named(core: _core.Vocabulary, value: int | str) -> int:
    """The id of a token given by name; anything else as it is."""
    if not isinstance(value, str):
        return value
    special = core.special_tokens
    if value in special:
        return special[value]
    try:
        return core.all_token_bytes().index(value.encode())
    except ValueError:
        raise VocabularyError(f"the tokenizer has no token {value!r}") from None


def _restore(prepared: bytes, tokenizer_json: bytes | None, encode: Encode | None) -> Vocabulary:
    core = _core.Vocabulary.from_saved(prepared)
    return Vocabulary(core, tokenizer_json=tokenizer_json, encode=encode)


def _ids(values: Iterable[int]) -> list[int]:
    try:
        ids = [index(value) for value in values]
    except TypeError as error:
        raise VocabularyError(f"a token id is an integer: {error}") from None
    if any(not 0 <= token_id < 1 << 32 for token_id in ids):
        raise VocabularyError("a token id is from 0 to 4,294,967,295")
    return ids
