"""A trie of token sequences stored in arrays, and a priority queue of its nodes.

A node is a row of five arrays: its parent, its token, its depth, its log-probability and the state
of the constraint. The children of an evaluated node are listed, best first, a few at a time; the
list is a slice of two more arrays. No node is a Python object, so a frontier of millions of nodes
takes some tens of bytes for each.

A heap entry of the queue takes four objects. Most nodes of a frontier are never reached, so only
the best few hundred are in the heap; the others wait as numbers and are scanned when the heap runs
empty.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.query.decoding_rules import best

__all__ = ["END", "SLACK", "UNKNOWN", "NodeQueue", "SequenceTrie", "TriePath"]

END = -1
"""The token of a node that represents the end of its parent."""
ROOT = -2
UNKNOWN = -1
"""The state of a node whose state was never requested."""
FIRST_LISTED = 8
ALL_LISTED = 16
"""Up to this many children are listed at once: listing the rest later would cost more."""
SLACK = 1e-6
"""Maximum amount by which rounding may put a log-probability above 0."""
FIELDS = {
    "parent": "i",
    "token": "i",
    "depth": "i",
    "logprob": "d",
    "_listed_ids": "i",
    "_listed_logprobs": "d",
    "_at": "q",
    "_stop": "q",
    "_count": "i",
}
"""The arrays that a checkpoint stores, and their types."""

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class SequenceTrie:
    """Nodes, numbered in the order of creation; the first ones are the roots.

    Attributes
    ----------
    parent, token, depth, logprob, state
        One entry per node; ``logprob`` is that of the whole sequence, ``state`` may be ``UNKNOWN``.
    """

    def __init__(self) -> None:
        self.parent = array("i")
        self.token = array("i")
        self.depth = array("i")
        self.logprob = array("d")
        self.state = array("i")
        self._listed_ids = array("i")
        self._listed_logprobs = array("d")
        # For each node: its next listed child, the end of its list, the number listed so far.
        self._at = array("q")
        self._stop = array("q")
        self._count = array("i")
        self._more = bytearray()

    def __len__(self) -> int:
        return len(self.parent)

    @property
    def memory_bytes(self) -> int:
        """Memory of the arrays."""
        return 45 * len(self) + 12 * len(self._listed_ids)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Returns everything except states, for :meth:`restore`."""
        found = {name: np.array(getattr(self, name)) for name in FIELDS}
        return {**found, "_more": np.frombuffer(bytes(self._more), dtype=np.uint8)}

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
        """Restores the trie that :meth:`arrays` described.

        Raises
        ------
        ValueError
            If the arrays do not describe a trie.
        """
        parent, size = arrays["parent"], len(arrays["parent"])
        listed = len(arrays["_listed_ids"])
        at, stop = arrays["_at"], arrays["_stop"]
        of_nodes = [name for name in arrays if not name.startswith("_listed")]
        if any(len(arrays[name]) != size for name in of_nodes):
            raise ValueError("its arrays differ in length")
        if len(arrays["_listed_logprobs"]) != listed or np.any(parent >= np.arange(size)):
            raise ValueError("a node precedes its parent")
        if np.any(at < 0) or np.any(at > stop) or np.any(stop > listed):
            raise ValueError("a list of children is out of range")
        if not (np.all(arrays["logprob"] <= SLACK) and np.all(arrays["_listed_logprobs"] <= SLACK)):
            raise ValueError("a log-probability is invalid")
        above = np.where(parent >= 0, arrays["depth"][np.maximum(parent, 0)] + 1, 0)
        if not np.array_equal(above, arrays["depth"]):
            raise ValueError("a node's depth is wrong")
        for name, code in FIELDS.items():
            setattr(self, name, array(code, arrays[name].tolist()))
        self._more = bytearray(arrays["_more"].tobytes())
        self.state = array("i", [UNKNOWN] * size)

    def add_root(self, logprob: float, state: int) -> int:
        """Adds a root and returns its node."""
        return self._append(-1, ROOT, 0, logprob, state)

    def add(self, parent: int, token_id: int, logprob: float, state: int = UNKNOWN) -> int:
        """Adds a child and returns its node."""
        return self._append(parent, token_id, self.depth[parent] + 1, logprob, state)

    def _append(self, parent: int, token: int, depth: int, logprob: float, state: int) -> int:
        self.parent.append(parent)
        self.token.append(token)
        self.depth.append(depth)
        self.logprob.append(logprob)
        self.state.append(state)
        self._at.append(0)
        self._stop.append(0)
        self._count.append(0)
        self._more.append(0)
        return len(self.parent) - 1

    def parent_of(self, node: int) -> int:
        """Returns the parent of a node; -1 for a root."""
        return self.parent[node]

    def token_of(self, node: int) -> int:
        """Returns the last token of a node."""
        return self.token[node]

    def path(self, node: int) -> list[int]:
        """Returns the tokens from the root to a node; an end is ``END``."""
        ids = []
        parent, token = self.parent, self.token
        while parent[node] >= 0:
            ids.append(token[node])
            node = parent[node]
        return ids[::-1]

    def steps(self, node: int) -> list[float]:
        """Returns the log-probability of each token from the root to a node."""
        found = []
        while self.parent[node] >= 0:
            above = self.parent[node]
            found.append(self.logprob[node] - self.logprob[above])
            node = above
        return found[::-1]

    def root(self, node: int) -> int:
        """Returns the root above a node."""
        while self.parent[node] >= 0:
            node = self.parent[node]
        return node

    def list_children(self, node: int, ids: Ids, logprobs: Floats) -> None:
        """Lists the next best children of a node that were not listed before, more each time.

        Parameters
        ----------
        node
            An evaluated node; all children listed so far have been taken.
        ids, logprobs
            All its children, the same each time: ascending ids, and totals.
        """
        done = self._count[node]
        wanted = len(ids)
        if wanted > ALL_LISTED:
            wanted = min(wanted, 2 * done + FIRST_LISTED)
        places = best(logprobs, wanted)[done:]
        self._at[node] = len(self._listed_ids)
        self._listed_ids.extend(ids[places].tolist())
        self._listed_logprobs.extend(logprobs[places].tolist())
        self._stop[node] = len(self._listed_ids)
        self._count[node] = wanted
        self._more[node] = wanted < len(ids)

    def append_children(self, node: int, ids: Ids, logprobs: Floats, *, more: bool) -> None:
        """Lists further children of a node: tokens and totals, best first, after all listed so far.

        ``more`` tells whether there may be others.
        """
        self._at[node] = len(self._listed_ids)
        self._listed_ids.extend(ids.tolist())
        self._listed_logprobs.extend(logprobs.tolist())
        self._stop[node] = len(self._listed_ids)
        self._count[node] += len(ids)
        self._more[node] = more

    def listed_count(self, node: int) -> int:
        """Returns the number of children that were listed."""
        return self._count[node]

    def last_listed(self, node: int) -> int:
        """Returns the token of the last child that was listed."""
        return self._listed_ids[self._stop[node] - 1]

    def next_child(self, node: int) -> int | None:
        """Adds the next best listed child as a node; returns None if none is listed."""
        at = self._at[node]
        if at >= self._stop[node]:
            return None
        self._at[node] = at + 1
        return self.add(node, self._listed_ids[at], self._listed_logprobs[at])

    def more(self, node: int) -> bool:
        """Returns True if there are children that were never listed."""
        return bool(self._more[node])

    def has_more(self, node: int) -> bool:
        """Returns True if all listed children were taken and others were never listed."""
        return self._at[node] >= self._stop[node] and bool(self._more[node])


class TriePath:
    """The order of otherwise equal nodes: by their tokens, then by their root.

    It walks to the root, so it comes last in a queue's entries, where only ties reach it.
    """

    __slots__ = ("node", "trie")

    def __init__(self, trie: SequenceTrie, node: int) -> None:
        self.trie = trie
        self.node = node

    def __lt__(self, other: TriePath) -> bool:
        trie = self.trie
        mine = (trie.path(self.node), trie.root(self.node))
        return mine < (trie.path(other.node), trie.root(other.node))


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
