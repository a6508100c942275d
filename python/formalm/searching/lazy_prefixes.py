"""Joint searches over prefixes of any regular language, listed while the search runs.

With ``prefix_cost="joint"``, a hit costs its prefix and what follows it. The tokens of a prefix
never add probability, so the log-probability of a prefix bounds every hit that continues it or a
longer one. Prefixes are therefore listed best first, and only while the next one could still lead
to the next hit. A prefix language may be infinite, and thousands of prefixes cost no more than the
likely ones among them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Protocol

import numpy as np

from formalm._core import Matcher
from formalm.constraint import Constraint
from formalm.errors import ArgumentError, LimitError, VocabularyError
from formalm.execution.arguments import prefix_token_ids
from formalm.execution.frontier import Frontier
from formalm.execution.query_contexts import QueryContext, canonical_start
from formalm.execution.query_execution import QueryExecution, RawHit
from formalm.models import Position, Session
from formalm.query.query import Query
from formalm.query.state_ids import States
from formalm.searching.string_search import StringSearch
from formalm.searching.token_search import TokenSearch
from formalm.searching.tokenization_nodes import StringEntry

__all__ = ["EAGER_PREFIXES", "LazyPrefixes", "LazyStringSearch", "LazyTokenSearch", "lazy_prefixes"]

EAGER_PREFIXES = 64
"""Up to this many prefixes are all scored at the start: a search over them can be saved."""


@dataclass(frozen=True, eq=False)
class _Prefix:
    """A prefix in tokens, the state of the prefix language after it, and the position before its
    last token.
    """

    token_ids: tuple[int, ...]
    logprob: float
    state: int
    before: Position | None = None


class _Driver(Protocol):
    """A search that contexts can be added to."""

    execution: QueryExecution
    frontier: Frontier

    def best_bound(self) -> float:
        """Returns an upper bound on the log-probability of the next hit so far."""

    def add_context(self, context: QueryContext, position: Position | None) -> None:
        """Adds a starting point."""


class LazyPrefixes:
    """The prefixes of a query, best first, each as the tokenizer spells it.

    Parameters
    ----------
    session, constraint, query, front
        The model, the constraint of the members, the query, and the tokens before the prefix.
    listed
        The constraint of the prefixes, over canonical tokens.
    """

    def __init__(
        self,
        session: Session,
        constraint: Constraint,
        query: Query,
        front: tuple[int, ...],
        listed: Constraint,
    ) -> None:
        self._session, self._constraint, self._query, self._front = (
            session,
            constraint,
            query,
            front,
        )
        self._states = States(listed)
        self._tokens = [data or b"" for data in session.vocabulary.tokens()]
        self._queue: list[tuple[float, int, tuple[int, ...], _Prefix]] = []
        after = () if query.tokenization == "all" else front
        start = self._states.of(listed.matcher(after=after).core)
        self._push(_Prefix((), 0.0, start))

    @property
    def best(self) -> float:
        """The log-probability of the next prefix, which bounds all further hits; minus infinity
        if there is none.
        """
        return -self._queue[0][0] if self._queue else -math.inf

    def admit(self, driver: _Driver) -> None:
        """Adds contexts to a search until no further prefix could lead to its next hit.

        Raises
        ------
        LimitReached
            If a limit is reached.
        """
        while self._queue and self.best >= driver.best_bound():
            room = driver.execution.room()
            due: list[_Prefix] = []
            while len(due) < room and self._queue and self.best >= driver.best_bound():
                prefix = heappop(self._queue)[3]
                if not driver.execution.fits(len(prefix.token_ids), self._at_front()):
                    continue
                if self._states.is_finished(prefix.state):
                    self._add(driver, prefix, None)
                else:
                    due.append(prefix)
            for prefix, position in zip(due, self._evaluated(due), strict=True):
                self._continue(prefix, position)
                if self._states.accepting[prefix.state]:
                    self._add(driver, prefix, position)

    def _at_front(self) -> QueryContext:
        return QueryContext(self._front, b"", 0.0, self._constraint.core.matcher())

    def _push(self, prefix: _Prefix) -> None:
        heappush(self._queue, (-prefix.logprob, len(prefix.token_ids), prefix.token_ids, prefix))

    def _evaluated(self, due: list[_Prefix]) -> list[Position]:
        """Evaluates the model after some prefixes, from their parents' states where it can."""
        if not due:
            return []
        if not self._session.incremental:
            return self._session.start_many([(*self._front, *one.token_ids) for one in due])
        found: dict[int, Position] = {}
        going_on = [one for one in due if one.before is not None]
        before = [one.before for one in going_on if one.before is not None]
        answers = self._session.extend(before, [one.token_ids[-1] for one in going_on])
        found.update(zip(map(id, going_on), answers, strict=True))
        anew = [one for one in due if one.before is None]
        answers = self._session.start_many([(*self._front, *one.token_ids) for one in anew])
        found.update(zip(map(id, anew), answers, strict=True))
        return [found[id(one)] for one in due]

    def _continue(self, prefix: _Prefix, position: Position) -> None:
        """Queues the prefixes that are one token longer."""
        row = np.minimum(np.asarray(position.logprobs, dtype=np.float64), 0.0)
        if self._query.decoded != "suffix":
            row = self._query.decoding.distribution(row, renormalize=self._query.renormalize)
        for token in self._states.allowed(prefix.state).tolist():
            logprob = prefix.logprob + float(row[token])
            if logprob > -math.inf:
                state = self._states.step(prefix.state, token)
                self._push(_Prefix((*prefix.token_ids, token), logprob, state, position))

    def _add(self, driver: _Driver, prefix: _Prefix, position: Position | None) -> None:
        if not self._states.accepting[prefix.state]:
            return
        data = b"".join(self._tokens[token] for token in prefix.token_ids)
        matcher = self._start(data, prefix.token_ids)
        ids = (*self._front, *prefix.token_ids)
        context = QueryContext(ids, data, prefix.logprob, matcher, len(prefix.token_ids))
        driver.add_context(context, position)

    def _start(self, data: bytes, token_ids: tuple[int, ...]) -> Matcher:
        if self._constraint.tokenization == "canonical":
            return canonical_start(self._constraint, self._front, data, token_ids)
        matcher = self._constraint.core.matcher()
        matcher.advance_bytes(data)
        return matcher


