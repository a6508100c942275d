"""``mass``: proven bounds on the probability of an event."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from formalm.constraint import Constraint
from formalm.cost import Cost, Progress
from formalm.errors import ArgumentError
from formalm.execution.arguments import UNSET, Prompt, checked_tolerance, positive
from formalm.execution.query_contexts import query_contexts
from formalm.execution.query_execution import LimitReached, QueryExecution
from formalm.execution.query_setup import (
    constraint_of,
    refuse_keep,
    refuse_search_limits,
    require_end_token,
    required_event,
    resolved_query,
)
from formalm.languages import Language
from formalm.models import LanguageModel, Session
from formalm.probability.bounds import BoundStatus, Classify, ProbabilityBounds
from formalm.query.events import event_language
from formalm.query.limits import Limits
from formalm.query.query import Event, Query

__all__ = ["Mass", "Measured", "mass", "mass_bounds", "measured"]


@dataclass(frozen=True)
class Mass:
    """An interval that contains the probability of an event.

    Attributes
    ----------
    low, high
        The ends, rounded outward.
    event
        The event.
    status
        ``"exact"``: nothing is undecided, and the width is rounding error. ``"reached"``: the
        interval is as narrow as ``tolerance``. ``"truncated"``: a limit stopped it.
        ``"interrupted"``: the user stopped it. ``"running"``: work is in progress.
    truncated_by
        ``"forwards"``, ``"tokens_computed"``, ``"seconds"`` or ``"memory_bytes"``; ``"length"`` if
        the undecided sequences are longer than the context or ``max_tokens``; ``"unseen"`` if the
        model does not show all tokens; None otherwise.
    nodes
        Number of token sequences examined.
    dropped
        Number of members that the query's function ``keep`` dropped.
    cost
        The cost of the answer.
    """

    low: float
    high: float
    event: Event
    status: BoundStatus
    truncated_by: str | None
    nodes: int
    dropped: int
    cost: Cost = field(repr=False, compare=False)

    @property
    def forwards(self) -> int:
        """Prefixes that the model evaluated."""
        return self.cost.forwards

    @property
    def calls(self) -> int:
        """Calls of the model; each evaluates a batch of prefixes."""
        return self.cost.calls

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.high - self.low

    def __contains__(self, probability: float) -> bool:
        return self.low <= probability <= self.high

    def __str__(self) -> str:
        by = "" if self.truncated_by is None else f" by {self.truncated_by}"
        end = f"{self.status}{by}, {self.forwards:,} forwards"
        return f"{self.low:.6g} … {self.high:.6g} ({self.event}, {end})"


def mass(
    model: LanguageModel,
    query: Query | Language | Constraint | Sequence[str],
    *,
    prompt: Prompt = None,
    event: Event = UNSET,
    limits: Limits | None = None,
    tolerance: float = 1e-3,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
) -> Mass:
    """Bounds the probability of an event: P(event | given).

    The bounds are proven, not estimated: they hold for the model's distribution however small a
    part of it was evaluated. They tighten with work, and are exact when nothing is undecided.

    Parameters
    ----------
    model
        The model.
    query
        The language, or a query. An event is required, here or there. With several prefixes in
        ``given``, the probability is their mean, weighted by ``prefix_weights``.
    prompt
        Context before the output, outside the language.
    event
        Overrides the query's. ``"complete"``, ``"token_prefix"`` and ``"prefix"`` count members of
        at most ``max_tokens`` tokens. ``"contains"`` and ``"never"`` examine that many tokens, and
        whatever is still undecided stays between the bounds. ``"token_prefix"`` is the event that
        searches rank by: the first tokens of the output spell a member. ``"prefix"``,
        ``"contains"`` and ``"never"`` are about the text of the output, wherever tokens end:
        ``"cats"`` starts with ``"cat"``.
    limits
        Overrides the query's.
    tolerance
        The width of the interval at which to stop: the probability that may stay undecided. 0
        continues until nothing is undecided or a limit is reached.
    batch_size
        Maximum number of prefixes in one call of the model.
    progress
        Called with a :class:`~formalm.cost.Progress` before each batch.

    Raises
    ------
    ArgumentError
        For an option out of range, or one that does not apply to a mass.
    LanguageError
        If the language is empty, or ``given`` does not fit it.

    Notes
    -----
    Ctrl-C returns the bounds proven so far.

    Examples
    --------
    >>> from formalm import Regex, TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> found = mass(model, Regex("a*"), event="complete", tolerance=1e-9)
    >>> 1 / 2 in found, found.status
    (True, 'reached')
    """
    found = None
    try:
        for found in mass_bounds(  # noqa: B007
            model,
            query,
            prompt=prompt,
            event=event,
            limits=limits,
            tolerance=tolerance,
            batch_size=batch_size,
            progress=progress,
        ):
            pass
    except KeyboardInterrupt:
        if found is None:
            raise
        return Mass(**{**vars(found), "status": "interrupted"})
    assert found is not None
    return found


def mass_bounds(
    model: LanguageModel,
    query: Query | Language | Constraint | Sequence[str],
    *,
    prompt: Prompt = None,
    event: Event = UNSET,
    limits: Limits | None = None,
    tolerance: float = 1e-3,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
) -> Iterator[Mass]:
    """Yields the bounds of :func:`mass` after each batch; each interval lies within the last."""
    question = measured(
        model,
        query,
        prompt=prompt,
        event=event,
        limits=limits,
        batch_size=batch_size,
        progress=progress,
    )
    return _closing(question, checked_tolerance(tolerance))


def _closing(question: Measured, tolerance: float) -> Iterator[Mass]:
    low, high = question.interval()
    yield question.mass(low, high, "running", None)
    status: BoundStatus = "running"
    limit: str | None = None
    steps = question.bounds.run()
    while status == "running":
        try:
            next(steps)
        except StopIteration:
            limit = question.length_limit()
            status = "exact" if limit is None else "truncated"
        except LimitReached as reached:
            status, limit = "truncated", str(reached)
        now = question.interval()
        low, high = max(low, now[0]), min(high, now[1])
        if status != "exact" and high - low <= tolerance:
            status, limit = "reached", None
        yield question.mass(low, high, status, limit)


@dataclass
class Measured:
    """A mass query ready to run: its task, bounds and event."""

    bounds: ProbabilityBounds
    session: Session
    event: Event

    def interval(self) -> tuple[float, float]:
        """Returns the current bounds, rounded outward."""
        bounds = self.bounds
        decided = math.fsum([bounds.low(cell) for cell in list(bounds.cells)])
        low = max(0.0, math.nextafter(decided - bounds.error, -1.0))
        high = min(1.0, math.nextafter(decided + bounds.error + bounds.undecided, 2.0))
        if self.event != "never":
            return low, high
        return max(0.0, math.nextafter(1 - high, -1)), min(1.0, math.nextafter(1 - low, 2))

    def length_limit(self) -> str | None:
        """Returns the reason why something stays undecided, if something does."""
        if not self.bounds.undecided:
            return None
        return "unseen" if self.bounds.hidden else "length"

    def mass(self, low: float, high: float, status: BoundStatus, limit: str | None) -> Mass:
        """Returns the current state as a result."""
        nodes, cost = len(self.bounds.frontier), self.bounds.execution.cost()
        return Mass(
            low, high, self.event, status, limit, nodes, self.bounds.execution.dropped, cost
        )


def measured(
    model: LanguageModel,
    query: object,
    *,
    prompt: Prompt,
    event: object,
    limits: Limits | None,
    batch_size: int,
    classify: Classify | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Measured:
    """Checks a mass query and returns it ready to run."""
    positive("batch_size", batch_size, optional=False)
    session = Session(model)
    resolved = resolved_query(query, event=event, limits=UNSET if limits is None else limits)
    chosen = required_event(resolved, "a mass")
    if resolved.prefix_cost != "conditional":
        hint = "use prefix_weights to weight the prefixes, or drop given for the joint mass"
        raise ArgumentError("prefix_cost must be 'conditional' for a mass", hint=hint)
    refuse_keep(resolved)
    refuse_search_limits(resolved.limits, "a mass")
    if resolved.unique is not None:
        raise ArgumentError("unique must be None for a mass; it applies to searches only")
    if chosen == "complete":
        require_end_token(session)
    kind = "contains" if chosen == "never" else chosen
    language = event_language(resolved.effective_language, kind, resolved.tokenization)
    constraint = constraint_of(query, resolved, session.vocabulary, language)
    contexts = query_contexts(session, constraint, resolved, prompt, shares=True)
    execution = QueryExecution.of(
        resolved,
        session,
        constraint,
        contexts,
        complete=kind == "complete",
        batch_size=batch_size,
        progress=progress,
    )
    return Measured(ProbabilityBounds(execution, kind, classify), session, chosen)
