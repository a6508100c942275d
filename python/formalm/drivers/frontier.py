"""The frontier of a question: what to evaluate next, in a trie of token sequences.

:func:`by_tokens` is best-first search on it. A step never adds probability, so the best entry of
the queue bounds all that is still to come (Dijkstra's rule), and a finished sequence on top of it
is the next hit. Nodes further down may be evaluated early to fill a batch: that changes the work
and never the order.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from formalm.drivers.positions import STATE_BYTES, Positions
from formalm.drivers.queue import Queue
from formalm.drivers.roots import Root
from formalm.drivers.task import Found, Task, Truncated
from formalm.drivers.trie import END, UNKNOWN, Trie
from formalm.models.base import LogProbs
from formalm.query.states import States

__all__ = ["Expansion", "Frontier", "by_tokens"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
RECENT_BYTES = 16 << 20
FEW = 1024
"""So few children are remembered from the start: they take less memory than the answer."""
Expansion = tuple[int, Ids, Floats, float]
"""A node, the tokens that may follow, the totals with them, and the total with an end."""


class Frontier:
    """The trie of a task, its queue, and what the model said.

    Attributes
    ----------
    trie, queue, states, positions
        Its parts.
    root_nodes
        The nodes of the task's roots.
    """

    def __init__(self, task: Task) -> None:
        self.task = task
        self.trie = Trie()
        self.queue = Queue(self.trie)
        self.states = States(task.constraint)
        self.root_nodes = [
            self.trie.add_root(root.logprob, self.states.of(root.matcher)) for root in task.roots
        ]
        prefixes = [root.token_ids for root in task.roots]
        budget = task.limits.state_bytes or STATE_BYTES
        self.positions = Positions(task.session, self.trie, prefixes, budget)
        tokens = task.session.vocabulary.tokens()
        self._recent: OrderedDict[int, tuple[Ids, Floats]] = OrderedDict()
        self._recent_bytes = 0
        self._bytes = [b"" if token is None else token for token in tokens]

    @property
    def memory_bytes(self) -> int:
        """Memory of the trie and its queue."""
        return self.trie.memory_bytes + self.queue.memory_bytes

    def root(self, node: int) -> Root:
        """The root above a node."""
        return self.task.roots[self.trie.root(node)]

    def state(self, node: int) -> int:
        """The state of the constraint at a node, whose parent was evaluated."""
        state = self.trie.state[node]
        if state == UNKNOWN:
            parent = self.trie.state[self.trie.parent[node]]
            state = self.trie.state[node] = self.states.step(parent, self.trie.token[node])
        return state

    def data(self, node: int) -> bytes:
        """The bytes after ``given``."""
        return b"".join(self._bytes[token] for token in self.trie.path(node) if token != END)

    def room(self) -> int:
        """How many prefixes the next batch may have; errors are those of :meth:`Task.room`."""
        limit = self.task.limits.memory_bytes
        if limit is not None and self.memory_bytes > limit:
            raise Truncated("memory")
        return self.task.room()

    def evaluate(self, nodes: list[int]) -> Iterator[Expansion]:
        """Ask the model what follows some nodes, in one call if it can be."""
        for node, position in zip(nodes, self.positions.evaluate(nodes), strict=True):
            yield (node, *self.follow(node, position.logprobs))

    def queue_children(self, node: int, ids: Ids, totals: Floats) -> None:
        """Queue the best child of an evaluated node; the others follow when it is taken."""
        if len(ids):
            self.trie.list_children(node, ids, totals)
            if len(ids) <= FEW and self.trie.more(node):
                self._remember(node, ids, totals)
            self.queue_next(node)

    def queue_next(self, parent: int) -> None:
        """Queue the next best child of an evaluated node, if there is one."""
        if self.trie.has_more(parent):
            self.trie.list_children(parent, *self._again(parent))
        child = self.trie.next_child(parent)
        if child is not None:
            self.queue.push(child)

    def _again(self, node: int) -> tuple[Ids, Floats]:
        """The children of a node that was evaluated before."""
        known = self._recent.get(node)
        if known is not None:
            return known
        if not self.positions.has(node):
            self.room()
        ids, totals, _ = self.follow(node, self.positions.recall(node))
        self._remember(node, ids, totals)
        return ids, totals

    def _remember(self, node: int, ids: Ids, totals: Floats) -> None:
        self._recent[node] = (ids, totals)
        self._recent_bytes += ids.nbytes + totals.nbytes
        while self._recent_bytes > RECENT_BYTES and len(self._recent) > 1:
            _, (old, values) = self._recent.popitem(last=False)
            self._recent_bytes -= old.nbytes + values.nbytes

    def follow(self, node: int, logprobs: LogProbs) -> tuple[Ids, Floats, float]:
        """The tokens that may follow an evaluated node, the totals with them and with an end."""
        state = self.state(node)
        ids, logprobs, end = self.task.split(
            logprobs, self.states.allowed(state), self.states.accepting[state]
        )
        total = self.trie.logprob[node]
        return ids, total + logprobs, total + end


class _Listing:
    """Best-first search: the hits that wait, and the steps."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.frontier = Frontier(task)
        self.hits: set[int] = set()

    def run(self) -> Iterator[Found | None]:
        frontier, queue = self.frontier, self.frontier.queue
        for node in frontier.root_nodes:
            queue.push(node)
        while queue:
            if queue.top() in self.hits:
                yield self.found(queue.pop())
                continue
            batch = self.collect(frontier.room())
            for node, ids, totals, end in frontier.evaluate(batch):
                self.expand(node, ids, totals, end)
            if batch:
                yield None

    def collect(self, room: int) -> list[int]:
        """Take the best nodes to evaluate; those that are hits as well come back as hits."""
        frontier, task, trie = self.frontier, self.task, self.frontier.trie
        batch: list[int] = []
        hits: list[int] = []
        while frontier.queue and len(batch) < room:
            node = frontier.queue.pop()
            if node in self.hits:
                hits.append(node)
                continue
            parent = trie.parent[node]
            if parent >= 0:
                frontier.queue_next(parent)
            state = frontier.state(node)
            if not task.complete and frontier.states.accepting[state]:
                self.hits.add(node)
                hits.append(node)
            over = frontier.states.finished[state] and not task.complete
            if not over and task.may_go_on(trie.depth[node], frontier.root(node)):
                batch.append(node)
        for node in hits:
            frontier.queue.push(node)
        return batch

    def expand(self, node: int, ids: Ids, totals: Floats, end: float) -> None:
        """Queue what may follow an evaluated sequence: its best child, and its end."""
        frontier, task = self.frontier, self.task
        if task.complete and end > -np.inf:
            ending = frontier.trie.add(node, END, end)
            self.hits.add(ending)
            frontier.queue.push(ending)
        if task.max_tokens is None or frontier.trie.depth[node] < task.max_tokens:
            frontier.queue_children(node, ids, totals)

    def found(self, node: int) -> Found:
        self.hits.discard(node)
        frontier = self.frontier
        token_ids = tuple(token for token in frontier.trie.path(node) if token != END)
        logprob, given = frontier.trie.logprob[node], frontier.root(node).data
        return Found(frontier.data(node), token_ids, logprob, given=given)


def by_tokens(task: Task) -> Iterator[Found | None]:
    """Every token sequence that spells a member, most probable first.

    Ties go to the shorter, then the smaller sequence. None is yielded after each batch.
    """
    return _Listing(task).run()
