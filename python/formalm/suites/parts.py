"""What a suite consists of beside slots and templates."""

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
"""The kinds of metrics, and what a query asks for them; valid and yield are of free texts too."""
RATES = ("match", "found", "valid", "canonical", "ended")
"""What a free text can be."""


@dataclass(frozen=True)
class Question:
    """A query of a suite: one for each template and each combination of values of ``each``.

    Attributes
    ----------
    name
        Its name.
    ask
        ``"mass"``: the probability of all texts. ``"table"``: of each value of the open slots.
        ``"search"``: the most probable texts in order. ``"score"``: how probable some texts of the
        open slot are, beside the best ones and random ones. ``"free"``: texts that the model writes
        with nothing to keep to. ``"distortion"``: what masks change.
    templates
        The names of its templates.
    each
        Slots that are filled, one value at a time; the others are open.
    given
        Whether the text before the first open slot is taken for granted; or the name of a slot that
        is filled: the text up to it, itself included, is.
    prompt
        What stands in front, outside the language.
    tolerance
        How much probability may stay undecided; None where nothing is bounded.
    rows
        Facts that are asked one by one; their columns fill slots of their names.
    targets, answer
        For scores: texts that the open slot may have, or the column that has the one of each row.
    draws, seed
        How many texts are drawn, and from which seed.
    oracle, judge
        What tells whether a text that was found is real, and the slot it is shown; None is the
        whole text.
    begins
        A text that the members looked at begin with, where ``given`` has no words for it.
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
        Its name, and what is computed.
    query
        Whose answers.
    between
        The slot whose two values are compared: distances and ratios.
    of
        The open slot whose values are told apart: distances, ratios and shares.
    targets
        Texts, as the open slots may have them together, whose ranks are wanted; of a score, those
        of its texts that the metric is about, and () all of them.
    answer
        In their place: the column of the query's rows that has the text of each.
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
    """Which values of a ratio's slot differ by more than a margin, or which of two forms is better.

    Attributes
    ----------
    name, metric
        Its name, and the ratio.
    test
        ``"exact"``: about these templates: their mean is beyond the margin. ``"sign_flips"``: about
        templates like these, which are taken for a sample. ``"mcnemar"``: whether one accuracy is
        above another on the same rows.
    margin
        What does not matter.
    correction
        For the number of values: ``"holm"``, ``"benjamini_hochberg"`` or ``"none"``.
    level
        Of the tests; None for ``"exact"``.
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
    """What has to be true.

    Attributes
    ----------
    metric
        Every number of it is at least ``minimum`` and at most ``maximum``.
    comparison
        Exactly the values ``flagged`` differ.
    """

    metric: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    comparison: str | None = None
    flagged: tuple[str, ...] = ()
