"""Caches bounded in bytes: values by trie node, and a model's answers and states.

Answers and states are cached separately: an answer is needed while children are listed from it, a
state while children are evaluated. Those of the roots are never evicted. A child is evaluated from
its parent's state, or from that of the nearest ancestor that still has one, in one forward pass.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from formalm.models import LogitRow, ModelState, Position, Session

__all__ = ["STATE_BYTES", "ByteBudgetLru", "ModelAnswerCache"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Value = TypeVar("Value")
ENTRY_BYTES = 300
"""Memory of the entry of a state, measured."""
LATEST_ANSWERS = 8
"""Answers of a batch that are kept where only the latest are of use."""
NO_ROW = LogitRow(np.empty(0), is_normalized=True)


class ByteBudgetLru(Generic[Value]):
    """Values by node; the least recently used are evicted.

    The newest value is kept whatever its size, because it is needed next.

    Parameters
    ----------
    budget_bytes
        Maximum memory of all values.
    size_of
        Returns the bytes of a value.

    Attributes
    ----------
    memory_bytes
        Memory of the values.
    """

    def __init__(self, budget_bytes: int, size_of: Callable[[Value], int]) -> None:
        self.memory_bytes = 0
        self.budget_bytes = budget_bytes
        self._size_of = size_of
        self._kept: OrderedDict[int, Value] = OrderedDict()

    def __contains__(self, node: int) -> bool:
        return node in self._kept

    def __iter__(self) -> Iterator[int]:
        """Iterates over the nodes, the most recent last."""
        return iter(self._kept)

    def get(self, node: int) -> Value | None:
        """Returns the value of a node, if it is cached."""
        value = self._kept.get(node)
        if value is not None:
            self._kept.move_to_end(node)
        return value

    def keep(self, node: int, value: Value) -> None:
        """Caches a value, and replaces the node's previous one."""
        old = self._kept.pop(node, None)
        if old is not None:
            self.memory_bytes -= self._size_of(old)
        self._kept[node] = value
        self.memory_bytes += self._size_of(value)
        while self.memory_bytes > self.budget_bytes and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self.memory_bytes -= self._size_of(oldest)


STATE_BYTES = 256 << 20
"""Default maximum memory, in bytes, for answers and states."""


class SequenceNodes(Protocol):
    """A tree of token sequences, whose first nodes are the roots."""

    def parent_of(self, node: int) -> int:
        """Returns the parent of a node; a negative number for a root."""

    def token_of(self, node: int) -> int:
        """Returns the last token of a node."""

    def root(self, node: int) -> int:
        """Returns the root above a node."""

    def path(self, node: int) -> list[int]:
        """Returns the tokens from the root to a node."""