def lazy_prefixes(
    session: Session, constraint: Constraint, query: Query, prompt: object
) -> LazyPrefixes | None:
    """Returns the prefixes of a query if they are to be listed while the search runs.

    None if they are few, if they are conditions with equal costs, all of which come first, or if
    the tokenizer's own tokens cannot be walked.
    """
    given = query.given
    if given is None or query.prefix_cost != "joint" or query.boundary != "split":
        return None
    if session.shown_tokens is not None:
        return None
    try:
        automaton = given.to_automaton()
        if automaton.is_finite and automaton.count() <= EAGER_PREFIXES:
            return None
    except LimitError:
        pass  # too large to count is more than a few
    front = tuple(prefix_token_ids(session, prompt, query.bos))
    if session.vocabulary.space_after(front) is not None:
        return None
    try:
        listed = Constraint(given, session.vocabulary, tokenization="canonical")
    except (ArgumentError, VocabularyError):
        return None
    return LazyPrefixes(session, constraint, query, front, listed)


class LazyTokenSearch(TokenSearch):
    """A search over token sequences whose prefixes are listed while it runs."""

    def __init__(self, execution: QueryExecution, prefixes: LazyPrefixes) -> None:
        super().__init__(execution)
        self.prefixes = prefixes

    def run(self) -> Iterator[RawHit | None]:
        """Yields the hits, and None after each batch."""
        self.prefixes.admit(self)
        for found in super().run():
            yield found
            self.prefixes.admit(self)

    def is_due(self, node: int) -> bool:
        """Returns whether a node may fill a batch: none that comes after the next prefix."""
        return self.frontier.trie.logprob[node] >= self.prefixes.best

    def best_bound(self) -> float:
        """Returns the log-probability of the best queued sequence."""
        queue = self.frontier.queue
        return self.frontier.trie.logprob[queue.top()] if queue else -math.inf

    def add_context(self, context: QueryContext, position: Position | None) -> None:
        """Queues a new root."""
        self.frontier.queue.push(self.frontier.add_context(context, position))


class LazyStringSearch(StringSearch):
    """A search over strings whose prefixes are listed while it runs."""

    def __init__(self, execution: QueryExecution, prefixes: LazyPrefixes) -> None:
        super().__init__(execution)
        self.prefixes = prefixes

    def run(self) -> Iterator[RawHit | None]:
        """Yields the hits, and None after each batch."""
        self.prefixes.admit(self)
        yield from super().run()

    def pop(self) -> StringEntry:
        """Removes and returns the entry with the largest bound, after the prefixes above it."""
        self.prefixes.admit(self)
        found = super().pop()
        if not self.heap:
            # An empty queue ends the search, so the next prefixes have to be there before.
            self.prefixes.admit(self)
        return found

    def best_bound(self) -> float:
        """Returns the largest bound of a queued string."""
        return -self.heap[0][0][0] if self.heap else -math.inf

    def add_context(self, context: QueryContext, position: Position | None) -> None:
        """Queues the empty string after a new root."""
        node = self.frontier.add_context(context, position)
        self.tokenizations.length.append(0)
        number = self.frontier.trie.root(node)
        pending = [node] if self.may_be_extended(node) else []
        state = self.frontier.trie.state[node]
        self.add(StringEntry(b"", state, number, exact=[node], pending=pending))
