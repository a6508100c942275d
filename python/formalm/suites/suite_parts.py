"""Data classes of a suite's queries, metrics, comparisons and assertions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "ASKS",
    "METRICS",
    "Assertion",
    "Comparison",
    "Metric",
    "Question",
]

ASKS = ("mass", "table", "search", "score", "free", "distortion")
METRICS = {
    "mass": "mass",
    "share": "table",
    "total_variation": "table",
    "jensen_shannon": "table",
    "log_ratio": "table",
    "log_odds_ratio": "table",
    "rank": "search",
    "accuracy": "search",
    "best": "search",
    "valid": "search",
    "yield": "search",
    "attempts": "mass",
    "logprob": "score",
    "exposure": "score",
    "rate": "free",
    "variation": "distortion",
}
"""The kinds of metrics, and the kind of query of each; valid and yield apply to free texts too."""
RATES = ("match", "found", "valid", "canonical", "ended")
"""The properties of a free text whose share a metric can report."""


@dataclass(frozen=True)
class Question:
    """A query of a suite: one item per template and combination of values of ``each``.

    Attributes
    ----------
    name
        Its name.
    ask
        ``"mass"``: the probability of all strings. ``"table"``: that of each value of the open
        slots. ``"search"``: the most probable strings in order. ``"score"``: the probability of
        targets in the open slot, compared with the best strings and random ones. ``"free"``:
        unconstrained texts. ``"distortion"``: the effect of masks.
    templates
        The names of its templates.
    each
        Slots that are filled, one value at a time; the others are open.
    given
        Whether the text before the first open slot is given; or the name of a filled slot, up to
        and including which the text is given.
    prompt
        Context outside the language.
    tolerance
        Probability that may remain undecided; None if nothing is bounded.
    rows
        Facts that fill slots row by row: a column fills the slot of its name.
    targets, answer
        For scores: strings for the open slot, or the column with the string of each row.
    draws, seed
        The number of draws, and their seed.
    oracle, judge
        The oracle, and the slot that it sees; None is the whole string.
    begins
        A prefix of the members to consider, if ``given`` cannot express it.
    fields
        The other fields of a :class:`~formalm.Query`, as in its files.
    """

    name: str
    ask: str
    templates: tuple[str, ...]
    each: tuple[str, ...] = ()
    given: bool | str = True
    prompt: str | None = None
    tolerance: float | None = None
    rows: str | None = None
    targets: tuple[str, ...] = ()
    answer: str | None = None
    draws: int = 0
    seed: int = 0
    oracle: str | None = None
    judge: str | None = None
    begins: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Metric:
    """A number for each answer, or each pair of answers.

    Attributes
    ----------
    name, kind
        Its name and kind.
    query
        The query whose answers it uses.
    between
        The slot whose two values are compared: for distances and ratios.
    of
        The open slot whose values are distinguished: for distances, ratios and shares.
    targets
        Strings, as tuples over the open slots, whose ranks are wanted; for scores, the strings that
        the metric is about, and () for all of them.
    answer
        Instead of targets: the column of the query's rows with the string of each.
    """

    name: str
    kind: str
    query: str
    between: str | None = None
    of: str | None = None
    targets: tuple[str, ...] = ()
    answer: str | None = None


@dataclass(frozen=True)
class Comparison:
    """Flags values of a ratio's slot that differ by more than a margin, or the better form.

    Attributes
    ----------
    name, metric
        Its name, and the ratio.
    test
        ``"exact"``: whether the mean over these templates exceeds the margin. ``"sign_flips"``: the
        same for the population of which these templates are a sample. ``"mcnemar"``: whether one
        accuracy is above another on the same rows.
    margin
        The difference that does not matter.
    correction
        For the number of values: ``"holm"``, ``"benjamini_hochberg"`` or ``"none"``.
    level
        The level of the tests; None for ``"exact"``.
    other
        The accuracy that the first is compared with.
    """

    name: str
    metric: str
    test: str
    margin: float = 0.0
    correction: str | None = None
    level: float | None = None
    other: str | None = None


@dataclass(frozen=True)
class Assertion:
    """A requirement on a metric or a comparison.

    Attributes
    ----------
    metric
        The metric all of whose values must be at least ``minimum`` and at most ``maximum``.
    comparison
        The comparison that must flag exactly the values ``flagged``.
    """

    metric: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    comparison: str | None = None
    flagged: tuple[str, ...] = ()
