"""What the model said of a trie's nodes, kept within a budget of bytes and asked again if dropped.

The answer to a prompt is computed once and stays. A child goes on from its parent's state where
that is still there; where it is not, the child's whole prefix is read again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from formalm.drivers.trie import Trie
from formalm.models import Position, Session

__all__ = ["STATE_BYTES", "Positions"]

STATE_BYTES = 256 << 20
"""Most memory for answers and states unless told otherwise."""


class Positions:
    """The answers of a model, least recently used ones let go.

    Parameters
    ----------
    session
        The model.
    trie
        The sequences; its first nodes are the roots.
    prefixes
        What stands in front of each root.
    budget_bytes
        Most memory for what is kept, roots aside.

    Attributes
    ----------
    recomputed
        How many answers were asked for again.
    """

    def __init__(
        self,
        session: Session,
        trie: Trie,
        prefixes: Sequence[tuple[int, ...]],
        budget_bytes: int = STATE_BYTES,
    ) -> None:
        self.session = session
        self.recomputed = 0
        self._trie = trie
        self._prefixes = prefixes
        self._budget = budget_bytes
        self._kept: OrderedDict[int, Position] = OrderedDict()
        self._roots: dict[int, Position] = {}
        self._sizes: dict[int, int] = {}
        self._bytes = 0

    def evaluate(self, nodes: Sequence[int]) -> list[Position]:
        """Evaluate nodes, in one call if all their parents are there."""
        found: dict[int, Position] = {}
        going_on = [node for node in nodes if self._find(self._trie.parent[node]) is not None]
        if not self.session.incremental:
            going_on = []
        known = [self._find(self._trie.parent[node]) for node in going_on]
        before = [position for position in known if position is not None]
        tokens = [self._trie.token[node] for node in going_on]
        found.update(zip(going_on, self.session.extend(before, tokens), strict=True))
        anew = [node for node in nodes if node not in found]
        answers = self.session.start_many([self.token_ids(node) for node in anew])
        found.update(zip(anew, answers, strict=True))
        for node in nodes:
            self._keep(node, found[node])
        return [found[node] for node in nodes]

    def kept(self) -> list[int]:
        """The nodes whose answers are there, the roots last."""
        return [*self._kept, *self._roots]

    def has(self, node: int) -> bool:
        """Whether a node's answer is still there."""
        return node in self._roots or node in self._kept

    def recall(self, node: int) -> Position:
        """The answer to a node that was evaluated before."""
        position = self._find(node)
        if position is None:
            self.recomputed += 1
            (position,) = self.evaluate([node])
        return position

    def token_ids(self, node: int) -> tuple[int, ...]:
        """The whole prefix that a node stands for."""
        return (*self._prefixes[self._trie.root(node)], *self._trie.path(node))

    def _find(self, node: int) -> Position | None:
        if node in self._roots:
            return self._roots[node]
        position = self._kept.get(node)
        if position is not None:
            self._kept.move_to_end(node)
        return position

    def _keep(self, node: int, position: Position) -> None:
        if self._trie.parent[node] < 0:
            self._roots[node] = position
            return
        self._bytes += _size(position) - self._sizes.get(node, 0)
        self._sizes[node] = _size(position)
        self._kept[node] = position
        # The newest stays whatever its size: its children come next.
        while self._bytes > self._budget and len(self._kept) > 1:
            oldest, _ = self._kept.popitem(last=False)
            self._bytes -= self._sizes.pop(oldest)


def _size(position: Position) -> int:
    """Bytes of an answer and of what its state adds to that of its parent, where it says so."""
    own = getattr(position.state, "memory_bytes", 0)
    return position.logprobs.nbytes + (own if isinstance(own, int) else 0)