class ModelAnswerCache:
    """The answers and states of a model by node; the least recently used are evicted.

    Parameters
    ----------
    session
        The model.
    trie
        The sequences; its first nodes are the roots.
    prefixes
        The prefix before each root.
    budget_bytes
        Maximum memory for cached values except those of the roots: half for answers, half for
        states. A state that does not report its size counts as much as its answer.
    answer_bytes
        Maximum memory of the answers, for a caller that needs only the latest ones; if None, half
        of the budget, and all are cached.

    Attributes
    ----------
    recomputed
        Number of answers that were computed again.
    reread
        Number of tokens that were read again because the state after them was evicted.
    """

    def __init__(
        self,
        session: Session,
        trie: SequenceNodes,
        prefixes: Sequence[tuple[int, ...]],
        budget_bytes: int = STATE_BYTES,
        answer_bytes: int | None = None,
    ) -> None:
        self.session = session
        self.recomputed = 0
        self.reread = 0
        self._trie = trie
        self._prefixes = prefixes
        self._roots: dict[int, Position] = {}
        self._known: dict[int, Position] = {}
        self._answers: ByteBudgetLru[Position] = ByteBudgetLru(
            budget_bytes // 2 if answer_bytes is None else answer_bytes,
            lambda answer: answer.row.memory_bytes,
        )
        self._answers_of_batch = None if answer_bytes is None else LATEST_ANSWERS
        self._states = _StateCache(budget_bytes // 2)

    @property
    def memory_bytes(self) -> int:
        """Memory of the cached answers and states, except those of the roots."""
        return self._answers.memory_bytes + self._states.memory_bytes

    def evaluate(self, nodes: Sequence[int]) -> list[Position]:
        """Evaluates nodes and returns their positions: in one call, except those without an
        evaluated ancestor.
        """
        known = self._known
        found = {node: known.pop(node) for node in nodes if node in known} if known else {}
        origins: dict[int, int] = {}
        if self.session.incremental:
            found |= self._extend_from_ancestors(
                [node for node in nodes if node not in found] if found else nodes, origins
            )
        anew = [node for node in nodes if node not in found]
        if anew:
            answers = self.session.start_many([self.token_ids(node) for node in anew])
            found.update(zip(anew, answers, strict=True))
        positions = [found[node] for node in nodes]
        first = 0 if self._answers_of_batch is None else len(nodes) - self._answers_of_batch
        for place, node in enumerate(nodes):
            self._keep(node, positions[place], origins.get(node), answer=place >= first)
        return positions

    def know(self, node: int, position: Position) -> None:
        """Adopts the position of a root that was evaluated elsewhere."""
        self._known[node] = position

    def position(self, node: int) -> Position | None:
        """Returns the answer and the state at a node, if both are cached."""
        if node in self._roots:
            return self._roots[node]
        answer = self._answers.get(node)
        if answer is None or not self.session.incremental:
            return answer
        state = self._states.find(node)
        if state is None:
            return None
        shown = (answer.unseen, answer.unseen_each)
        return Position(answer.token_ids, answer.row, state, *shown)

    def kept(self) -> list[int]:
        """The nodes whose answers are cached, the roots last."""
        return [*self._answers, *self._roots]

    def has(self, node: int) -> bool:
        """Returns True if a node's answer is cached."""
        return node in self._roots or node in self._answers

    def recall(self, node: int) -> Position:
        """Returns the answer at a node that was evaluated before."""
        if node in self._roots:
            return self._roots[node]
        answer = self._answers.get(node)
        if answer is None:
            self.recomputed += 1
            return self.evaluate([node])[0]
        return answer

    def token_ids(self, node: int) -> tuple[int, ...]:
        """Returns the whole prefix of a node."""
        return (*self._prefixes[self._trie.root(node)], *self._trie.path(node))

    def _extend_from_ancestors(
        self, nodes: Sequence[int], origins: dict[int, int]
    ) -> dict[int, Position]:
        """Evaluates the nodes that have an ancestor with a state, and records these ancestors."""
        going_on, before, runs = [], [], []
        for node in nodes:
            origin, above, run = self._nearest_ancestor_state(node)
            if above is not None:
                origins[node] = origin
                going_on.append(node)
                before.append(above)
                runs.append(run)
                self.reread += len(run) - 1
        return dict(zip(going_on, self.session.extend_many(before, runs), strict=True))

    def _nearest_ancestor_state(self, node: int) -> tuple[int, Position | None, list[int]]:
        """Returns the nearest node above another that has a state, its position, and the tokens
        from there on.
        """
        trie, run = self._trie, []
        while (above := trie.parent_of(node)) >= 0:
            run.append(trie.token_of(node))
            node = above
            found = self._roots.get(node)
            if found is not None:
                return node, found, run[::-1]
            state = self._states.find(node)
            if state is not None:
                return node, Position(self.token_ids(node), NO_ROW, state), run[::-1]
        return node, None, []

    def _keep(self, node: int, position: Position, origin: int | None, *, answer: bool) -> None:
        if origin is None and self._trie.parent_of(node) < 0:
            self._roots[node] = position
            return
        if answer:
            shown = (position.unseen, position.unseen_each)
            bare = Position(position.token_ids, position.row, None, *shown)
            self._answers.keep(node, bare if position.state is not None else position)
        if position.state is not None:
            if origin is None or (origin not in self._states and origin not in self._roots):
                origin = self._nearest_cached_ancestor(node)
            elif origin in self._roots:
                origin = None
            self._states.keep(node, origin, position)

    def _nearest_cached_ancestor(self, node: int) -> int | None:
        """Returns the nearest ancestor that has a state within the budget."""
        node = self._trie.parent_of(node)
        while (above := self._trie.parent_of(node)) >= 0:
            if node in self._states:
                return node
            node = above
        return None


class _StateCache:
    """States by node; evicts first those that no cached state was extended from.

    A state shares the memory of those it was extended from, so evicting one in the middle would
    free nothing.
    """

    def __init__(self, budget_bytes: int) -> None:
        self.memory_bytes = 0
        self._budget = budget_bytes
        self._kept: dict[int, tuple[ModelState, int | None, int]] = {}
        self._children: dict[int, int] = {}
        self._outermost: OrderedDict[int, None] = OrderedDict()

    def __contains__(self, node: int) -> bool:
        return node in self._kept

    def find(self, node: int) -> ModelState | None:
        found = self._kept.get(node)
        if found is None:
            return None
        if node in self._outermost:
            self._outermost.move_to_end(node)
        return found[0]

    def keep(self, node: int, above: int | None, position: Position) -> None:
        if node in self._kept:
            return
        bare, size = _without_answer(position)
        self._kept[node] = (bare, above, size)
        self.memory_bytes += size
        self._outermost[node] = None
        if above is not None:
            self._children[above] = self._children.get(above, 0) + 1
            self._outermost.pop(above, None)
        while self.memory_bytes > self._budget and len(self._kept) > 1:
            self._drop(next(iter(self._outermost)))

    def _drop(self, node: int) -> None:
        del self._outermost[node]
        _, above, size = self._kept.pop(node)
        self.memory_bytes -= size
        if above is not None:
            self._children[above] -= 1
            if not self._children[above]:
                # Its last use is no later than that of any extension, so it is evicted next.
                del self._children[above]
                self._outermost[above] = None
                self._outermost.move_to_end(above, last=False)


def _without_answer(position: Position) -> tuple[ModelState, int]:
    """Returns the part of a state that is needed to continue from it, and its bytes."""
    state = position.state
    assert state is not None
    reported = getattr(state, "memory_bytes", None)
    size = reported if isinstance(reported, int) else position.row.memory_bytes
    bare = getattr(state, "bare", None)
    return (state if bare is None else bare()), size + ENTRY_BYTES
