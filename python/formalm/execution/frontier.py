"""The search frontier: a trie of token sequences, its priority queue, and model evaluations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.execution.model_answer_cache import (
    STATE_BYTES,
    ByteBudgetLru,
    ModelAnswerCache,
    children_bytes,
)
from formalm.execution.query_contexts import QueryContext
from formalm.execution.query_execution import LimitReached, QueryExecution
from formalm.execution.sequence_trie import END, UNKNOWN, NodeQueue, SequenceTrie
from formalm.models import LogitRow, Position
from formalm.query.state_ids import States

__all__ = ["Expanded", "Expansion", "Frontier"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
RECENT_BYTES = 16 << 20
FEW = 1024
"""Up to this many children are stored from the start: they take less memory than the answer."""
Expansion = tuple[int, Ids, Floats, float]
"""A node, the tokens that may follow, the totals with them, and the total with an end."""
ROW_LISTED = 32
"""Number of children that are listed from a row at first. Selecting 32 takes 10 µs more than
selecting 8; listing the next ones takes another pass over the row."""
ERROR_FACTOR = 2.1
"""A mass of children that is summed once and subtracted child by child has the error of two
logarithms, in either direction."""


class Expanded(NamedTuple):
    """An evaluated node.

    Attributes
    ----------
    node
        The node.
    mass
        The mass of its children: that of the node times their probability.
    error
        Upper bound on the error of ``mass`` against the masses of the children one by one, beside
        that of float64.
    end
        The total with an end.
    children
        Tokens and totals: the best ones, or all.
    has_more
        True if there may be others; None if ``children`` are all, in the order of ids.
    """

    node: int
    mass: float
    error: float
    end: float
    children: tuple[Ids, Floats]
    has_more: bool | None = None


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
        prefixes = [context.token_ids for context in execution.contexts]
        budget = execution.limits.state_bytes or STATE_BYTES
        self.answer_cache = ModelAnswerCache(execution.session, self.trie, prefixes, budget)
        self.unseen: dict[int, float] = {}
        self.best_unseen = -np.inf
        self._recent: ByteBudgetLru[tuple[Ids, Floats]] = ByteBudgetLru(
            RECENT_BYTES, children_bytes
        )
        self._from_rows: set[int] = set()
        self._ends = execution.session.vocabulary.end_token_ids
        # A list of all tokens takes as long as hundreds of expansions.
        self._token_bytes = execution.constraint.spelled.core.token_bytes
        self._size = len(execution.constraint.spelled)

    @property
    def memory_bytes(self) -> int:
        """Memory of the trie and its queue."""
        return self.trie.memory_bytes + self.queue.memory_bytes

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
        spelled = (self._token_bytes(token) for token in self.trie.path(node) if token != END)
        found = b"".join(token or b"" for token in spelled)
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

    def expand(self, nodes: list[int]) -> Iterator[Expanded]:
        """Evaluates nodes as :meth:`evaluate`, and queues the best child of each; the others follow
        when it is taken. Children are listed from the model's row, a few at a time.
        """
        if not self.execution.decoding.is_plain or self.execution.session.shown_tokens is not None:
            for node, ids, totals, end in self.evaluate(nodes):
                yield Expanded(node, float(np.exp(totals).sum()), 0.0, end, (ids, totals))
            return
        session = self.execution.session
        for node, position in zip(nodes, self.answer_cache.evaluate(nodes), strict=True):
            self.execution.expansions += 1
            row, state = position.row, self.state(node)
            accepting = self.states.accepting[state]
            words, size = self.states.words(state), self._size
            ends = self._ends if accepting else ()
            log_sum, allowed, end, code, ids, values = _core.expand_row(
                row.values, words, size, ends, row.is_normalized, ROW_LISTED
            )
            row.accept(log_sum, code)
            error = row.error
            session.row_error = max(session.row_error, error)
            total = self.trie.logprob[node]
            base = total - self._offset(row)
            mass = float(np.exp(base + allowed))
            error *= mass * ERROR_FACTOR
            yield Expanded(
                node, mass, error, base + end, (ids, base + values), len(ids) == ROW_LISTED
            )

    def queue_expanded(self, expanded: Expanded) -> None:
        """Queues the best child of an expanded node."""
        ids, totals = expanded.children
        if expanded.has_more is None:
            self.queue_children(expanded.node, ids, totals)
        elif len(ids):
            self.trie.append_children(expanded.node, ids, totals, more=expanded.has_more)
            if expanded.has_more:
                self._from_rows.add(expanded.node)
            self.queue_next(expanded.node)

    def _offset(self, row: LogitRow) -> float:
        return row.log_sum if self.execution.normalize else row.offset

    def _list_more(self, node: int) -> None:
        """Lists the next best children of a node whose children are listed from its row."""
        if not self.answer_cache.has(node):
            self.room()
        row = self.answer_cache.recall(node).row
        count = self.trie.listed_count(node) + ROW_LISTED
        last = self.trie.last_listed(node)
        ids, values = row.best(
            self.states.words(self.state(node)), self._size, count, (last, row.value(last))
        )
        totals = self.trie.logprob[node] - self._offset(row) + values
        self.trie.append_children(node, ids, totals, more=len(ids) == count)

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
            if parent in self._from_rows:
                self._list_more(parent)
            else:
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
