"""Search over strings: asks the model for what the native frontier wants to evaluate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from formalm._core import StringFrontier
from formalm.execution.model_rows import ModelRows, cache_bytes, frontier_contexts, native_top_k
from formalm.execution.query_execution import QueryExecution, RawHit
from formalm.models import LogitRow
from formalm.searching.frontier_search import ContextSource, FrontierSearch

__all__ = ["StringSearch"]


class StringSearch(FrontierSearch):
    """One search over strings, each with the sum of all its tokenizations, most probable first.

    The crate ``formalm-frontier`` has the search itself, and the proof of its bound.

    Parameters
    ----------
    execution
        The query.
    source
        What adds contexts while the search runs, if anything does.
    """

    frontier: StringFrontier

    def __init__(self, execution: QueryExecution, *, source: ContextSource | None = None) -> None:
        execution.needs_all("a listing of strings")
        self.execution, self.source = execution, source
        self.frontier = StringFrontier(
            execution.constraint.spelled.core,
            frontier_contexts(execution),
            end_token_ids=execution.session.vocabulary.end_token_ids,
            complete=execution.complete,
            max_tokens=execution.max_tokens,
            top_k=native_top_k(execution),
            tolerance=execution.tolerance,
            cache_bytes=cache_bytes(execution),
        )
        self.rows = ModelRows(execution, self.frontier)
        # The frontier checks a whole row as it sums what the language allows.
        self._reads_rows = execution.decoding.is_plain
        execution.session.defers_checks = self._reads_rows
        self.is_consistent = True

    def restart(self, arrays: dict[str, np.ndarray], cut: tuple[bool, bool]) -> None:
        """Continues another search, given the arrays of its frontier."""
        self.frontier.restore(arrays, cut[0])

    def run(self) -> Iterator[RawHit | None]:
        """Yields every member with its total over all tokenizations, most probable first.

        Yields None after each batch.
        """
        frontier = self.frontier
        while True:
            if self.admit():
                yield None
                continue
            if frontier.is_exhausted:
                break
            room, floor = self.room(), self.floor
            frontier.begin_batch()
            while True:
                self.is_consistent = False
                found, nodes, again = frontier.step(self.execution.batch_size, floor)
                if found is not None:
                    self.is_consistent = True
                    yield self._found(*found)
                    continue
                self._record(nodes if again else nodes[:room], again=again)
                if not again:
                    break
            self.is_consistent = True
            yield None
        self.execution.cut_by_context |= frontier.cut_by_context

    def _record(self, nodes: list[int], *, again: bool) -> None:
        """Evaluates readings; queues again what waits for them, unless the step goes on."""
        evaluated = False
        try:
            if again and not all(map(self.rows.has, nodes)):
                self.room()  # raises if a limit is reached
            positions = self.rows.evaluate(*(([], nodes) if again else (nodes, [])))
            if self._reads_rows:
                self._record_rows(nodes, [position.row for position in positions])
                evaluated = True
            else:
                evaluated = True
                self.frontier.record(nodes, self.rows.of(positions))
            self.execution.expansions += 0 if again else len(nodes)
        finally:
            self.execution.cut_by_context |= self.frontier.cut_by_context
            if not again or not evaluated:
                self.frontier.requeue()
                self.is_consistent = True

    def _record_rows(self, nodes: list[int], rows: list[LogitRow]) -> None:
        """Records rows that were not checked; raises as ``LogitRow.log_sum``, and records none."""
        values = [row.values for row in rows]
        found = self.frontier.record_rows(nodes, values, [row.is_normalized for row in rows])
        for row, (log_sum, code) in zip(rows, found, strict=True):
            row.accept(log_sum, code)

    def _found(
        self,
        data: bytes,
        token_ids: list[int],
        logprob: float,
        tokenizations: int,
        context_index: int,
        steps: list[float],
    ) -> RawHit:
        """Returns the result for a member."""
        given = self.execution.contexts[context_index].data
        return RawHit(
            data,
            tuple(token_ids),
            logprob,
            tokenizations,
            given,
            context_index=context_index,
            token_logprobs=tuple(steps),
        )
