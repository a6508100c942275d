"""``mass_table`` and ``conditional_mass``: masses by named group, and shares of a language.

The cells of a table share one undecided mass, which a share counts once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from formalm.constraint import Constraint
from formalm.cost import Cost, Progress
from formalm.errors import ArgumentError
from formalm.execution.arguments import UNSET, Prompt, checked_tolerance
from formalm.execution.query_execution import LimitReached
from formalm.execution.query_setup import required_event, resolved_query
from formalm.languages import Language, as_language
from formalm.models import LanguageModel
from formalm.probability.bounds import BoundStatus, Classify, Interval
from formalm.probability.event_mass import measured
from formalm.query.events import deciding_member
from formalm.query.limits import Limits
from formalm.query.query import Event, Query

__all__ = ["Cell", "Interval", "MassTable", "conditional_mass", "mass_table"]

Cell = tuple[str | None, ...]
Where = Mapping[str, str | None]


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
        As in :class:`~formalm.probability.Mass`.
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


def mass_table(
    model: LanguageModel,
    query: Query | Language | Constraint,
    groups: Sequence[str] | None = None,
    *,
    prompt: Prompt = None,
    event: Event = UNSET,
    limits: Limits | None = None,
    tolerance: float = 1e-3,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
) -> MassTable:
    """Bounds the probability of each combination of named groups, in one pass over the language.

    With the events ``"complete"`` and ``"token_prefix"``, the groups are those of the member that
    the tokens spell. With ``"prefix"``, they are those of the shortest member that the output
    starts with; with ``"contains"``, of the member in it that ends first, the longest of several.
    ``"never"`` has no member and no groups.

    Parameters
    ----------
    model, prompt, event, limits, batch_size, progress
        As in :func:`~formalm.mass`.
    query
        The language, or a query; the groups are those of its language.
    groups
        Names of groups; None means all named groups.
    tolerance
        The probability that may stay undecided, over all cells together.

    Raises
    ------
    ArgumentError
        For a group that the language does not have.

    Examples
    --------
    >>> from formalm import Regex, TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> query = Regex("(?P<first>[ab])(?P<second>[ab])")
    >>> table = mass_table(model, query, event="complete", tolerance=0)
    >>> round(table.share({"second": "a"}, {"first": "b"}).low, 6)
    0.666667
    """
    resolved = resolved_query(query)
    language = resolved.effective_language
    known = list(dict.fromkeys(group.name for group in language.groups if group.name is not None))
    if isinstance(groups, str):
        raise ArgumentError(f"groups must be a list of names, got {groups!r:.60}")
    names = tuple(known if groups is None else groups)
    missing = [name for name in names if name not in known]
    if missing or not names:
        what = (
            f"groups must name groups of the language, got {missing[0]!r}"
            if missing
            else "the language must have a named group"
        )
        raise ArgumentError(what, hint="name a group in a pattern: (?P<name>…)")

    def classify(data: bytes) -> Cell:
        found = language.captures(data)
        values = {} if found is None else found.groupdict()
        return tuple(values.get(name) for name in names)

    return _tabulated(
        model,
        query,
        names,
        classify,
        prompt=prompt,
        event=event,
        limits=limits,
        tolerance=tolerance,
        batch_size=batch_size,
        progress=progress,
    )


def conditional_mass(
    model: LanguageModel,
    query: Query | Language | Constraint | Sequence[str],
    *,
    of: Language | Sequence[str],
    prompt: Prompt = None,
    event: Event = UNSET,
    limits: Limits | None = None,
    tolerance: float = 1e-3,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
) -> Interval:
    """Bounds P(of | query): the share of one language among the members of another.

    Both are measured in one pass over ``query``. The event selects the member of an output as in
    :func:`mass_table`.

    Parameters
    ----------
    model, query, prompt, event, limits, tolerance, batch_size, progress
        As in :func:`mass_table`.
    of
        The language whose share is measured.

    Examples
    --------
    >>> from formalm import Regex, TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> share = conditional_mass(model, ["a", "b"], of=["a"], event="complete", tolerance=0)
    >>> round(share.low, 6), round(share.high, 6)
    (0.666667, 0.666667)
    """
    part = as_language(of)

    def classify(data: bytes) -> Cell:
        return ("in" if part.matches(data) else "out",)

    table = _tabulated(
        model,
        query,
        ("part",),
        classify,
        prompt=prompt,
        event=event,
        limits=limits,
        tolerance=tolerance,
        batch_size=batch_size,
        progress=progress,
    )
    return table.share({"part": "in"})


def _tabulated(
    model: LanguageModel,
    query: object,
    names: tuple[str, ...],
    classify: Classify,
    *,
    prompt: Prompt,
    event: object,
    limits: Limits | None,
    tolerance: float,
    batch_size: int,
    progress: Callable[[Progress], None] | None,
) -> MassTable:
    checked_tolerance(tolerance)
    resolved = resolved_query(query, event=event)
    chosen = required_event(resolved, "a table of masses")
    if chosen == "never":
        raise ArgumentError(
            "event must not be 'never' for a table of masses, because it leaves no members to"
            " classify"
        )
    member = deciding_member(resolved.effective_language, chosen)
    question = measured(
        model,
        query,
        prompt=prompt,
        event=chosen,
        limits=limits,
        batch_size=batch_size,
        classify=lambda data: classify(member(data)),
        progress=progress,
    )
    bounds = question.bounds

    def now(status: BoundStatus, limit: str | None) -> MassTable:
        decided = {cell: bounds.low(cell) for cell in bounds.cells if isinstance(cell, tuple)}
        numbers = (decided, bounds.relative_error, bounds.undecided)
        return MassTable(
            names,
            chosen,
            *numbers,
            status,
            limit,
            bounds.execution.dropped,
            bounds.execution.cost(),
        )

    # An interruption may occur inside a step, while mass is between two sums.
    last = now("interrupted", None)
    try:
        for _ in bounds.run():
            last = now("interrupted", None)
            if bounds.undecided <= tolerance and not bounds.is_exhausted:
                return now("reached", None)
    except LimitReached as reached:
        return now("truncated", str(reached))
    except KeyboardInterrupt:
        return last
    limit = question.length_limit()
    return now("exact" if limit is None else "truncated", limit)
