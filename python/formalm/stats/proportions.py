"""Intervals for a proportion: Wilson and Clopper-Pearson."""

from __future__ import annotations

import math

from formalm.errors import ArgumentError
from formalm.stats.argument_checks import checked_integer, checked_number, scipy_part
from formalm.stats.statistic_results import Quantity

__all__ = ["clopper_pearson", "wilson"]


def wilson(successes: int, trials: int, *, confidence: float = 0.95) -> Quantity:
    """Returns the Wilson score interval for a proportion.

    Its coverage is nominal on average over proportions; for a single one it can be a few percent
    off. It has a positive width at 0 and at 1, where an interval from the standard error vanishes.

    Parameters
    ----------
    successes, trials
        Integers.
    confidence
        Between 0 and 1.

    Raises
    ------
    ArgumentError
        For invalid numbers, and for more successes than trials.

    Examples
    --------
    >>> from formalm.stats import wilson
    >>> print(wilson(0, 20))
    proportion 0, 0 … 0.1611 (0.95)
    """
    successes, trials, confidence = _checked(successes, trials, confidence)
    z = float(scipy_part("special").ndtri((1 + confidence) / 2))
    share = successes / trials
    middle = (successes + z**2 / 2) / (trials + z**2)
    half = z / (trials + z**2) * math.sqrt(successes * (1 - share) + z**2 / 4)
    low = max(0.0, middle - half) if successes else 0.0
    high = min(1.0, middle + half) if successes < trials else 1.0
    return Quantity(
        "proportion", share, low, high, confidence, "approximate", "Wilson score", trials
    )


def clopper_pearson(successes: int, trials: int, *, confidence: float = 0.95) -> Quantity:
    """Returns the Clopper-Pearson interval for a proportion, which inverts two exact binomial
    tests.

    Its coverage is at least the confidence for every proportion and every number of trials.

    Parameters
    ----------
    successes, trials, confidence
        As in :func:`wilson`.

    Raises
    ------
    ArgumentError
        As in :func:`wilson`.

    Examples
    --------
    >>> from formalm.stats import clopper_pearson
    >>> print(clopper_pearson(0, 20))
    proportion 0, 0 … 0.1684 (0.95)
    """
    successes, trials, confidence = _checked(successes, trials, confidence)
    inverse = scipy_part("special").betaincinv
    tail, failures = (1 - confidence) / 2, trials - successes
    low = float(inverse(successes, failures + 1, tail)) if successes else 0.0
    high = float(inverse(successes + 1, failures, 1 - tail)) if failures else 1.0
    return Quantity(
        "proportion",
        successes / trials,
        low,
        high,
        confidence,
        "guaranteed",
        "Clopper-Pearson",
        trials,
    )


def _checked(successes: object, trials: object, confidence: object) -> tuple[int, int, float]:
    hits, number = checked_integer("successes", successes, 0), checked_integer("trials", trials, 1)
    if hits > number:
        raise ArgumentError(f"successes must be at most trials ({number:,}), got {hits:,}")
    return hits, number, checked_number("confidence", confidence, 0, 1)
