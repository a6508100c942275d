"""Choosing the next token from a distribution."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError

__all__ = ["Decoding", "check_seed", "chosen_seed", "random_numbers"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decoding:
    """How the next token is drawn from the allowed ones.

    The mask comes first, so that every rule chooses among allowed tokens. Then, each on the
    renormalised result of the one before: ``temperature``, ``top_k``, ``top_p``, ``min_p``.

    Parameters
    ----------
    temperature
        Log-probabilities are divided by it; 0 takes the most probable token, the smallest id of
        several.
    top_k
        Only the ``top_k`` most probable tokens.
    top_p
        Only the fewest most probable tokens that together have at least ``top_p``.
    min_p
        Only tokens at least ``min_p`` times as probable as the most probable one.

    Raises
    ------
    ArgumentError
        For a value out of range.
    """

    temperature: float = 1.0
    top_k: int | None = None
    top_p: float | None = None
    min_p: float | None = None

    def __post_init__(self) -> None:
        _number("temperature", self.temperature)
        if not 0 <= self.temperature < float("inf"):
            raise ArgumentError(f"temperature must be at least 0, not {self.temperature}")
        if self.top_k is not None and (type(self.top_k) is not int or self.top_k < 1):
            raise ArgumentError(f"top_k must be an integer from 1, not {self.top_k!r}")
        for name, value in (("top_p", self.top_p), ("min_p", self.min_p)):
            if value is not None:
                _number(name, value)
                if not 0 < value <= 1:
                    raise ArgumentError(f"{name} must be above 0 and at most 1, not {value!r}")

    def choose(self, logprobs: Floats, generator: np.random.Generator) -> int:
        """Draw from ``logprobs`` ``(width,)``, where disallowed tokens have minus infinity."""
        if self.temperature == 0:
            return int(np.argmax(logprobs))
        candidates = np.flatnonzero(logprobs > -np.inf)
        scaled = logprobs[candidates] / self.temperature
        weights = np.exp(scaled - scaled.max())
        if (self.top_k, self.top_p, self.min_p) != (None, None, None):
            order = np.argsort(-scaled, kind="stable")
            kept = order[: self._kept(weights[order])]
            candidates, weights = candidates[kept], weights[kept]
        cumulative = np.cumsum(weights)
        # One uniform a token: a sample's stream does not depend on the rules or on its batch.
        draw = generator.random() * cumulative[-1]
        place = int(np.searchsorted(cumulative, draw, side="right"))
        return int(candidates[min(place, len(candidates) - 1)])

    def pass_over(self, generator: np.random.Generator) -> None:
        """Leave out a draw of which the outcome is known."""
        if self.temperature != 0:
            generator.random()

    def _kept(self, weights: Floats) -> int:
        """How many of the weights, in falling order, the rules keep."""
        kept = len(weights) if self.top_k is None else min(self.top_k, len(weights))
        if self.top_p is not None:
            cumulative = np.cumsum(weights[:kept])
            kept = min(kept, int(np.searchsorted(cumulative, self.top_p * cumulative[-1])) + 1)
        if self.min_p is not None:
            kept = int(np.count_nonzero(weights[:kept] >= self.min_p * weights[0]))
        return max(1, kept)


def check_seed(seed: object) -> None:
    """Refuse what is neither a seed nor None."""
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ArgumentError(f"seed must be an integer from 0 or None, not {seed!r}")


def chosen_seed(seed: int | None) -> int:
    """The seed as given, or one from the system's source of randomness."""
    check_seed(seed)
    entropy: Any = np.random.SeedSequence(seed).entropy
    return int(entropy)


def random_numbers(seed: int, index: int) -> np.random.Generator:
    """The random numbers of the sample ``index``.

    They depend on these two numbers alone, so the first three of ten samples are the three of
    three, and a prompt's samples are the same in a batch as by themselves.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))


def _number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number, not {value!r}")
