"""The search frontier: a trie of token sequences, its priority queue, and model evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.execution.model_answer_cache import (
    STATE_BYTES,
    ByteBudgetLru,
    ModelAnswerCache,
    children_bytes,
)
from formalm.execution.query_contexts import QueryContext
from formalm.execution.query_execution import LimitReached, QueryExecution
from formalm.execution.sequence_trie import END, UNKNOWN, NodeQueue, SequenceTrie
from formalm.models import Position
from formalm.query.state_ids import States

__all__ = ["Expansion", "Frontier"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
RECENT_BYTES = 16 << 20
FEW = 1024
"""Up to this many children are stored from the start: they take less memory than the answer."""
Expansion = tuple[int, Ids, Floats, float]
"""A node, the tokens that may follow, the totals with them, and the total with an end."""


class Frontier:
    """The trie of a task, its queue, and the model's answers.

    Attributes
    ----------
    trie, queue, states, answer_cache
        Its parts.
    root_nodes
        The nodes of the task's roots.
    unseen
        For nodes where a partial model was asked: an upper bound on the total of the allowed
        children that it did not show.
    best_unseen
        An upper bound on the log-probability of any sequence through such a child.
    """

    def __init__(self, execution: QueryExecution) -> None:
        self.execution = execution
        self.trie = SequenceTrie()
        self.queue = NodeQueue(self.trie)
        self.states = States(execution.constraint)
        self.root_nodes = [
            self.trie.add_root(context.logprob, self.states.of(context.matcher))
            for context in execution.contexts
        ]
        self._prefixes = prefixes = [context.token_ids for context in execution.contexts]
        budget = execution.limits.state_bytes or STATE_BYTES
        self.answer_cache = ModelAnswerCache(execution.session, self.trie, prefixes, budget)
        tokens = execution.constraint.spelled.tokens()
        self.unseen: dict[int, float] = {}
        self.best_unseen = -np.inf
        self._recent: ByteBudgetLru[tuple[Ids, Floats]] = ByteBudgetLru(
            RECENT_BYTES, children_bytes
        )
        self._bytes = [b"" if token is None else token for token in tokens]

    @property
    def memory_bytes(self) -> int:
        """Memory of the trie and its queue."""
        return self.trie.memory_bytes + self.queue.memory_bytes

    def add_context(self, context: QueryContext, position: Position | None) -> int:
        """Adds a context that was found while the search runs, and returns its root.

        Parameters
        ----------
        context
            The context.
        position
            The model's position at the root, if it was evaluated.
        """
        number = len(self.execution.contexts)
        self.execution.contexts.append(context)
        self._prefixes.append(context.token_ids)
        state = self.states.of(context.matcher)
        node = self.trie.add_late_root(context.logprob, state, number)
        if position is not None:
            self.answer_cache.know(node, position)
        return node

    def context(self, node: int) -> QueryContext:
        """Returns the root above a node."""
        return self.execution.contexts[self.trie.root(node)]

    def state(self, node: int) -> int:
        """Returns the state of the constraint at a node whose parent was evaluated."""
        state = self.trie.state[node]
        if state == UNKNOWN:
            parent = self.trie.state[self.trie.parent[node]]
            state = self.trie.state[node] = self.states.step(parent, self.trie.token[node])
        return state

    def restore(self, arrays: Mapping[str, npt.NDArray[Any]], known: Ids) -> None:
        """Adopts a trie and recomputes the states of its ``known`` nodes, in ascending order."""
        roots = [self.states.of(context.matcher) for context in self.execution.contexts]
        self.trie.restore(arrays)
        for node in known.tolist():
            if self.trie.parent[node] < 0:
                self.trie.state[node] = roots[node]
            else:
                self.state(node)

    def data(self, node: int) -> bytes:
        """Returns the bytes after ``given``."""
        found = b"".join(self._bytes[token] for token in self.trie.path(node) if token != END)
        return found[self.context(node).skip :]

    def room(self) -> int:
        """Returns the maximum size of the next batch; raises as :meth:`QueryExecution.room`."""
        if self.execution.progress is not None:
            best = self.trie.logprob[self.queue.top()] if self.queue else None
            self.execution.report(len(self.trie), len(self.queue), best)
        limit = self.execution.limits.memory_bytes
        if limit is not None and self.memory_bytes > limit:
            raise LimitReached("memory_bytes")
        return self.execution.room()

    def evaluate(self, nodes: list[int]) -> Iterator[Expansion]:
        """Evaluates the model at some nodes, in one call if possible, and yields their
        expansions.
        """
        for node, position in zip(nodes, self.answer_cache.evaluate(nodes), strict=True):
            yield (node, *self.follow(node, position))

    def queue_children(self, node: int, ids: Ids, totals: Floats) -> None:
        """Queues the best child of an evaluated node; the others follow when it is taken."""
        if len(ids):
            self.trie.list_children(node, ids, totals)
            if len(ids) <= FEW and self.trie.more(node):
                self._recent.keep(node, (ids, totals))
            self.queue_next(node)

    def queue_next(self, parent: int) -> None:
        """Queues the next best child of an evaluated node, if there is one."""
        if self.trie.has_more(parent):
            self.trie.list_children(parent, *self._again(parent))
        child = self.trie.next_child(parent)
        if child is not None:
            self.queue.push(child)

    def _again(self, node: int) -> tuple[Ids, Floats]:
        """Returns the children of a node that was evaluated before."""
        known = self._recent.get(node)
        if known is not None:
            return known
        if not self.answer_cache.has(node):
            self.room()
        ids, totals, _ = self.follow(node, self.answer_cache.recall(node), again=True)
        self._recent.keep(node, (ids, totals))
        return ids, totals

    def follow(
        self, node: int, position: Position, *, again: bool = False
    ) -> tuple[Ids, Floats, float]:
        """Returns the tokens that may follow an evaluated node, and the totals with them and with
        an end.
        """
        self.execution.expansions += not again
        state = self.state(node)
        allowed, accepting = self.states.allowed(state), self.states.accepting[state]
        ids, logprobs, end = self.execution.split(position, allowed, accepting)
        total = self.trie.logprob[node]
        if position.unseen:
            together, each = self.execution.unseen(position, allowed, accepting)
            if each > 0:
                self.unseen[node] = np.exp(total) * together
                self.best_unseen = max(self.best_unseen, total + np.log(each))
        return ids, total + logprobs, total + end
