"""All tokenizations of a text: exact count, and lazy enumeration by number of tokens."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from formalm.errors import ArgumentError, LimitError, VocabularyError
from formalm.vocabulary.loaded_vocabulary import token_ids as _integers
from formalm.vocabulary.tokenizer_libraries import checked_text

if TYPE_CHECKING:
    from formalm.vocabulary.canonical_tokens import CanonicalTokens

__all__ = ["BYTE_LIMIT", "Spellings", "Tokenizations"]

BYTE_LIMIT = 20_000


class Spellings:
    """The ids of a vocabulary by their bytes."""

    def __init__(self, tokens: Sequence[bytes | None]) -> None:
        self.ids: dict[bytes, list[int]] = {}
        for token_id, token in enumerate(tokens):
            if token:
                self.ids.setdefault(token, []).append(token_id)
        self.lengths = sorted({len(token) for token in self.ids})

    def steps(self, text: bytes) -> list[list[tuple[int, int]]]:
        """Returns, for every position of a text, end and id of each token that fits, ascending."""
        rows = []
        for start in range(len(text)):
            row = []
            for length in self.lengths:
                end = start + length
                if end > len(text):
                    break
                row += [(token_id, end) for token_id in self.ids.get(text[start:end], ())]
            rows.append([(end, token_id) for token_id, end in sorted(row)])
        return rows


class Tokenizations:
    """The token sequences that spell one text, each a tuple of ids.

    Created by :meth:`formalm.Vocabulary.tokenizations`. Iteration is lazy and without repetition.
    The canonical sequence comes first, if the text has one and the vocabulary knows it. The others
    follow by number of tokens, then by ids. ``len`` is :attr:`count` if that fits into an index.

    Attributes
    ----------
    text
        The bytes that are spelled.
    """

    def __init__(
        self,
        vocabulary: CanonicalTokens,
        spellings: Spellings,
        text: str | bytes,
        byte_limit: int,
    ) -> None:
        self.text = _bytes(text)
        if type(byte_limit) is not int or byte_limit < 0:
            raise ArgumentError(f"byte_limit must be a number of bytes, got {byte_limit!r}")
        if len(self.text) > byte_limit:
            raise LimitError("bytes of text", len(self.text), byte_limit, "raise byte_limit")
        self._vocabulary = vocabulary
        self._steps = spellings.steps(self.text)

    @cached_property
    def count(self) -> int:
        """The exact number of sequences."""
        counts = [0] * len(self.text) + [1]
        for start in range(len(self.text) - 1, -1, -1):
            counts[start] = sum(counts[end] for end, _ in self._steps[start])
        return counts[0]

    @cached_property
    def canonical(self) -> tuple[int, ...] | None:
        """The tokenizer's own sequence; None if it cannot produce this text.

        Raises
        ------
        VocabularyError
            If the vocabulary does not know its canonical tokens, with the reason.
        """
        encoder = self._vocabulary.encoder()
        try:
            text = self.text.decode()
        except UnicodeDecodeError:
            return None
        if encoder.marks_spaces and "\u2581" in text:
            return None
        own = encoder.encode(text)
        return None if own is None else tuple(own)

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        try:
            first = self.canonical
        except VocabularyError:
            first = None
        if first is not None:
            yield first
        for token_ids in self._in_order():
            if token_ids != first:
                yield token_ids

    def _in_order(self) -> Iterator[tuple[int, ...]]:
        """Yields the sequences by number of tokens, then by ids."""
        wanted = self._numbers[0]
        for tokens in range(len(self.text) + 1):
            if wanted >> tokens & 1:
                yield from self._of(tokens)

    @cached_property
    def _numbers(self) -> list[int]:
        """Returns, for every position, the possible numbers of remaining tokens, as a bit set."""
        numbers = [0] * len(self.text) + [1]
        for start in range(len(self.text) - 1, -1, -1):
            for end, _ in self._steps[start]:
                numbers[start] |= numbers[end] << 1
        return numbers

    def _of(self, tokens: int) -> Iterator[tuple[int, ...]]:
        """Yields the sequences of a number of tokens, with an explicit stack: texts may be long."""
        way: list[int] = []
        rows = [iter(self._steps[0])] if tokens else []
        if not tokens:
            yield ()
        while rows:
            step = next(rows[-1], None)
            if step is None:
                rows.pop()
                if way:
                    way.pop()
                continue
            end, token_id = step
            left = tokens - len(way) - 1
            if not self._numbers[end] >> left & 1:
                continue
            if left:
                way.append(token_id)
                rows.append(iter(self._steps[end]))
            else:
                yield (*way, token_id)

    def __len__(self) -> int:
        if self.count > sys.maxsize:
            raise LimitError("tokenizations", self.count, sys.maxsize, "`count` is exact")
        return self.count

    def __bool__(self) -> bool:
        return self.count > 0

    def __contains__(self, token_ids: object) -> bool:
        ids, core = _integers(token_ids), self._vocabulary.core
        tokens = [core.token_bytes(each) if 0 <= each < len(core) else None for each in ids]
        return None not in tokens and b"".join(token or b"" for token in tokens) == self.text

    def __repr__(self) -> str:
        return f"<Tokenizations of {self.text[:40]!r}{'…' if len(self.text) > 40 else ''}>"


def _bytes(text: object) -> bytes:
    if isinstance(text, (bytes, bytearray)):
        return bytes(text)
    return checked_text(text).encode()
