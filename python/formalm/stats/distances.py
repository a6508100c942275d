"""Distances between distributions with exact or interval probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from formalm.errors import ArgumentError
from formalm.stats.argument_checks import Floats, checked_values, scipy_part
from formalm.stats.statistic_results import Quantity

__all__ = ["jensen_shannon", "log_odds_ratio", "log_ratio", "total_variation"]

SUM = 1e-6


def total_variation(one: Iterable[Any], other: Iterable[Any]) -> Quantity:
    """Returns the total variation distance: the largest difference in the probability of any event.

    Parameters
    ----------
    one, other
        Probabilities of the same categories that sum to one, or pairs of bounds on them, such as
        :class:`~formalm.probability.Interval`.

    Returns
    -------
    Quantity
        Exact for probabilities. Certified for bounds: the true value is between ``low`` and
        ``high``, and ``value`` is the middle.

    Raises
    ------
    ArgumentError
        For values that cannot be distributions.

    Examples
    --------
    >>> from formalm.stats import total_variation
    >>> print(total_variation([0.5, 0.5], [0.7, 0.3]))
    total variation 0.2 (exact)
    >>> print(total_variation([(0.4, 0.5), (0.5, 0.6)], [(0.7, 0.7), (0.3, 0.3)]))
    total variation 0.25, 0.2 … 0.3 (proven)
    """
    first, second = _pair(one, other)
    apart = np.maximum(0.0, np.maximum(first[:, 0] - second[:, 1], second[:, 0] - first[:, 1]))
    most = np.maximum(first[:, 1] - second[:, 0], second[:, 1] - first[:, 0])
    return _bounded(
        "total variation", math.fsum(apart) / 2, math.fsum(most) / 2, 1.0, first, second
    )


def jensen_shannon(one: Iterable[Any], other: Iterable[Any]) -> Quantity:
    """Returns the Jensen-Shannon divergence, in nats: 0 for equal, ln 2 for disjoint distributions.

    Parameters
    ----------
    one, other
        As in :func:`total_variation`.

    Returns
    -------
    Quantity
        As in :func:`total_variation`.

    Raises
    ------
    ArgumentError
        As in :func:`total_variation`.

    Examples
    --------
    >>> from formalm.stats import jensen_shannon
    >>> print(jensen_shannon([1.0, 0.0], [0.0, 1.0]))
    Jensen-Shannon 0.6931 (exact)
    """
    first, second = _pair(one, other)
    # Each term grows as its two numbers move apart, so its bounds are at ends of the intervals.
    above = np.maximum(first[:, 0], np.minimum(first[:, 1], second[:, 0]))
    nearest = np.clip(above, second[:, 0], second[:, 1])
    ends = np.maximum(_terms(first[:, 1], second[:, 0]), _terms(first[:, 0], second[:, 1]))
    least = math.fsum(_terms(above, nearest))
    return _bounded("Jensen-Shannon", least, math.fsum(ends), math.log(2), first, second)


def log_ratio(one: Any, other: Any) -> Quantity:
    """Returns the logarithm of the ratio of two probabilities, in nats.

    Parameters
    ----------
    one, other
        A probability, or a pair of bounds.

    Raises
    ------
    ArgumentError
        For values that cannot be probabilities, and for 0 over 0.

    Examples
    --------
    >>> from formalm.stats import log_ratio
    >>> print(log_ratio(0.2, 0.1))
    log ratio 0.6931 (exact)
    """
    return _compared("log ratio", one, other, lambda p: math.log(p) if p else -math.inf)


def log_odds_ratio(one: Any, other: Any) -> Quantity:
    """Returns the logarithm of the ratio of two odds, p / (1 − p), in nats.

    Parameters
    ----------
    one, other
        A probability, or a pair of bounds.

    Raises
    ------
    ArgumentError
        For values that cannot be probabilities, and if both odds are 0 or both infinite.

    Examples
    --------
    >>> from formalm.stats import log_odds_ratio
    >>> print(log_odds_ratio(0.5, 0.2))
    log odds ratio 1.386 (exact)
    """
    return _compared("log odds ratio", one, other, _logit)


def _logit(p: float) -> float:
    return math.log(p) - math.log1p(-p) if 0 < p < 1 else (-math.inf if p == 0 else math.inf)


def _compared(name: str, one: Any, other: Any, scale: Callable[[float], float]) -> Quantity:
    """Returns the difference of two numbers on a scale that grows with the probability."""
    first, second = _bounds("one", [one])[0], _bounds("other", [other])[0]
    low, high = (scale(float(p)) for p in first), (scale(float(p)) for p in second)
    (least, most), (less, more) = tuple(low), tuple(high)
    if math.isinf(least) and least == most and less == more == least:
        raise ArgumentError(f"{name} is undefined for two probabilities of {first[0]:g}")
    bottom, top = least - more, most - less
    ends = (-math.inf if math.isnan(bottom) else bottom, math.inf if math.isnan(top) else top)
    exact = first[0] == first[1] and second[0] == second[1]
    if exact:
        return Quantity(name, ends[0], *ends, 1.0, "exact", "from probabilities")
    middle = sum(ends) / 2
    if math.isfinite(ends[0]) != math.isfinite(ends[1]):
        middle = scale(float(sum(first)) / 2) - scale(float(sum(second)) / 2)
    return Quantity(name, middle, *ends, 1.0, "certified", "from the bounds of the probabilities")


def _bounded(
    name: str, low: float, high: float, most: float, first: Floats, second: Floats
) -> Quantity:
    low, high = max(0.0, min(low, most)), min(high, most)
    if (first[:, 0] == first[:, 1]).all() and (second[:, 0] == second[:, 1]).all():
        return Quantity(name, high, high, high, 1.0, "exact", "from probabilities")
    middle = (low + high) / 2
    return Quantity(
        name, middle, low, high, 1.0, "certified", "from the bounds of the probabilities"
    )


def _terms(one: Floats, other: Floats) -> Floats:
    entropy = scipy_part("special").rel_entr
    middle = (one + other) / 2
    found: Floats = np.maximum(0.0, (entropy(one, middle) + entropy(other, middle)) / 2)
    return found


def _pair(one: Iterable[Any], other: Iterable[Any]) -> tuple[Floats, Floats]:
    first, second = _bounds("one", one), _bounds("other", other)
    if len(first) != len(second):
        raise ArgumentError(
            f"both distributions must have equally many categories, got {len(first)} and"
            f" {len(second)}"
        )
    for name, bounds in (("one", first), ("other", second)):
        low, high = math.fsum(bounds[:, 0]), math.fsum(bounds[:, 1])
        if low > 1 + SUM or high < 1 - SUM:
            raise ArgumentError(
                f"the probabilities of {name} must sum to 1, got {low:.6g}"
                + ("" if low == high else f" … {high:.6g}"),
                hint="add a category for the rest; for counts, use counted_total_variation",
            )
    return first, second


def _bounds(name: str, values: Iterable[Any]) -> Floats:
    """Returns bounds of each probability, ``(categories, 2)``."""
    array = checked_values(name, values, (1, 2))
    if array.ndim == 1:
        array = np.stack([array, array], axis=1)
    if array.shape[1] != 2 or (array < 0).any() or (array > 1).any():
        raise ArgumentError(f"{name} must be probabilities from 0 to 1, or pairs of bounds")
    if (array[:, 0] > array[:, 1]).any():
        raise ArgumentError(f"{name} must not have a lower bound above the upper one")
    return array
