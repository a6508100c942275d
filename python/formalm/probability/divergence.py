"""Distances between two distributions: exact from shares, or estimated from weighted draws.

Local draws come from q, a mask's distribution, and weigh w, the model's probability over that of
the draw. With Z the sum of what the model gives to the language, p = w q / Z is the model's own
conditional distribution, and both distances are means of bounded numbers under q::

    TV(p, q) = 1 - E[min(1, w / Z)]        KL(p ‖ q) = -log Z - E[-w log w] / Z

so they have intervals that assume only independent draws. The first mean is taken of a function of
the bound on Z. Z is therefore bounded by other draws.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from formalm.cost import Cost
from formalm.errors import ArgumentError
from formalm.probability.bounds import Interval
from formalm.query.query import TokenEvent
from formalm.sampling.mean_estimate import bounded_mean

__all__ = [
    "Distortion",
    "Divergence",
    "between",
    "estimated_kl",
    "estimated_variation",
    "unfinished",
]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Divergence:
    """The distance of a distribution from the model's own.

    Attributes
    ----------
    total_variation
        Half the sum of the absolute differences: the largest error in the probability of any set.
        From 0 to 1; its ends are equal if it is exact.
    kl
        The Kullback-Leibler divergence of the model's own distribution from it, in nats; None if it
        is unknown.
    """

    total_variation: Interval
    kl: Interval | None


@dataclass(frozen=True, eq=False)
class Distortion:
    """The distributions of different masks over a language, and their distances from the model's
    own.

    Attributes
    ----------
    exact
        True if everything was computed; False if it was estimated from draws, see
        :func:`distortion`.
    event
        The event.
    status
        ``"done"``, or ``"interrupted"`` by the user: the intervals are then as wide as the work so
        far leaves them.
    divergences
        Distances from the model's own conditional distribution. ``"local"``: a mask of all
        tokenizations, renormalized at every step. ``"canonical_local"``: the same with canonical
        tokens only. ``"canonical"``: the model's own distribution over canonical sequences.
    mass, canonical_mass
        The model's probability of the language: over all token sequences, and over canonical ones.
    texts
        The members, most probable first; empty if not exact.
    shares
        Shares under each mask, and under ``"true"``, the model's own: ``(len(texts),)``.
    notes
        The results that could not be obtained, with the reasons.
    cost
        The cost of all comparisons.
    seed
        The seed of the draws; None if exact.
    """

    exact: bool
    event: TokenEvent
    divergences: dict[str, Divergence]
    mass: Interval
    canonical_mass: Interval | None
    texts: tuple[str, ...] = field(repr=False)
    shares: dict[str, Floats] = field(repr=False)
    notes: tuple[str, ...]
    cost: Cost = field(repr=False)
    seed: int | None
    status: Literal["done", "interrupted"] = "done"

    @property
    def forwards(self) -> int:
        """Prefixes that the model evaluated."""
        return self.cost.forwards

    def share(self, text: str) -> dict[str, float]:
        """Returns the share of a member under each mask.

        Raises
        ------
        ArgumentError
            If the string is not a member, or the shares were not computed.
        """
        if text not in self.texts:
            raise ArgumentError(f"text must be a member with a positive probability, got {text!r}")
        place = self.texts.index(text)
        return {way: float(shares[place]) for way, shares in self.shares.items()}

    @property
    def undecided(self) -> tuple[str, ...]:
        """The masks whose total variation may still be anything between 0 and 1."""
        return tuple(
            way
            for way, found in self.divergences.items()
            if found.total_variation[0] <= 0 and found.total_variation[1] >= 1
        )

    def __str__(self) -> str:
        lines = ["exact" if self.exact else "estimated, over token sequences"]
        if self.status == "interrupted":
            lines = ["interrupted, over token sequences"]
        for way, found in self.divergences.items():
            kl = "" if found.kl is None else f", KL {_shown(found.kl)}"
            left = " (not decided)" if way in self.undecided else ""
            lines.append(f"{way}: total variation {_shown(found.total_variation)}{kl}{left}")
        if self.undecided:
            lines.append(
                "not decided: the intervals above contain every possible value. Use more draws,"
                " higher"
                " limits for an exact answer, or a prompt or a language to which the model assigns"
                f" more probability than {self.mass[1]:.3g}"
                if not self.exact
                else "not decided: the model assigns probability 0 to the members"
            )
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def unfinished(
    mass: float, event: TokenEvent, canonical: bool, notes: list[str], cost: Cost
) -> Distortion:
    """Returns the result of an interrupted walk: the probability of the members found so far.

    Parameters
    ----------
    mass
        The mass of the members found so far.
    event
        The event.
    canonical
        If True, masks of canonical tokens are compared as well.
    """
    names = ("local", "canonical_local", "canonical") if canonical else ("local",)
    unknown = Interval(0.0, 1.0)
    ways = {name: Divergence(unknown, None) for name in names}
    # Rounded terms can put their sum above the true value.
    low = Interval(min(1.0, mass * (1 - 1e-9)), 1.0)
    own = unknown if canonical else None
    said = (*notes, "interrupted before all members were visited")
    return Distortion(False, event, ways, low, own, (), {}, said, cost, None, "interrupted")


def between(p: Floats, q: Floats) -> Divergence:
    """Returns the distance between two vectors of shares, ``(texts,)`` each.

    The mass that ``q`` lacks to one is treated as an outcome that ``p`` does not have.

    Examples
    --------
    >>> between(np.array([0.5, 0.5]), np.array([0.75, 0.25])).total_variation.low
    0.25
    """
    variation = (float(np.abs(p - q).sum()) + max(0.0, float(1 - q.sum()))) / 2
    at = p > 0
    with np.errstate(divide="ignore"):
        # Near 0 the terms cancel; log1p of the difference keeps the remaining digits.
        kl = float(-(p[at] * np.log1p((q[at] - p[at]) / p[at])).sum()) if at.any() else 0.0
    kl = max(0.0, kl)
    return Divergence(Interval(variation, variation), Interval(kl, kl))


def estimated_variation(
    weights: Floats, mass: Interval, confidence: float, planned: int
) -> Interval:
    """Estimates the total variation of p from q from weights of draws from q.

    Parameters
    ----------
    weights
        ``(draws,)``, from 0 to 1; 0 for draws that left the language.
    mass
        Bounds on Z, from other draws.
    confidence
        Confidence of the interval, given that Z lies within its bounds.
    planned
        The number of draws that were planned.
    """
    if mass.high <= 0:
        return Interval(0.0, 1.0)
    each = (1 + confidence) / 2
    least = bounded_mean(np.minimum(1.0, weights / mass.high), each, planned)[0]
    most = 1.0
    if mass.low > 0:
        most = bounded_mean(np.minimum(1.0, weights / mass.low), each, planned)[1]
    return Interval(max(0.0, 1 - most), min(1.0, 1 - least))


def estimated_kl(weights: Floats, mass: Interval, confidence: float, planned: int) -> Interval:
    """Estimates KL(p ‖ q) in nats; parameters as in :func:`estimated_variation`."""
    if mass.low <= 0:
        return Interval(0.0, math.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(weights > 0, -weights * np.log(weights), 0.0)
    # -w log w is at most 1/e.
    low, high = (
        bound / math.e for bound in bounded_mean(np.clip(terms * math.e, 0, 1), confidence, planned)
    )

    def value(z: float, h: float) -> float:
        return -math.log(z) - h / z

    # It falls with h; along z it rises up to z = h and falls after that.
    peak = min(max(low, mass.low), mass.high)
    least = min(value(mass.low, high), value(mass.high, high))
    return Interval(max(0.0, least), max(0.0, value(peak, low)))


def _shown(interval: Interval) -> str:
    low, high = interval
    return f"{low:.3g}" if low == high else f"{low:.3g} … {high:.3g}"
