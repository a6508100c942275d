"""Proven bounds for the probability of an event, refined batch by batch.

The native frontier (``mass_search.rs``) holds all token sequences whose event is undecided, each
with its probability as its mass. A decided sequence adds its mass to the event or to nothing. An
evaluated sequence passes its mass to its children. The probability lies between the decided mass
and the decided plus the undecided mass.

``token_prefix`` is decided at the first node whose tokens spell a member. ``prefix`` and
``contains`` become languages whose members stay members whatever follows, so a node is decided as
soon as its text is accepted, wherever its last token ends. ``never`` is the complement of
``contains``. With canonical tokens, a node is decided once its own tokens are canonical.

Rounding is outward: every sum carries a bound of its own error, and every token the stated error of
its row's log-sum-exp. "The probability" is that of the model's row normalized exactly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from formalm._core import MassFrontier
from formalm.execution.model_rows import ModelRows, cache_bytes, frontier_contexts
from formalm.execution.query_execution import QueryExecution
from formalm.models import Position

__all__ = ["BoundStatus", "Classify", "Interval", "ProbabilityBounds"]

EPSILON = 2.0**-52
MOST_TERMS = 64
"""Masses of a cell that are added as they are; more are replaced by their sum and its remainder."""
Classify = Callable[[bytes], object]
BoundStatus = Literal["running", "exact", "reached", "truncated", "interrupted"]
Decided = list[tuple[int, float, float]]
"""Nodes, their masses, and bounds on the relative errors of these."""


class Interval(NamedTuple):
    """An interval that contains the exact value."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.high - self.low


class ProbabilityBounds:
    """The bounds of one query, refined by :meth:`run`.

    Parameters
    ----------
    execution
        The search context; the masses of its roots add up to one probability.
    event
        ``"complete"``, ``"token_prefix"``, ``"prefix"`` or ``"contains"``.
    classify
        Maps the text that decided the event to a cell. Masses are kept separately for each cell.

    Attributes
    ----------
    frontier
        The undecided sequences.
    cells
        The decided masses of each cell.
    relative_error
        Upper bound on the relative rounding error of any sum of them.
    hidden
        True if some mass stays undecided because the model does not show all tokens.
    """

    def __init__(
        self, execution: QueryExecution, event: str, classify: Classify | None = None
    ) -> None:
        self.execution = execution
        session = execution.session
        self.frontier = MassFrontier(
            execution.constraint.spelled.core,
            frontier_contexts(execution),
            given_lengths=[context.given_length for context in execution.contexts],
            end_token_ids=session.vocabulary.end_token_ids,
            complete=event == "complete",
            max_tokens=execution.max_tokens,
            is_unbounded=event == "contains",
            row_error=session.row_error,
            cache_bytes=cache_bytes(execution),
        )
        self._rows = ModelRows(execution, self.frontier, answer_bytes=None)
        if execution.decoding.is_plain:  # an expansion checks the row that it reads
            session.defers_checks = True
        self._reads_rows = execution.decoding.is_plain and session.shown_tokens is None
        self.cells: dict[object, list[float]] = defaultdict(list)
        self._classify = classify
        self._error = 0.0
        self.relative_error = 0.0
        self._finished = False
        self.hidden = False

    @property
    def error(self) -> float:
        """Upper bound on the rounding error of the decided masses."""
        return self._error

    @property
    def is_exhausted(self) -> bool:
        """True if no undecided sequence can be evaluated."""
        return self.frontier.is_exhausted

    @property
    def undecided(self) -> float:
        """Upper bound on the mass that may still belong to the event."""
        # When only sequences that cannot be evaluated are left, no large numbers are subtracted.
        return self.frontier.parked_mass if self._finished else self.frontier.open_mass

    def low(self, cell: object) -> float:
        """Returns the decided mass of a cell, before its error is subtracted."""
        return math.fsum(self.cells.get(cell, ()))

    def run(self) -> Iterator[None]:
        """Refines the bounds, one model batch at a time.

        Raises
        ------
        LimitReached
            If a limit is reached; the bounds stay valid.
        """
        frontier, execution = self.frontier, self.execution
        while not frontier.is_exhausted:
            nodes, again, decided = frontier.collect(self._room())
            self._decide(decided)
            execution.cut_by_context |= frontier.cut_by_context
            try:
                positions = self._rows.evaluate(nodes, again)
            except BaseException:
                frontier.put_back(nodes, again)
                raise
            self._decide(self._expand(nodes, again, positions))
            execution.expansions += len(nodes)
            yield None
        self._finished = True

    def _room(self) -> int:
        """Reports progress and returns the maximum size of the next batch."""
        frontier = self.frontier
        counts = (len(frontier), frontier.queued)
        return self.execution.room_for(*counts, frontier.best, frontier.memory_bytes)

    def _expand(self, nodes: list[int], again: list[int], positions: list[Position]) -> Decided:
        """Passes the masses of evaluated nodes to their children, and returns decided ones."""
        both, frontier = nodes + again, self.frontier
        if self._reads_rows:
            rows, session = [position.row for position in positions], self.execution.session
            values, normalized = [row.values for row in rows], [row.is_normalized for row in rows]
            sums, decided = frontier.expand_rows(both, values, normalized, len(again))
            for row, (log_sum, code) in zip(rows, sums, strict=True):
                row.accept(log_sum, code)
            session.row_error = max(session.row_error, frontier.row_error)
            return decided
        decided = frontier.expand_kept(both, list(map(self._rows.kept, positions)), len(again))
        for node, position in zip(nodes, positions, strict=False):
            if position.unseen:
                self._park_unseen(node, position)
        return decided

    def _park_unseen(self, node: int, position: Position) -> None:
        """Keeps the mass that a partial model did not show as undecided."""
        together, _ = self.execution.unseen(position, *self.frontier.allowed(node))
        if together:
            self.hidden = True
            self.frontier.park(node, together)

    def _decide(self, decided: Decided) -> None:
        execution, classify = self.execution, self._classify
        for node, mass, relative_error in decided:
            cell: object = None
            if classify is not None or execution.keep is not None:
                context = execution.contexts[self.frontier.root(node)]
                data = context.data + self.frontier.data(node)[context.skip :]
                if not execution.keeps(data):
                    continue
                cell = None if classify is None else classify(data)
            execution.covered = (execution.covered or 0.0) + mass
            self._add(self.cells[cell], mass)
            self._error += mass * relative_error
            self.relative_error = max(self.relative_error, relative_error)

    def _add(self, terms: list[float], mass: float) -> None:
        terms.append(mass)
        if len(terms) > MOST_TERMS:
            total = math.fsum(terms)
            terms[:] = [total, math.fsum([*terms, -total])]  # the remainder is rounded once
            self._error += EPSILON**2 * total
            self.relative_error += EPSILON**2
