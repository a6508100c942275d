"""Power analysis: the power of a test, and the smallest effect that it detects."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np

from formalm.errors import ArgumentError
from formalm.stats.argument_checks import Floats, checked_integer, checked_number, scipy_part

__all__ = [
    "detectable_association",
    "detectable_difference",
    "detectable_mean",
    "power_of_association",
    "power_of_difference",
    "power_of_mean",
]

NODES = 512  # of the integral; more change nothing up to a million degrees


def power_of_difference(
    one: float, other: float, trials: int, *, other_trials: int | None = None, level: float = 0.05
) -> float:
    """Returns the power of the two-sided test of homogeneity to distinguish two proportions.

    Parameters
    ----------
    one, other
        The true proportions.
    trials, other_trials
        Sizes of the first and the second sample; equal by default.
    level
        The level of the test.

    Returns
    -------
    float
        By the normal approximation: for expected counts of 5 and more within about 0.02.

    Raises
    ------
    ArgumentError
        For numbers out of range.

    Examples
    --------
    >>> from formalm.stats import power_of_difference
    >>> round(power_of_difference(0.5, 0.6, 400), 2)
    0.81
    """
    p = checked_number("one", one, 0, 1, inclusive=True)
    q = checked_number("other", other, 0, 1, inclusive=True)
    n = checked_integer("trials", trials, 2)
    m = n if other_trials is None else checked_integer("other_trials", other_trials, 2)
    level = checked_number("level", level, 0, 1)
    special = scipy_part("special")
    pooled = (n * p + m * q) / (n + m)
    under_null = math.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    spread = math.sqrt(p * (1 - p) / n + q * (1 - q) / m)
    critical = float(special.ndtri(1 - level / 2)) * under_null
    if not spread:  # both proportions are 0 or 1: the samples are certain
        return float(abs(p - q) > critical) if under_null else 0.0
    above = special.ndtr((p - q - critical) / spread)
    below = special.ndtr((q - p - critical) / spread)
    return float(above + below)


def detectable_difference(
    baseline: float,
    trials: int,
    *,
    other_trials: int | None = None,
    power: float = 0.8,
    level: float = 0.05,
) -> float:
    """Returns the smallest increase over a proportion that is detected with a given power.

    Parameters
    ----------
    baseline
        The proportion of the first sample.
    trials, other_trials, level
        As in :func:`power_of_difference`.
    power
        The probability with which the increase must be detected.

    Raises
    ------
    ArgumentError
        If not even an increase to 1 is detected with this power.

    Examples
    --------
    >>> from formalm.stats import detectable_difference
    >>> round(detectable_difference(0.5, 500), 3)
    0.088
    """
    start = checked_number("baseline", baseline, 0, 1, inclusive=True)
    return _least(
        lambda more: power_of_difference(
            start, min(1.0, start + more), trials, other_trials=other_trials, level=level
        ),
        power,
        level,
        1 - start,
    )


def power_of_mean(effect: float, units: int, *, level: float = 0.05) -> float:
    """Returns the power of the two-sided t-test to distinguish a mean from 0.

    Parameters
    ----------
    effect
        The mean in standard deviations of the units.
    units
        Number of independent units: templates, prompts, models; for paired data, pairs.
    level
        The level of the test.

    Returns
    -------
    float
        For normally distributed units.

    Raises
    ------
    ArgumentError
        For numbers out of range.

    Examples
    --------
    >>> from formalm.stats import power_of_mean
    >>> round(power_of_mean(0.5, 34), 2)
    0.81
    """
    size = abs(checked_number("effect", effect, -1e6, 1e6))
    n, level = checked_integer("units", units, 2), checked_number("level", level, 0, 1)
    special = scipy_part("special")
    critical = float(special.stdtrit(n - 1, 1 - level / 2))
    shift = size * math.sqrt(n)
    return _beyond(critical, shift, n - 1) + _beyond(critical, -shift, n - 1)


def detectable_mean(units: int, *, power: float = 0.8, level: float = 0.05) -> float:
    """Returns the smallest mean, in standard deviations, that is detected with a given power.

    Parameters
    ----------
    units, level
        As in :func:`power_of_mean`.
    power
        The probability with which it must be detected.

    Raises
    ------
    ArgumentError
        For numbers out of range.

    Examples
    --------
    >>> from formalm.stats import detectable_mean
    >>> round(detectable_mean(10), 2)
    1.0
    """
    return _least(lambda size: power_of_mean(size, units, level=level), power, level, 1e5)


def power_of_association(effect: float, trials: int, degrees: int, *, level: float = 0.05) -> float:
    """Returns the power of the chi-square test to distinguish a table from a homogeneous one.

    Parameters
    ----------
    effect
        Cohen's w: the root of the sum of (p − p₀)² / p₀ over the cells. Cramér's V is w over the
        root of the smaller number of rows or columns, less one.
    trials
        The sum of all counts.
    degrees
        (rows − 1) · (columns − 1).
    level
        The level of the test.

    Returns
    -------
    float
        By the noncentral chi-square distribution, for large counts.

    Raises
    ------
    ArgumentError
        For numbers out of range.

    Examples
    --------
    >>> from formalm.stats import power_of_association
    >>> round(power_of_association(0.1, 1000, 4), 2)
    0.72
    """
    size = checked_number("effect", effect, 0, 1e6, inclusive=True)
    n, df = checked_integer("trials", trials, 1), checked_integer("degrees", degrees, 1)
    level = checked_number("level", level, 0, 1)
    special = scipy_part("special")
    critical = special.chdtri(df, level)
    return 1.0 - float(special.chndtr(critical, df, n * size**2))


def detectable_association(
    trials: int, degrees: int, *, power: float = 0.8, level: float = 0.05
) -> float:
    """Returns the smallest effect, as Cohen's w, that the chi-square test detects with a given
    power.

    Parameters
    ----------
    trials, degrees, level
        As in :func:`power_of_association`.
    power
        The probability with which it must be detected.

    Raises
    ------
    ArgumentError
        For numbers out of range.

    Examples
    --------
    >>> from formalm.stats import detectable_association
    >>> round(detectable_association(1000, 4), 3)
    0.109
    """
    return _least(
        lambda size: power_of_association(size, trials, degrees, level=level), power, level, 1e3
    )


def _beyond(critical: float, shift: float, degrees: int) -> float:
    """Returns P(t > critical) for noncentral t, as a mean over the observed spread.

    SciPy's own function returns NaN for few degrees of freedom and large shifts.
    """
    special = scipy_part("special")
    # The spread has the distribution of a root of chi-square over its degrees.
    least, most = np.sqrt(special.chdtri(degrees, [1 - 1e-16, 1e-16]) / degrees)
    nodes, weights = _quadrature()
    spread = least + (most - least) * (nodes + 1) / 2
    half = degrees / 2
    log_density = (
        math.log(2)
        + half * math.log(half)
        - special.gammaln(half)
        + (degrees - 1) * np.log(spread)
        - half * spread**2
    )
    density = np.exp(log_density) * weights
    return float((density * special.ndtr(shift - critical * spread)).sum() / density.sum())


@lru_cache(maxsize=1)
def _quadrature() -> tuple[Floats, Floats]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return nodes, weights


def _least(power_of: Callable[[float], float], power: float, level: float, most: float) -> float:
    """Returns the smallest effect with a given power, which grows with the effect."""
    wanted = checked_number("power", power, 0, 1)
    if wanted <= checked_number("level", level, 0, 1):
        raise ArgumentError(f"power must be above level ({level:g}), got {wanted:g}")
    high = min(most, 1e-3)
    while power_of(high) < wanted:
        if high >= most:
            raise ArgumentError(f"no effect reaches a power of {wanted:g}", hint="add units")
        high = min(most, 2 * high)
    found = scipy_part("optimize").brentq(lambda size: power_of(size) - wanted, 0.0, high)
    return float(found)
