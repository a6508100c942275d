"""Estimates of means of bounded random numbers, with intervals valid at every sample size.

A gambler who bets in a fair game against "the mean is m" seldom gets rich if it is true: the
capital exceeds 1/α with a probability of at most α (Ville). The interval consists of the values of
m against which no gambler got rich. Bets follow the predictable plug-in of Waudby-Smith and Ramdas
(2024), "Estimating means of bounded random variables by betting". The only assumptions are
independence and the range from 0 to 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError

__all__ = ["Estimate", "bounded_mean", "checked_confidence", "effective_size"]

Floats = npt.NDArray[np.float64]
MOST_OF_IT = 0.75
STEPS = 60


@dataclass(frozen=True)
class Estimate:
    """An estimate with a confidence interval.

    Attributes
    ----------
    value
        The estimate.
    low, high
        The interval.
    confidence
        Lower bound on the share of such intervals that contain the true value.
    effective_size
        The number of equally weighted draws that the estimate is worth.
    """

    value: float
    low: float
    high: float
    confidence: float
    effective_size: float


def effective_size(log_weights: Floats) -> float:
    """Returns Kish's effective size: the squared sum of the weights over the sum of their
    squares.
    """
    top = log_weights.max(initial=-np.inf)
    if top == -np.inf:
        return 0.0
    weights = np.exp(log_weights - top)
    return float(weights.sum() ** 2 / (weights**2).sum())


def checked_confidence(confidence: object) -> float:
    """Returns a confidence, a number between 0 and 1, or refuses it."""
    if isinstance(confidence, bool) or not isinstance(confidence, (int, float)):
        raise ArgumentError(f"confidence must be a number, got {confidence!r:.60}")
    if not 0 < confidence < 1:
        raise ArgumentError(f"confidence must be between 0 and 1, got {confidence!r:.60}")
    return float(confidence)


def bounded_mean(
    values: Sequence[float] | Floats, confidence: float, planned: int | None = None
) -> tuple[float, float]:
    """Returns an interval for the mean of independent numbers from 0 to 1.

    Parameters
    ----------
    values
        The numbers, in the order drawn.
    confidence
        Between 0 and 1.
    planned
        The planned number of draws if sampling stopped early: the bets may not depend on when it
        stopped.

    Examples
    --------
    >>> low, high = bounded_mean([0.5] * 100, 0.95)
    >>> low < 0.5 < high, high - low < 0.15
    (True, True)
    """
    confidence = checked_confidence(confidence)
    x = np.asarray(values, dtype=np.float64)
    if x.size and not (np.all(x >= 0) and np.all(x <= 1)):
        raise ArgumentError("values must be from 0 to 1")
    if not x.size:
        return 0.0, 1.0
    alpha = 1 - confidence
    bets = _bets(x, alpha, len(x) if planned is None else planned)
    low = _rejected_up_to(x, bets, alpha)
    # The same game with every number reflected bounds the mean from above.
    return low, 1 - _rejected_up_to(1 - x, bets, alpha)


def _bets(x: Floats, alpha: float, planned: int) -> Floats:
    """Returns the bets; each depends only on the numbers before it and on the planned number."""
    seen = np.arange(1, len(x) + 1)
    means = (0.5 + np.cumsum(x)) / (seen + 1)
    variances = (0.25 + np.cumsum((x - means) ** 2)) / (seen + 1)
    before = np.concatenate([[0.25], variances[:-1]])
    return np.sqrt(2 * math.log(2 / alpha) / (before * planned))


def _rejected_up_to(x: Floats, bets: Floats, alpha: float) -> float:
    """Returns the largest mean against which a gambler on larger numbers got rich.

    All smaller means are rejected too.
    """
    least, most = 0.0, float(x.mean())
    if not _rich(x, bets, alpha, 1e-300):
        return 0.0
    for _ in range(STEPS):
        middle = (least + most) / 2
        if _rich(x, bets, alpha, middle):
            least = middle
        else:
            most = middle
    return least


def _rich(x: Floats, bets: Floats, alpha: float, mean: float) -> bool:
    """Returns True if half a unit of capital reached 1/alpha; two gamblers share the unit."""
    mean = max(mean, 1e-300)
    stakes = np.minimum(bets, MOST_OF_IT / mean)
    gains = np.cumsum(np.log1p(stakes * (x - mean)))
    return bool(gains.max() >= math.log(2 / alpha))
