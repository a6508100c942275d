"""Comparisons of values over rows: McNemar's test of two accuracies, and the result for a value."""

from __future__ import annotations

from dataclasses import dataclass

from formalm.stats import Quantity, mcnemar, wilson
from formalm.suites.metrics.bounded_metrics import Answered
from formalm.suites.metrics.count_and_search_metrics import is_right
from formalm.suites.suite import Suite
from formalm.suites.suite_parts import Comparison, Metric

__all__ = ["Difference", "paired"]


@dataclass(frozen=True)
class Difference:
    """The result of a comparison for one value.

    Attributes
    ----------
    comparison, value
        The comparison, and the value of its slot.
    mean
        The mean over templates, with the bounds that the answers leave.
    p_value
        Adjusted, and the largest that the bounds allow; None for ``"exact"``.
    flagged
        Whether it differs by more than the margin; None if the bounds leave that open.
    """

    comparison: str
    value: str
    mean: Quantity
    p_value: float | None
    flagged: bool | None


def paired(suite: Suite, comparison: Comparison, answered: Answered) -> list[Difference]:
    """Applies McNemar's test, with open answers least and most favorable to a difference.

    It flags if the first accuracy is higher. The number is the difference, between the bounds of an
    interval for the discordant pairs.
    """
    one = suite.metrics[comparison.metric]
    other = suite.metrics[str(comparison.other)]
    firsts, seconds = (_told(metric, answered) for metric in (one, other))
    rows = [row for row in firsts if row in seconds]
    if not rows:
        return []
    cautious = [[firsts[row] is True for row in rows], [seconds[row] is not False for row in rows]]
    bold = [[firsts[row] is not False for row in rows], [seconds[row] is True for row in rows]]
    most, least = _tested(*cautious), _tested(*bold)
    level = float(comparison.level or 0.0)
    flagged = True if most <= level else False if least > level else None
    return [Difference(comparison.name, comparison.metric, _gain(cautious, bold), most, flagged)]


def _tested(first: list[bool], second: list[bool]) -> float:
    """Returns the p-value for "the first is better"; 1 if it is not."""
    if sum(first) <= sum(second):
        return 1.0
    return mcnemar(first, second).p_value


def _gain(cautious: list[list[bool]], bold: list[list[bool]]) -> Quantity:
    """Returns the difference of the shares, with an interval for the discordant pairs."""
    ends = []
    for first, second in (cautious, bold):
        count = len(first)
        wins = sum(a and not b for a, b in zip(first, second, strict=True))
        losses = sum(b and not a for a, b in zip(first, second, strict=True))
        share = wilson(wins, wins + losses) if wins + losses else None
        factor = (wins + losses) / count
        low, high = (0.0, 0.0) if share is None else (share.low, share.high)
        ends.append(((wins - losses) / count, factor * (2 * low - 1), factor * (2 * high - 1)))
    (value, low, _), (_, _, high) = ends
    count = len(cautious[0])
    return Quantity(
        "gain",
        value,
        low,
        high,
        0.95,
        "approximate",
        f"{count:,} pairs; Wilson on the discordant ones",
        count,
    )


def _told(metric: Metric, answered: Answered) -> dict[str | None, bool | None]:
    """Returns whether each row was right."""
    return {
        item.label: is_right(metric, item, answer)
        for item, answer in answered
        if item.question.name == metric.query
    }
