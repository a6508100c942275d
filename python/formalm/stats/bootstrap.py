"""Bootstrap intervals for any statistic: plain, paired and clustered."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np

from formalm.errors import ArgumentError
from formalm.stats.argument_checks import (
    Floats,
    Integers,
    checked_choice,
    checked_integer,
    checked_number,
    checked_values,
    scipy_part,
)
from formalm.stats.clustered_means import cluster_numbers, few
from formalm.stats.statistic_results import Quantity

__all__ = ["bootstrap"]

CELLS = 4_000_000  # of the drawn numbers that are held at once
METHODS = ("bca", "percentile")


def bootstrap(
    values: Any,
    statistic: Callable[[Floats], float] | None = None,
    *,
    clusters: Iterable[Hashable] | None = None,
    confidence: float = 0.95,
    method: str = "bca",
    resamples: int = 9_999,
    seed: int = 0,
) -> Quantity:
    """Returns a bootstrap interval for any statistic, by resampling units with replacement.

    Parameters
    ----------
    values
        ``(n,)`` numbers, or ``(n, k)``: rows are drawn whole, so values in one row stay paired.
    statistic
        A function of an array like ``values``. The default is the mean or, for two columns, the
        mean difference, the first minus the second.
    clusters
        The cluster of each row; clusters are drawn whole.
    confidence
        Between 0 and 1.
    method
        ``"bca"`` corrects for bias and skewness, ``"percentile"`` does not.
    resamples, seed
        Number of resamples, and their seed.

    Raises
    ------
    ArgumentError
        If there are fewer than two units, or all draws are equal: the data then shows nothing about
        its spread.

    Notes
    -----
    Approximate; too narrow with ten units or fewer, and a note then says so.

    Examples
    --------
    >>> from formalm.stats import bootstrap
    >>> found = bootstrap([[0.9, 0.7], [0.8, 0.7], [0.95, 0.6], [0.7, 0.65], [0.85, 0.6]])
    >>> round(found.value, 2), found.low > 0, found.units
    (0.19, True, 5)
    """
    rows = checked_values("values", values, (1, 2))
    confidence = checked_number("confidence", confidence, 0, 1)
    checked_choice("method", method, METHODS)
    number, seed = checked_integer("resamples", resamples, 99), checked_integer("seed", seed, 0)
    which, count = cluster_numbers(clusters, len(rows))
    units = _Units(rows, which, count, statistic)
    observed = units.statistic(np.arange(count))
    drawn = units.draws(number, seed)
    if np.ptp(drawn) <= 1e-12 * max(1.0, abs(observed)):
        raise ArgumentError(
            "the resamples must differ in their statistic to give an interval",
            hint="for proportions of 0 and 1, use wilson or clopper_pearson",
        )
    levels = ((1 - confidence) / 2, (1 + confidence) / 2)
    if method == "bca":
        levels = _corrected(levels, observed, drawn, units.without_each())
    low, high = np.quantile(drawn, levels)
    name = "mean difference" if rows.ndim == 2 else "mean"
    return Quantity(
        "statistic" if statistic is not None else name,
        observed,
        float(low),
        float(high),
        confidence,
        "approximate",
        f"bootstrap ({method}, {number:,} resamples, seed {seed})",
        count,
        few(count),
    )


class _Units:
    """Clusters of rows, and the statistic of a selection of them."""

    def __init__(
        self,
        rows: Floats,
        which: Integers,
        count: int,
        statistic: Callable[[Floats], float] | None,
    ) -> None:
        self.rows, self.count, self.function = rows, count, statistic
        self.members = np.split(
            np.argsort(which, kind="stable"), np.cumsum(np.bincount(which, minlength=count))[:-1]
        )
        if statistic is not None:
            return
        if rows.ndim == 2 and rows.shape[1] != 2:
            raise ArgumentError(f"statistic must be given for rows of {rows.shape[1]} numbers")
        plain = rows if rows.ndim == 1 else rows[:, 0] - rows[:, 1]
        self.sums = np.bincount(which, weights=plain, minlength=count)
        self.sizes = np.bincount(which, minlength=count)

    def statistic(self, chosen: Integers) -> float:
        if self.function is None:
            return float(self.sums[chosen].sum() / self.sizes[chosen].sum())
        drawn = self.rows[np.concatenate([self.members[unit] for unit in chosen])]
        return checked_number("the statistic", self.function(drawn), -1e308, 1e308)

    def draws(self, number: int, seed: int) -> Floats:
        generator = np.random.default_rng(seed)
        parts = []
        step = max(1, CELLS // self.count)
        for start in range(0, number, step):
            size = (min(step, number - start), self.count)
            chosen = generator.integers(self.count, size=size)
            if self.function is None:
                parts.append(self.sums[chosen].sum(axis=1) / self.sizes[chosen].sum(axis=1))
            else:
                parts.append(np.array([self.statistic(row) for row in chosen]))
        return np.concatenate(parts)

    def without_each(self) -> Floats:
        everyone = np.arange(self.count)
        return np.array([self.statistic(np.delete(everyone, unit)) for unit in everyone])


def _corrected(
    levels: tuple[float, float], observed: float, drawn: Floats, without: Floats
) -> tuple[float, float]:
    """Returns Efron's quantile levels, corrected for bias and acceleration."""
    special = scipy_part("special")
    # Sums in another order differ by rounding, and are ties all the same.
    slack = 1e-12 * max(1.0, abs(observed))
    ties = float((np.abs(drawn - observed) <= slack).mean())
    below = float((drawn < observed - slack).mean()) + ties / 2
    edge = 1 / (len(drawn) + 1)
    bias = float(special.ndtri(min(max(below, edge), 1 - edge)))
    spread = without.mean() - without
    scale = 6 * float((spread**2).sum()) ** 1.5
    acceleration = float((spread**3).sum()) / scale if scale > 0 else 0.0
    found = []
    for level in levels:
        z = bias + float(special.ndtri(level))
        shrunk = 1 - acceleration * z
        # Beyond its pole the correction would turn round; the outermost draw is the honest end.
        moved = bias + z / shrunk if shrunk > 0 else math.copysign(math.inf, z)
        found.append(float(special.ndtr(moved)))
    return found[0], found[1]
