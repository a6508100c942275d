"""``mass_table`` and ``conditional_mass``: masses by named group, and shares of a language."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from formalm.constraint import Constraint
from formalm.cost import Progress
from formalm.errors import ArgumentError
from formalm.execution.arguments import UNSET, checked_tolerance
from formalm.execution.prompts import Prompt
from formalm.execution.query_execution import LimitReached
from formalm.execution.query_setup import required_event, resolved_query
from formalm.languages import Language, as_language
from formalm.models import LanguageModel
from formalm.probability.bounds import Classify
from formalm.probability.mass import measured
from formalm.probability.mass_intervals import BoundStatus, Cell, Interval, MassTable
from formalm.query.events import deciding_member
from formalm.query.limits import Limits
from formalm.query.query import Event, Query

__all__ = ["Interval", "MassTable", "conditional_mass", "mass_table"]


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
    language = resolved.asked
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
    member = deciding_member(resolved.asked, chosen)
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
            if bounds.undecided <= tolerance and bounds.frontier.queue:
                return now("reached", None)
    except LimitReached as reached:
        return now("truncated", str(reached))
    except KeyboardInterrupt:
        return last
    limit = question.length_limit()
    return now("exact" if limit is None else "truncated", limit)
