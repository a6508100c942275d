"""Results of statistics: ``Quantity`` with an interval, ``Significance`` with a p-value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Coverage", "Quantity", "Significance"]

Coverage = Literal["exact", "certified", "guaranteed", "approximate"]


@dataclass(frozen=True)
class Quantity:
    """A number with an interval, and the coverage of the interval.

    Attributes
    ----------
    name
        The name of the quantity.
    value
        The number.
    low, high
        The interval.
    confidence
        The share of such intervals that contain the true value; 1 if nothing was sampled.
    coverage
        ``"exact"``: computed from known probabilities, so there is no sampling error.
        ``"certified"``: computed from bounds of probabilities, and proven. ``"guaranteed"``: at
        least the confidence, for every sample size. ``"approximate"``: about the confidence, for
        large samples.
    method
        The method that computed the interval.
    units
        Number of independent units; None if nothing was sampled.
    notes
        Caveats for the reader.
    """

    name: str
    value: float
    low: float
    high: float
    confidence: float
    coverage: Coverage
    method: str
    units: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if math.isnan(self.value) and math.isinf(self.low) and math.isinf(self.high):
            return f"{self.name} not bounded"
        if self.coverage == "exact":
            return f"{self.name} {self.value:.4g} (exact)"
        kind = "proven" if self.coverage == "certified" else f"{self.confidence:.4g}"
        value, low, high = (f"{one:.4g}" for one in (self.value, self.low, self.high))
        if value == low == high:  # closer than the digits that are shown
            return f"{self.name} {value} ({kind})"
        return f"{self.name} {value}, {low} … {high} ({kind})"


@dataclass(frozen=True)
class Significance:
    """The result of a test.

    Attributes
    ----------
    name
        The test.
    statistic
        Its statistic.
    p_value
        The probability of a statistic at least as extreme if there is no difference.
    degrees
        Degrees of freedom; None if there are none.
    method
        ``"asymptotic"``: valid for large counts, and the counts were checked. ``"exact"``: all
        arrangements were enumerated. ``"mid-p"``: exact, with half of the observed arrangement.
        ``"monte carlo"``: arrangements were drawn; the observed one is counted with them, so the
        test keeps its level.
    resamples, seed
        For a Monte Carlo test: number of draws, and their seed.
    notes
        Caveats for the reader.
    """

    name: str
    statistic: float
    p_value: float
    degrees: int | None
    method: str
    resamples: int | None = None
    seed: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def monte_carlo_error(self) -> float:
        """Standard error of the p-value due to drawing; 0 unless arrangements were drawn."""
        if self.resamples is None:
            return 0.0
        return math.sqrt(self.p_value * (1 - self.p_value) / (self.resamples + 1))

    def __str__(self) -> str:
        return f"{self.name}: {self.statistic:.4g}, p = {self.p_value:.3g} ({self.method})"
