"""What statistics return: a number with an interval, and a test with its p-value."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["Coverage", "Quantity", "Significance"]

Coverage = Literal["exact", "certified", "guaranteed", "approximate"]


@dataclass(frozen=True)
class Quantity:
    """A number, and an interval with what the interval is worth.

    Attributes
    ----------
    name
        What it is.
    value
        The number.
    low, high
        The interval.
    confidence
        How often such intervals have the truth in them; 1 where nothing was sampled.
    coverage
        ``"exact"``: computed from known probabilities, so there is no sampling error.
        ``"certified"``: computed from bounds of probabilities, and proven. ``"guaranteed"``: at
        least the confidence, for every sample size. ``"approximate"``: about the confidence, for
        large samples.
    method
        How the interval was made.
    units
        Of how many independent units it was made; None where nothing was sampled.
    notes
        What a reader should know.
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
        """How far the ends are apart."""
        return self.high - self.low

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high

    def __str__(self) -> str:
        if self.coverage == "exact":
            return f"{self.name} {self.value:.4g} (exact)"
        kind = "proven" if self.coverage == "certified" else f"{self.confidence:.4g}"
        return f"{self.name} {self.value:.4g}, {self.low:.4g} … {self.high:.4g} ({kind})"


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
        How probable a statistic at least as extreme is if there is no difference.
    degrees
        Degrees of freedom; None where there are none.
    method
        ``"asymptotic"``: right for large counts, and the counts were checked. ``"exact"``: all
        arrangements were counted. ``"mid-p"``: exact, with half of the observed arrangement.
        ``"monte carlo"``: arrangements were drawn; the observed one is counted with them, so that
        the test keeps its level.
    resamples, seed
        Of a Monte Carlo test: how many were drawn, and from which seed.
    notes
        What a reader should know.
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
        """Standard error of the p-value from drawing; 0 unless arrangements were drawn."""
        if self.resamples is None:
            return 0.0
        return math.sqrt(self.p_value * (1 - self.p_value) / (self.resamples + 1))

    def __str__(self) -> str:
        return f"{self.name}: {self.statistic:.4g}, p = {self.p_value:.3g} ({self.method})"
