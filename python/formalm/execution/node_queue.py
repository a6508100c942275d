"""A priority queue of trie nodes, most probable first, with a small heap as its head.

A heap entry takes four objects. Most nodes of a frontier are never reached, so only the best few
hundred are in the heap; the others wait as numbers and are scanned when the heap runs empty.
"""

from __future__ import annotations

from array import array
from heapq import heapify, heappop, heappush

import numpy as np

from formalm.execution.sequence_trie import SequenceTrie, TriePath

__all__ = ["NodeQueue"]

HEAD = 512
ENTRY_BYTES = 184
Entry = tuple[float, int, TriePath]


class NodeQueue:
    """Nodes by descending log-probability; ties go to the shorter, then by :class:`TriePath`."""

    def __init__(self, trie: SequenceTrie, head: int = HEAD) -> None:
        self._trie = trie
        self._size = head
        self._most = 2 * head
        self._head: list[Entry] = []
        self._waiting = array("i")
        # No waiting node has a lower cost than this, and no node in the heap a higher one.
        self._bound = np.inf

    def __len__(self) -> int:
        return len(self._head) + len(self._waiting)

    @property
    def memory_bytes(self) -> int:
        """Memory of the queue, without the nodes."""
        return ENTRY_BYTES * len(self._head) + 4 * len(self._waiting)

    def nodes(self) -> list[int]:
        """All queued nodes, unordered."""
        return [*(entry[2].node for entry in self._head), *self._waiting]

    def push(self, node: int) -> None:
        """Queues a node."""
        cost = -self._trie.logprob[node]
        if cost > self._bound:
            self._waiting.append(node)
            return
        heappush(self._head, (cost, self._trie.depth[node], TriePath(self._trie, node)))
        if len(self._head) > self._most:
            self._spill()

    def pop(self) -> int:
        """Removes and returns the best node; raises IndexError if there is none."""
        if not self._head:
            self._refill()
        return heappop(self._head)[2].node

    def top(self) -> int:
        """Returns the best node without removing it."""
        if not self._head:
            self._refill()
        return self._head[0][2].node

    def _spill(self) -> None:
        """Moves all but the best nodes out of the heap; nodes that tie with the last one stay."""
        costs = np.array([entry[0] for entry in self._head])
        bound = float(np.partition(costs, self._size - 1)[self._size - 1])
        self._waiting.extend(entry[2].node for entry in self._head if entry[0] > bound)
        self._head = [entry for entry in self._head if entry[0] <= bound]
        heapify(self._head)
        self._bound = bound if self._waiting else np.inf
        # If all entries tie, none was moved; do not retry at every push.
        self._most = 2 * max(self._size, len(self._head))

    def _refill(self) -> None:
        """Moves the best waiting nodes into the heap, and all that tie with the last of them."""
        nodes = np.array(self._waiting, dtype=np.int64)
        costs = -np.array(self._trie.logprob)[nodes]
        self._bound = np.inf
        chosen = np.ones(len(nodes), dtype=bool)
        if len(nodes) > self._size:
            self._bound = float(np.partition(costs, self._size - 1)[self._size - 1])
            chosen = costs <= self._bound
        trie = self._trie
        self._head = [
            (cost, trie.depth[node], TriePath(trie, node))
            for cost, node in zip(costs[chosen].tolist(), nodes[chosen].tolist(), strict=True)
        ]
        heapify(self._head)
        self._waiting = array("i", nodes[~chosen].tolist())
        if not self._waiting:
            self._bound = np.inf
