"""Tokenizations during string search: evaluated and pending readings, and their next tokens.

The terms are those of :mod:`formalm.searching.string_search`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formalm.execution.byte_budget_lru import ByteBudgetLru, children_bytes
from formalm.execution.frontier import Frontier
from formalm.searching.sorted_tokens import SortedTokens

__all__ = ["StringEntry", "TokenRange", "TokenizationNodes", "log_sum"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
TokenRange = tuple[int, int, int, float]
"""A reading, the first rank and the one behind the last of the tokens after it that go beyond a
string, and the log of what these tokens have together."""
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
