"""Means of clustered numbers, such as several answers to one prompt."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable

import numpy as np

from formalm.errors import ArgumentError
from formalm.stats.argument_checks import (
    Floats,
    Integers,
    checked_number,
    checked_values,
    scipy_part,
)
from formalm.stats.statistic_results import Quantity

__all__ = ["FEW", "cluster_numbers", "clustered_mean"]

FEW = 10


def clustered_mean(
    values: Iterable[float],
    clusters: Iterable[Hashable] | None = None,
    *,
    confidence: float = 0.95,
) -> Quantity:
    """Returns the mean, with an interval from the spread between clusters.

    Numbers in one cluster may depend on each other in any way; clusters are independent. Treating
    all numbers as independent makes intervals too narrow, often by a multiple.

    Parameters
    ----------
    values
        The numbers.
    clusters
        The cluster of each; by default every number is its own cluster.
    confidence
        Between 0 and 1.

    Raises
    ------
    ArgumentError
        With fewer than two clusters, or without any spread.

    Notes
    -----
    The sandwich estimator with the factor G/(G−1), and quantiles of Student's t with G−1 degrees of
    freedom for G clusters. Approximate: too narrow with few clusters, or few large ones.

    Examples
    --------
    >>> from formalm.stats import clustered_mean
    >>> print(clustered_mean([1.0, 2.0, 3.0, 4.0]))
    mean 2.5, 0.4457 … 4.554 (0.95)
    >>> print(clustered_mean([1.0, 1.0, 2.0, 2.0, 4.0, 4.0], "aabbcc"))
    mean 2.333, -1.461 … 6.128 (0.95)
    """
    numbers = checked_values("values", values)
    confidence = checked_number("confidence", confidence, 0, 1)
    which, count = cluster_numbers(clusters, len(numbers))
    mean = float(numbers.mean())
    error = _standard_error(numbers, which, count)
    if not error > 0:
        raise ArgumentError(
            "the clusters must differ in their means to give an interval",
            hint="for proportions of 0 and 1, use wilson or clopper_pearson",
        )
    half = float(scipy_part("special").stdtrit(count - 1, (1 + confidence) / 2)) * error
    return Quantity(
        "mean",
        mean,
        mean - half,
        mean + half,
        confidence,
        "approximate",
        "clustered standard error",
        count,
        few(count),
    )


def few(count: int) -> tuple[str, ...]:
    """Returns a note if there are few clusters."""
    return (f"only {count} units: the interval may be too narrow",) if count < FEW else ()


def cluster_numbers(clusters: Iterable[Hashable] | None, length: int) -> tuple[Integers, int]:
    """Returns the number of each value's cluster, in order of appearance, and the cluster count."""
    if clusters is None:
        which: Integers = np.arange(length)
    else:
        places: dict[Hashable, int] = {}
        try:
            which = np.array([places.setdefault(name, len(places)) for name in clusters])
        except TypeError as error:
            raise ArgumentError(f"cluster names must be comparable: {error}") from None
    if len(which) != length:
        raise ArgumentError(
            f"clusters must have one name per value ({length:,}), got {len(which):,}"
        )
    count = int(which.max()) + 1
    if count < 2:
        raise ArgumentError("at least two clusters are required, got one")
    return which, count


def _standard_error(values: Floats, which: Integers, count: int) -> float:
    sums = np.bincount(which, weights=values - values.mean(), minlength=count)
    # Rounding of the mean alone is no spread.
    if np.abs(sums).max() <= 1e-12 * max(1.0, float(np.abs(values).max())) * len(values):
        return 0.0
    return math.sqrt(count / (count - 1) * float((sums**2).sum())) / len(values)
