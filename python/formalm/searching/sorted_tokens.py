"""The vocabulary's tokens sorted by bytes, so that tokens with a common prefix form a slice."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from formalm.vocabulary import Vocabulary

__all__ = ["SortedTokens"]

Rows = npt.NDArray[np.int64]


class SortedTokens:
    """Token ids sorted by bytes: the tokens that start with given bytes form one slice.

    A *rank* is an index in this order. *Rows* are a sorted array of ranks, the tokens under
    consideration.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        pairs = sorted((data, i) for i, data in enumerate(vocabulary.tokens()) if data)
        self.token_ids: Rows = np.array([token_id for _, token_id in pairs], dtype=np.int64)
        self.lengths: Rows = np.array([len(data) for data, _ in pairs], dtype=np.int64)
        self._offsets: Rows = np.cumsum(self.lengths) - self.lengths
        self._blob = np.frombuffer(b"".join(data for data, _ in pairs), dtype=np.uint8)
        self._rank = np.full(len(vocabulary), -1, dtype=np.int64)
        self._rank[self.token_ids] = np.arange(len(pairs))

    @staticmethod
    @lru_cache(maxsize=4)
    def of(vocabulary: Vocabulary) -> SortedTokens:
        """Returns the order of a vocabulary, computed once."""
        return SortedTokens(vocabulary)

    def ranks(self, token_ids: Rows) -> Rows:
        """Returns the ranks of tokens."""
        return self._rank[token_ids]

    def narrow(self, rows: Rows, text: bytes) -> tuple[int, int, list[int]]:
        """Returns the slice of tokens that extend ``text``, and the rows of those that it starts
        with.
        """
        low, high = 0, len(rows)
        inside: list[int] = []
        for depth, byte in enumerate(text):
            low = self._take(rows, low, high, depth, inside)
            column = self._column(rows, low, high, depth)
            low, high = (
                low + int(np.searchsorted(column, byte, side="left")),
                low + int(np.searchsorted(column, byte, side="right")),
            )
        return self._take(rows, low, high, len(text), inside), high, inside

    def split(
        self, rows: Rows, low: int, high: int, depth: int
    ) -> Iterator[tuple[int, int, int, int]]:
        """Splits a slice by the byte at ``depth``: ``(byte, low, middle, high)``.

        Tokens before ``middle`` end with that byte; those from there on are longer.
        """
        column = self._column(rows, low, high, depth)
        cuts = [0, *(np.flatnonzero(np.diff(column)) + 1).tolist(), len(column)]
        for start, end in pairwise(cuts):
            group = (low + start, low + end)
            middle = self._take(rows, *group, depth + 1, [])
            yield int(column[start]), group[0], middle, group[1]

    def _take(self, rows: Rows, low: int, high: int, length: int, into: list[int]) -> int:
        """Returns the index after the tokens of exactly ``length`` bytes, which come first in a
        slice.
        """
        while low < high and self.lengths[rows[low]] == length:
            into.append(low)
            low += 1
        return low

    def _column(self, rows: Rows, low: int, high: int, depth: int) -> npt.NDArray[np.int64]:
        # Not uint8: differences of neighbors must not wrap around.
        return self._blob[self._offsets[rows[low:high]] + depth].astype(np.int64)
