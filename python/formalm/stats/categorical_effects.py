"""Effect sizes of differences between samples of categories, with intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from formalm.errors import ArgumentError
from formalm.stats.argument_checks import (
    Integers,
    checked_counts,
    checked_number,
    scipy_part,
)
from formalm.stats.distances import jensen_shannon, total_variation
from formalm.stats.homogeneity import expected_counts
from formalm.stats.statistic_results import Quantity

__all__ = [
    "counted_jensen_shannon",
    "counted_log_odds_ratio",
    "counted_total_variation",
    "cramers_v",
]

FIXED = "fix the categories before seeing the data"


def counted_total_variation(
    one: Iterable[int], other: Iterable[int], *, confidence: float = 0.95
) -> Quantity:
    """Returns the total variation distance of two distributions, estimated from samples.

    Parameters
    ----------
    one, other
        Counts of the same categories, including categories that no sample contains.
    confidence
        Between 0 and 1.

    Returns
    -------
    Quantity
        The value is that of the observed shares, which on average are further apart than the
        distributions. The interval is valid for every sample size, and wide: a sample of n in k
        categories is within √(ln((2ᵏ − 2) · 2/α) / 2n) of its distribution (Weissman and others
        2003), and distances obey the triangle inequality.

    Raises
    ------
    ArgumentError
        For values that are not counts.

    Examples
    --------
    >>> from formalm.stats import counted_total_variation
    >>> print(counted_total_variation([600, 400], [300, 700]))
    total variation 0.3, 0.2064 … 0.3936 (0.95)
    """
    first, second, alpha = _pair(one, other, confidence)
    value = total_variation(first / first.sum(), second / second.sum()).value

    def radius(counts: Integers) -> float:
        # Hoeffding's bound for each event, but the impossible and the certain one.
        events = 2 ** len(counts) - 2
        if not events:
            return 0.0
        return math.sqrt((math.log(events) + math.log(2 / alpha)) / (2 * int(counts.sum())))

    return _around("total variation", value, radius(first) + radius(second), first, second, alpha)


def counted_jensen_shannon(
    one: Iterable[int], other: Iterable[int], *, confidence: float = 0.95
) -> Quantity:
    """Returns the Jensen-Shannon divergence of two distributions, estimated from samples, in nats.

    Parameters
    ----------
    one, other, confidence
        As in :func:`counted_total_variation`.

    Returns
    -------
    Quantity
        The value is that of the observed shares. The interval is valid for every sample size: the
        divergence of a sample from its distribution is bounded (Agrawal 2020), the Jensen-Shannon
        divergence is at most ln 2 / 2 times that, and its root obeys the triangle inequality.

    Raises
    ------
    ArgumentError
        For values that are not counts.

    Examples
    --------
    >>> from formalm.stats import counted_jensen_shannon
    >>> print(counted_jensen_shannon([600, 400], [300, 700]))
    Jensen-Shannon 0.0462, 0.01428 … 0.09634 (0.95)
    """
    first, second, alpha = _pair(one, other, confidence)
    value = jensen_shannon(first / first.sum(), second / second.sum()).value

    def radius(counts: Integers) -> float:
        divergence = _divergence_bound(len(counts) - 1, alpha / 2) / int(counts.sum())
        return math.sqrt(math.log(2) / 2 * divergence)

    both = radius(first) + radius(second)
    return _around(
        "Jensen-Shannon", value, both, first, second, alpha, top=math.log(2), scale=math.sqrt
    )


def cramers_v(
    counts: Iterable[Iterable[int]], *, confidence: float = 0.95, corrected: bool = True
) -> Quantity:
    """Returns Cramér's V: 0 if all groups have one distribution, 1 if the group determines the
    category.

    Parameters
    ----------
    counts
        ``(groups, categories)``, without empty rows and columns.
    confidence
        Between 0 and 1.
    corrected
        Whether the value excludes the part due to chance (the degrees of freedom are subtracted
        from the chi-square statistic). The interval is the same.

    Returns
    -------
    Quantity
        With an interval from the noncentral chi-square distribution, for large counts. Its upper
        end does not shrink if the statistic is smaller than expected by chance.

    Raises
    ------
    ArgumentError
        For values that are not counts.

    Examples
    --------
    >>> from formalm.stats import cramers_v
    >>> print(cramers_v([[600, 400], [300, 700]]))
    Cramer's V 0.3007, 0.2577 … 0.3453 (0.95)
    """
    table = checked_counts("counts", counts, 2)
    confidence = checked_number("confidence", confidence, 0, 1)
    least = min(table.shape) - 1
    if not least or not table.sum(axis=0).all() or not table.sum(axis=1).all():
        raise ArgumentError(
            "counts must have at least two groups and two categories, none of them empty"
        )
    expected = expected_counts(table)
    statistic = float(((table - expected) ** 2 / expected).sum())
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    whole = int(table.sum()) * least
    low = _noncentrality(statistic, degrees, (1 + confidence) / 2)
    # Below its mean without any effect the statistic would claim that there is none: [0, 0] at 0.
    high = _noncentrality(max(statistic, float(degrees)), degrees, (1 - confidence) / 2)
    part = max(0.0, statistic - degrees) if corrected else statistic
    return Quantity(
        "Cramer's V",
        math.sqrt(part / whole),
        math.sqrt(low / whole),
        min(1.0, math.sqrt(high / whole)),
        confidence,
        "approximate",
        "noncentral chi-square",
        int(table.sum()),
    )


def counted_log_odds_ratio(
    counts: Iterable[Iterable[int]], *, confidence: float = 0.95
) -> Quantity:
    """Returns the log of the odds ratio of a two-by-two table, in nats.

    Parameters
    ----------
    counts
        Two rows of two counts.
    confidence
        Between 0 and 1.

    Returns
    -------
    Quantity
        With half a count added to each cell, which keeps the ratio finite and removes most of the
        bias (Haldane, Anscombe, Gart); the interval is for large counts.

    Raises
    ------
    ArgumentError
        For another shape, or an empty row or column.

    Examples
    --------
    >>> from formalm.stats import counted_log_odds_ratio
    >>> print(counted_log_odds_ratio([[60, 40], [30, 70]]))
    log odds ratio 1.239, 0.6572 … 1.821 (0.95)
    """
    table = checked_counts("counts", counts, 2)
    confidence = checked_number("confidence", confidence, 0, 1)
    if table.shape != (2, 2) or not table.sum(axis=0).all() or not table.sum(axis=1).all():
        raise ArgumentError("counts must be a 2×2 table without empty rows or columns")
    (a, b), (c, d) = table + 0.5
    value = math.log(a * d / (b * c))
    error = math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)
    half = float(scipy_part("special").ndtri((1 + confidence) / 2)) * error
    return Quantity(
        "log odds ratio",
        value,
        value - half,
        value + half,
        confidence,
        "approximate",
        "Woolf with half a count added",
        int(table.sum()),
    )


def _divergence_bound(degrees: int, tail: float) -> float:
    """Returns the least x > k with exp(−x) (e x / k)^k ≤ tail, a bound on n times the
    divergence.
    """
    if not degrees:
        return 0.0

    def excess(x: float) -> float:
        return -x + degrees * (1 + math.log(x / degrees)) - math.log(tail)

    high = 2.0 * degrees
    while excess(high) > 0:
        high *= 2
    return float(scipy_part("optimize").brentq(excess, degrees, high, xtol=1e-12))


def _noncentrality(statistic: float, degrees: int, level: float) -> float:
    """Returns the noncentrality at which a smaller statistic has this probability; 0 if there is
    none.
    """
    special, optimize = scipy_part("special"), scipy_part("optimize")

    def excess(noncentrality: float) -> float:
        return float(special.chndtr(statistic, degrees, noncentrality)) - level

    if excess(0.0) <= 0:
        return 0.0
    high = statistic + degrees + 1.0
    while excess(high) > 0:
        high *= 2
    return float(optimize.brentq(excess, 0.0, high, xtol=1e-10))


def _around(
    name: str,
    value: float,
    radius: float,
    first: Integers,
    second: Integers,
    alpha: float,
    *,
    top: float = 1.0,
    scale: Callable[[float], float] = lambda x: x,
) -> Quantity:
    """Returns an interval of a given radius on a scale."""
    back = (lambda x: x * x) if scale is math.sqrt else scale
    return Quantity(
        name,
        value,
        back(max(0.0, scale(value) - radius)),
        min(top, back(scale(value) + radius)),
        1 - alpha,
        "guaranteed",
        "concentration and triangle inequality",
        int(min(first.sum(), second.sum())),
        (FIXED,),
    )


def _pair(
    one: Iterable[int], other: Iterable[int], confidence: float
) -> tuple[Integers, Integers, float]:
    first, second = checked_counts("one", one, 1), checked_counts("other", other, 1)
    alpha = 1 - checked_number("confidence", confidence, 0, 1)
    if len(first) != len(second):
        raise ArgumentError(
            f"both samples must have equally many categories, got {len(first)} and {len(second)}"
        )
    if not first.sum() or not second.sum():
        raise ArgumentError("both samples must have counts")
    return first, second, alpha
