"""What follows the evaluated readings of strings, in order of bytes, and the strings themselves.

The terms are those of :mod:`formalm.drivers.marginal`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formalm.drivers.frontier import Frontier
from formalm.drivers.recent import Recent, children_bytes
from formalm.drivers.spelling import Spelling

__all__ = ["Fan", "Readings", "String", "log_sum"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Fan = tuple[int, int, int, float]
"""A reading, the first rank and the one behind the last of the tokens after it that go beyond a
string, and the log of what these tokens have together."""
FAN_BYTES = 64 << 20


@dataclass(eq=False)
class String:
    """An entry of the queue: a byte string and its readings, as nodes of the trie.

    Attributes
    ----------
    data, state, root
        The bytes, the state of the language behind them, and the number of their beginning.
    member
        Whether the string itself is asked about, as a member, rather than what is below it.
    exact
        Readings that spell all of it.
    pending
        Readings of beginnings of it that were not evaluated.
    fans
        Where evaluated readings go beyond it.
    done
        The bytes whose strings are queued already; they have taken the pending readings along, and
        what stays here is what those may still open up elsewhere.
    """

    data: bytes
    state: int
    root: int
    member: bool = False
    exact: list[int] = field(default_factory=list)
    pending: list[int] = field(default_factory=list)
    fans: list[Fan] = field(default_factory=list)
    done: frozenset[int] = frozenset()

    @property
    def memory_bytes(self) -> int:
        """About what it takes, with its place in the queue."""
        lists = len(self.exact) + len(self.pending) + len(self.done)
        return 640 + len(self.data) + 8 * lists + 120 * len(self.fans)


class Readings:
    """The nodes of a frontier's trie as readings, and the tokens after those that were evaluated.

    Parameters
    ----------
    frontier
        The trie; its queue stays empty.
    budget_bytes
        Most memory for the tokens kept. What is let go is asked for again.

    Attributes
    ----------
    length
        Of each node: how many bytes it spells.
    ends
        Of each evaluated node: the log-probability of ending there.
    """

    def __init__(self, frontier: Frontier, budget_bytes: int = FAN_BYTES) -> None:
        self.frontier = frontier
        self.spelling = Spelling.of(frontier.task.constraint.spelled)
        self.length = array("i", [0] * len(frontier.trie))
        self.ends: dict[int, float] = {}
        self._children: dict[tuple[int, int], int] = {}
        self._kept: Recent[tuple[Ids, Floats]] = Recent(budget_bytes, children_bytes)

    @property
    def memory_bytes(self) -> int:
        """Memory of what is known of nodes, the trie aside."""
        return 4 * len(self.length) + 160 * len(self._children) + 100 * len(self.ends)

    def evaluate(self, nodes: list[int]) -> None:
        """Ask the model what follows some readings, in one call if it can be."""
        for node, ids, totals, end in self.frontier.evaluate(nodes):
            self._keep(node, ids, totals)
            self.ends[node] = end

    def rows(self, node: int) -> tuple[Ids, Floats]:
        """The ranks of the tokens after an evaluated reading, rising, and the totals with them."""
        known = self._kept.get(node)
        if known is not None:
            return known
        position = self.frontier.positions.recall(node)
        ids, totals, _ = self.frontier.follow(node, position, again=True)
        return self._keep(node, ids, totals)

    def slice(self, fan: Fan) -> tuple[Ids, Floats, int, int]:
        """The rows of a fan's reading, and where the fan's own begin and end."""
        node, low, high, _ = fan
        ranks, totals = self.rows(node)
        first, last = np.searchsorted(ranks, (low, high)).tolist()
        return ranks, totals, first, last

    def child(self, node: int, rank: int, total: float) -> int:
        """The reading that goes on with a token."""
        token_id = int(self.spelling.token_ids[rank])
        known = self._children.get((node, token_id))
        if known is None:
            known = self.frontier.trie.add(node, token_id, total)
            self.length.append(self.length[node] + int(self.spelling.lengths[rank]))
            self._children[node, token_id] = known
        return known

    def restore(self, ends: dict[int, float]) -> None:
        """Take over what is known of nodes that the trie already has."""
        trie, spelling = self.frontier.trie, self.spelling
        self.ends = ends
        for node in range(len(self.length), len(trie)):
            rank = int(spelling.ranks(np.array([trie.token[node]]))[0])
            self.length.append(self.length[trie.parent[node]] + int(spelling.lengths[rank]))
            self._children[trie.parent[node], trie.token[node]] = node

    def _keep(self, node: int, ids: Ids, totals: Floats) -> tuple[Ids, Floats]:
        limit = self.frontier.task.max_tokens
        if limit is not None and self.frontier.trie.depth[node] >= limit:
            ids, totals = ids[:0], totals[:0]
        ranks = self.spelling.ranks(ids)
        order = np.argsort(ranks)
        rows = ranks[order], totals[order]
        self._kept.keep(node, rows)
        return rows


def log_sum(values: Iterable[float]) -> float:
    """Logarithm of the sum of exponentials; the same for every order of the values."""
    logs = list(values)
    top = max(logs, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
