"""Probability intervals and the mass table, whose cells share one undecided mass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from formalm.cost import Cost
from formalm.errors import ArgumentError
from formalm.query.query import Event

__all__ = ["BoundStatus", "Cell", "Interval", "MassTable"]

BoundStatus = Literal["running", "exact", "reached", "truncated", "interrupted"]
Cell = tuple[str | None, ...]
Where = Mapping[str, str | None]


class Interval(NamedTuple):
    """An interval that contains the exact value."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.high - self.low


@dataclass(frozen=True)
class MassTable:
    """The probability of each combination of values of named groups.

    Attributes
    ----------
    groups
        The names of the groups, in the order of the cells' keys.
    event
        The event; None in a table that was read from the answers of a suite, whose query has it.
    decided
        The proven mass of each cell found; other cells have 0.
    error
        Upper bound on the relative rounding error of these numbers.
    undecided
        The mass that may still belong to any cell.
    status, truncated_by, dropped, cost
        As in :class:`~formalm.probability.mass.Mass`.
    """

    groups: tuple[str, ...]
    event: Event | None
    decided: dict[Cell, float]
    error: float
    undecided: float
    status: BoundStatus
    truncated_by: str | None
    dropped: int
    cost: Cost = field(repr=False, compare=False)

    @property
    def forwards(self) -> int:
        """Prefixes that the model evaluated."""
        return self.cost.forwards

    @property
    def cells(self) -> dict[Cell, Interval]:
        """The interval of each cell found, by its values; the largest first."""
        order = sorted(self.decided, key=lambda cell: -self.decided[cell])
        return {cell: self._interval(self.decided[cell]) for cell in order}

    def mass(self, **where: str | None) -> Interval:
        """Returns the probability of the members whose groups have these values; of all without
        values.
        """
        return self._interval(self._sum([where], []))

    def share(self, of: Where, among: Where | None = None) -> Interval:
        """Returns P(of | among): the share of the members in ``among`` that are also in ``of``.

        Parameters
        ----------
        of, among
            Values of groups; None means all members.

        Raises
        ------
        ArgumentError
            If there is no such group.
        """
        among = among or {}
        inside, outside = self._sum([among, of], []), self._sum([among], [of])
        return _share(inside, outside, self.error, self.undecided)

    def odds_ratio(self, one: Where, other: Where) -> Interval:
        """Returns the odds ratio of ``one`` and ``other``: 1 if they are independent.

        That is the odds of ``one`` among members with ``other``, over its odds among members
        without.
        """
        masses = (
            self._sum([one, other], []),
            self._sum([], [one, other]),
            self._sum([one], [other]),
            self._sum([other], [one]),
        )
        pairs = [self._interval(part) for part in masses]
        low = _ratio([one.low for one in pairs[:2]], [one.high for one in pairs[2:]])
        high = _ratio([one.high for one in pairs[:2]], [one.low for one in pairs[2:]])
        return Interval(low.low, high.high)

    def _interval(self, decided: float) -> Interval:
        slack = (self.error + 1e-15) * decided
        return Interval(max(0.0, decided - slack), min(1.0, decided + slack + self.undecided))

    def _sum(self, inside: Sequence[Where], outside: Sequence[Where]) -> float:
        """Returns the decided mass of the cells in all of the first and none of the other
        selections.
        """
        for name in {name for where in (*inside, *outside) for name in where}:
            if name not in self.groups:
                hint = f"the groups are {', '.join(self.groups)}"
                raise ArgumentError(f"group must be a group of the table, got {name!r}", hint=hint)

        def holds(cell: Cell, where: Where) -> bool:
            values = dict(zip(self.groups, cell, strict=True))
            return all(values[name] == value for name, value in where.items())

        return math.fsum(
            mass
            for cell, mass in self.decided.items()
            if all(holds(cell, where) for where in inside)
            and not any(holds(cell, where) for where in outside)
        )


def _ratio(above: Sequence[float], below: Sequence[float]) -> Interval:
    """Returns the ratio of two products, in logarithms, because products of small masses
    underflow.
    """
    if 0.0 in (*above, *below):
        return Interval(
            0.0 if 0.0 in above else math.inf,
            math.inf if 0.0 in below else 0.0,
        )
    logs = [math.log(part) for part in (*above, *below)]
    total = math.fsum([*logs[: len(above)], *(-one for one in logs[len(above) :])])
    slack = 2.0**-50 * (1.0 + math.fsum(map(abs, logs)))
    if total > 709.0:
        return Interval(math.exp(709.0), math.inf)
    return Interval(math.exp(total - slack), math.exp(total + slack))


def _share(inside: float, outside: float, error: float, undecided: float) -> Interval:
    """Returns the share of one of two disjoint parts, given the mass that may belong to either."""
    slack = error + 1e-15
    least, most = inside * (1 - slack), inside * (1 + slack) + undecided
    less, more = outside * (1 - slack), outside * (1 + slack) + undecided
    # The undecided mass belongs to at most one of the two: all of it here, or all of it there.
    low = least / (least + more) if least + more else 0.0
    high = most / (most + less) if most + less else 1.0
    return Interval(max(0.0, math.nextafter(low, -1.0)), min(1.0, math.nextafter(high, 2.0)))
