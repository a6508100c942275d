"""Joint searches over prefixes of any regular language, listed while the search runs.

With ``prefix_cost="joint"``, a hit costs its prefix and what follows it. The tokens of a prefix
never add probability, so the log-probability of a prefix bounds every hit that continues it or a
longer one. Prefixes are therefore listed best first, and only while the next one could still lead
to the next hit. A prefix language may be infinite, and thousands of prefixes cost no more than the
likely ones among them.
"""

from __future__ import annotations

import math
from dataclasses import replace

from formalm._core import Matcher
from formalm.constraint import Constraint
from formalm.errors import ArgumentError, LimitError, VocabularyError
from formalm.execution.arguments import prefix_token_ids
from formalm.execution.query_contexts import QueryContext, canonical_start
from formalm.execution.query_execution import QueryExecution
from formalm.models import Session
from formalm.query.decoding_rules import Decoding
from formalm.query.query import Query
from formalm.searching.frontier_search import FrontierSearch
from formalm.searching.token_search import TokenSearch

__all__ = ["EAGER_PREFIXES", "LazyPrefixes", "lazy_prefixes"]

EAGER_PREFIXES = 64
"""Up to this many prefixes are all scored at the start: a search over them can be saved."""


class LazyPrefixes:
    """The prefixes of a query, best first, each as the tokenizer spells it.

    They are the hits of a search over token sequences of their own.

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
        self._constraint, self._front = constraint, front
        after = () if query.tokenization == "all" else front
        start = QueryContext(front, b"", 0.0, listed.matcher(after=after).core)
        plain = (Decoding(), False)
        rule = plain if query.decoded == "suffix" else (query.decoding, query.renormalize)
        execution = QueryExecution(
            session,
            listed,
            [start],
            *rule,
            complete=False,
            batch_size=1,  # not used: the driver has the size of each batch
            max_tokens=None,
            limits=replace(query.limits, beams=None),
        )
        # A context is evaluated again unless the answer at its prefix is still cached.
        self._listing = TokenSearch(execution, answer_bytes=None)

    @property
    def best(self) -> float | None:
        """The log-probability of the next prefix, which bounds all further hits; None if there is
        none.
        """
        return self._listing.frontier.best_bound

    @property
    def memory_bytes(self) -> int:
        """Memory of the prefixes."""
        return self._listing.memory_bytes

    def admit(self, driver: FrontierSearch) -> bool:
        """Adds contexts to a search until no further prefix could lead to its next hit, or until
        the model was asked for more prefixes.

        Returns
        -------
        bool
            True if the model was asked: more contexts may follow.

        Raises
        ------
        LimitReached
            If a limit is reached.
        """
        while (best := self.best) is not None:
            bound = driver.frontier.best_bound
            if bound is not None and best < bound:
                return False
            node = self._listing.frontier.pop_hit()
            if node is None:
                self._list(driver, bound)
                return True
            driver.is_consistent = False
            self._add(driver, node)
            driver.is_consistent = True
        return False

    def _list(self, driver: FrontierSearch, bound: float | None) -> None:
        """Evaluates the best prefixes that could lead to the next hit of a search."""
        # A prefix that ties with the next hit comes before it.
        floor = None if bound is None else math.nextafter(bound, -math.inf)
        room = driver.room()
        try:
            self._listing.batch(room, floor)
        finally:
            driver.is_consistent = self._listing.is_consistent
        driver.execution.cut_by_context |= self._listing.execution.cut_by_context

    def _add(self, driver: FrontierSearch, node: int) -> None:
        """Adds the context of a prefix, unless the model cannot read it."""
        listing = self._listing
        token_ids = listing.frontier.path(node)
        if not driver.execution.fits(len(token_ids), listing.execution.contexts[0]):
            return
        data = listing.frontier.data(node)
        matcher = self._start(data, token_ids)
        ids, logprob = (*self._front, *token_ids), listing.frontier.logprob_of(node)
        context = QueryContext(ids, data, logprob, matcher, len(token_ids))
        driver.add_context(context, listing.rows.answer_cache.position(node))

    def _start(self, data: bytes, token_ids: list[int]) -> Matcher:
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
