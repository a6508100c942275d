"""Tokenizations during string search: evaluated and pending readings, and their next tokens.

The terms are those of :mod:`formalm.searching.string_search`. The vocabulary's tokens are sorted by
bytes, so that the tokens that continue a string form a slice.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from formalm.execution.frontier import Frontier
from formalm.execution.model_answer_cache import ByteBudgetLru, children_bytes
from formalm.vocabulary import Vocabulary

__all__ = ["SortedTokens", "StringEntry", "TokenRange", "TokenizationNodes", "log_sum"]

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


Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
TokenRange = tuple[int, int, int, float]
"""An evaluated reading, the range of ranks of the next tokens that extend beyond a string, and the
log of their total probability."""
TOKEN_ROWS_BYTES = 64 << 20


@dataclass(eq=False)
class StringEntry:
    """A queue entry: a byte string and its readings, as nodes of the trie.

    Attributes
    ----------
    data, state, context_index
        The bytes, the state of the language after them, and the index of the root.
    member
        True if the entry stands for the string itself, as a member, and not for its extensions.
    exact
        Readings that spell all of it.
    pending
        Readings of its prefixes that were not evaluated.
    token_ranges
        The tokens with which evaluated readings extend beyond it.
    done
        The bytes whose strings are already queued. Those strings have a copy of the pending
        readings; the ones kept here are those that may still lead elsewhere.
    """

    data: bytes
    state: int
    context_index: int
    member: bool = False
    exact: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    token_ranges: list[TokenRange] = field(default_factory=list)
    done: frozenset[int] = frozenset()

    @property
    def memory_bytes(self) -> int:
        """Approximate memory, including its entry in the queue."""
        lists = len(self.exact) + len(self.pending) + len(self.done)
        return 640 + len(self.data) + 8 * lists + 120 * len(self.token_ranges)


class TokenizationNodes:
    """The nodes of a frontier's trie as readings, and the next tokens of the evaluated ones.

    Parameters
    ----------
    frontier
        The trie; its queue stays empty.
    budget_bytes
        Maximum memory for the cached tokens. Evicted ones are computed again.

    Attributes
    ----------
    length
        Number of bytes that each node spells.
    ends
        Log-probability of ending at each evaluated node.
    """

    def __init__(self, frontier: Frontier, budget_bytes: int = TOKEN_ROWS_BYTES) -> None:
        self.frontier = frontier
        self.sorted_tokens = SortedTokens.of(frontier.execution.constraint.spelled)
        self.length = array("i", [0] * len(frontier.trie))
        self.ends: dict[int, float] = {}
        self._children: dict[tuple[int, int], int] = {}
        self._kept: ByteBudgetLru[tuple[Ids, Floats]] = ByteBudgetLru(budget_bytes, children_bytes)

    @property
    def memory_bytes(self) -> int:
        """Memory of the data of the nodes, without the trie."""
        return 4 * len(self.length) + 160 * len(self._children) + 100 * len(self.ends)

    def evaluate(self, nodes: list[int]) -> None:
        """Evaluates the model after some readings, in one call if possible."""
        for node, ids, totals, end in self.frontier.evaluate(nodes):
            self._keep(node, ids, totals)
            self.ends[node] = end

    def rows(self, node: int) -> tuple[Ids, Floats]:
        """Returns the ranks of the tokens after an evaluated reading, ascending, and the totals
        with them.
        """
        known = self._kept.get(node)
        if known is not None:
            return known
        position = self.frontier.answer_cache.recall(node)
        ids, totals, _ = self.frontier.follow(node, position, again=True)
        return self._keep(node, ids, totals)

    def slice(self, token_range: TokenRange) -> tuple[Ids, Floats, int, int]:
        """Returns the rows of a fan's reading, and the start and end of the fan's own rows."""
        node, low, high, _ = token_range
        ranks, totals = self.rows(node)
        first, last = np.searchsorted(ranks, (low, high)).tolist()
        return ranks, totals, first, last

    def child(self, node: int, rank: int, total: float) -> int:
        """Returns the reading that continues with a token."""
        token_id = int(self.sorted_tokens.token_ids[rank])
        known = self._children.get((node, token_id))
        if known is None:
            known = self.frontier.trie.add(node, token_id, total)
            self.length.append(self.length[node] + int(self.sorted_tokens.lengths[rank]))
            self._children[node, token_id] = known
        return known

    def restore(self, ends: dict[int, float]) -> None:
        """Adopts the data of nodes that the trie already has."""
        trie, sorted_tokens = self.frontier.trie, self.sorted_tokens
        self.ends = ends
        for node in range(len(self.length), len(trie)):
            rank = int(sorted_tokens.ranks(np.array([trie.token[node]]))[0])
            self.length.append(self.length[trie.parent[node]] + int(sorted_tokens.lengths[rank]))
            self._children[trie.parent[node], trie.token[node]] = node

    def _keep(self, node: int, ids: Ids, totals: Floats) -> tuple[Ids, Floats]:
        limit = self.frontier.execution.max_tokens
        if limit is not None and self.frontier.trie.depth[node] >= limit:
            ids, totals = ids[:0], totals[:0]
        ranks = self.sorted_tokens.ranks(ids)
        order = np.argsort(ranks)
        rows = ranks[order], totals[order]
        self._kept.keep(node, rows)
        return rows


def log_sum(values: Iterable[float]) -> float:
    """Returns the logarithm of a sum of exponentials, independent of the order of the values."""
    logs = list(values)
    top = max(logs, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
