"""Search over token sequences: asks the model for what the native frontier wants to evaluate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from formalm._core import TokenFrontier
from formalm.execution.model_rows import (
    ANSWER_BYTES,
    ModelRows,
    cache_bytes,
    frontier_contexts,
    native_top_k,
)
from formalm.execution.query_execution import LimitReached, QueryExecution, RawHit
from formalm.searching.frontier_search import ContextSource, FrontierSearch

__all__ = ["TokenSearch"]


class TokenSearch(FrontierSearch):
    """One search over token sequences that spell members, most probable first.

    Ties go to the shorter, then the smaller sequence. The crate ``formalm-frontier`` has the search
    itself.

    Parameters
    ----------
    execution
        The query.
    answer_bytes
        As in :class:`~formalm.execution.model_rows.ModelRows`.
    source
        What adds contexts while the search runs, if anything does.
    """

    frontier: TokenFrontier

    def __init__(
        self,
        execution: QueryExecution,
        *,
        answer_bytes: int | None = ANSWER_BYTES,
        source: ContextSource | None = None,
    ) -> None:
        self.execution, self.source = execution, source
        ends = execution.session.vocabulary.end_token_ids
        if execution.complete and len(ends) > 1:
            # One end token that was shown says too little about all of them.
            execution.needs_all("a listing of complete texts, with several ends of sequence,")
        self.frontier = TokenFrontier(
            execution.constraint.spelled.core,
            frontier_contexts(execution),
            end_token_ids=ends,
            complete=execution.complete,
            max_tokens=execution.max_tokens,
            top_k=native_top_k(execution),
            beams=execution.limits.beams,
            cache_bytes=cache_bytes(execution),
        )
        self.rows = ModelRows(execution, self.frontier, answer_bytes)
        self.is_consistent = True
        self.best_unseen = -np.inf
        """An upper bound on the log-probability of any sequence through a token that a partial
        model did not show."""

    def restart(self, arrays: dict[str, np.ndarray], cut: tuple[bool, bool]) -> None:
        """Continues another search, given the arrays of its frontier."""
        self.frontier.restore(arrays, cut)

    def run(self) -> Iterator[RawHit | None]:
        """Yields the hits, and None after each batch."""
        frontier = self.frontier
        while True:
            if self.admit():
                yield None
                continue
            top = frontier.top()
            if top is None:
                break
            logprob, is_hit = top
            if is_hit:
                if self.best_unseen > logprob:
                    raise LimitReached("unseen")
                node = frontier.pop_hit()
                assert node is not None
                yield self._found(node)
                continue
            if self.batch(self.room(), self.floor):
                yield None
        if self.best_unseen > -np.inf:
            raise LimitReached("unseen")

    def queued_best(self) -> float | None:
        """Returns the log-probability of the best queued sequence; None if the queue is empty."""
        top = self.frontier.top()
        return None if top is None else top[0]

    def batch(self, room: int, floor: float | None) -> bool:
        """Evaluates and expands the best nodes, all above ``floor``, and returns True if there were
        any. Puts them back if the evaluation fails.
        """
        self.is_consistent = False
        nodes, again = self.frontier.collect(room, floor)
        both = nodes + again
        try:
            positions = self.rows.evaluate(nodes, again)
        except BaseException:
            self.frontier.put_back(nodes, again)
            self.is_consistent = True
            raise
        rows = self.rows.of(positions)
        self.frontier.expand(both, rows, len(again))
        self.execution.expansions += len(nodes)
        self.execution.cut_by_beam = self.frontier.cut_by_beam
        self.execution.cut_by_context |= self.frontier.cut_by_context
        for node, position in zip(both, positions, strict=True):
            if position.unseen:
                _, each = self.execution.unseen(position, *self.frontier.allowed(node))
                if each > 0:
                    total = self.frontier.logprob_of(node) + np.log(each)
                    self.best_unseen = max(self.best_unseen, total)
        self.is_consistent = True
        return bool(both)

    def _found(self, node: int) -> RawHit:
        """Returns the result for a node."""
        frontier = self.frontier
        token_ids, steps = tuple(frontier.path(node)), tuple(frontier.steps(node))
        context_index = frontier.root(node)
        context = self.execution.contexts[context_index]
        return RawHit(
            frontier.data(node)[context.skip :],
            token_ids,
            frontier.logprob_of(node),
            given=context.data,
            context_index=context_index,
            token_logprobs=steps,
        )
