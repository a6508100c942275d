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

ASKS = ("mass", "table", "search")
METRICS = {
    "mass": "mass",
    "share": "table",
    "total_variation": "table",
    "jensen_shannon": "table",
    "log_ratio": "table",
    "log_odds_ratio": "table",
    "rank": "search",
}
"""The kinds of metrics, each with what its query asks."""


@dataclass(frozen=True)
class Question:
    """A query of a suite: one for each template and each combination of values of ``each``.

    Attributes
    ----------
    name
        Its name.
    ask
        ``"mass"``: the probability of all texts. ``"table"``: of each value of the open slots.
        ``"search"``: the most probable texts in order.
    templates
        The names of its templates.
    each
        Slots that are filled, one value at a time; the others are open.
    given
        Whether the text before the first open slot is taken for granted.
    prompt
        What stands in front, outside the language.
    eps
        How much probability may stay undecided; None for searches.
    fields
        The other fields of a :class:`~formalm.Query`, as in its files.
    """

    name: str
    ask: str
    templates: tuple[str, ...]
    each: tuple[str, ...] = ()
    given: bool = True
    prompt: str | None = None
    eps: float | None = None
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
        Texts, as the open slots may have them together, whose ranks are wanted.
    """

    name: str
    kind: str
    query: str
    between: str | None = None
    of: str | None = None
    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class Comparison:
    """Which values of a ratio's slot differ by more than a margin.

    Attributes
    ----------
    name, metric
        Its name, and the ratio.
    test
        ``"exact"``: about these templates: their mean is beyond the margin. ``"sign_flips"``: about
        templates like these, which are taken for a sample.
    margin
        What does not matter.
    correction
        For the number of values: ``"holm"``, ``"benjamini_hochberg"`` or ``"none"``.
    level
        Of the tests; None for ``"exact"``.
    """

    name: str
    metric: str
    test: str
    margin: float = 0.0
    correction: str | None = None
    level: float | None = None


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
