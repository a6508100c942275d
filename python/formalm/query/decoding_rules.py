"""Decoding rules as values: temperature, top-k, top-p and min-p; seeds and random numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError

__all__ = ["Decoding", "best", "check_seed", "chosen_seed", "random_numbers"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decoding:
    """A rule for drawing the next token from a distribution.

    The steps apply in this order, each to the renormalized result of the one before:
    ``temperature``, ``top_k``, ``top_p``, ``min_p``. In :func:`~formalm.generate` the mask comes
    first, so every rule chooses among allowed tokens. In a :class:`~formalm.Query` the rules come
    first, because they define the distribution that the query is about.

    Parameters
    ----------
    temperature
        Divides the log-probabilities; 0 takes the most probable token, the smallest id on a tie.
    top_k
        Keeps the ``top_k`` most probable tokens.
    top_p
        Keeps the fewest most probable tokens whose total is at least ``top_p``.
    min_p
        Keeps tokens at least ``min_p`` times as probable as the most probable one.

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
            raise ArgumentError(f"temperature must be at least 0, got {self.temperature}")
        if self.top_k is not None and (type(self.top_k) is not int or self.top_k < 1):
            raise ArgumentError(f"top_k must be a positive integer, got {self.top_k!r}")
        for name, value in (("top_p", self.top_p), ("min_p", self.min_p)):
            if value is not None:
                _number(name, value)
                if not 0 < value <= 1:
                    raise ArgumentError(f"{name} must be above 0 and at most 1, got {value!r}")

    def choose(self, logprobs: Floats, generator: np.random.Generator) -> int:
        """Draws a token from ``logprobs`` ``(width,)``, where disallowed tokens have minus
        infinity.
        """
        if self.temperature == 0:
            return int(np.argmax(logprobs))
        candidates = np.flatnonzero(logprobs > -np.inf)
        scaled = self._scaled(logprobs[candidates])
        weights = np.exp(scaled)
        if (self.top_k, self.top_p, self.min_p) != (None, None, None):
            order = np.argsort(-scaled, kind="stable")
            kept = order[: self._kept(weights[order])]
            candidates, weights = candidates[kept], weights[kept]
        cumulative = np.cumsum(weights)
        # One uniform number per token: a sample's stream does not depend on its rules or its batch.
        draw = generator.random() * cumulative[-1]
        place = int(np.searchsorted(cumulative, draw, side="right"))
        return int(candidates[min(place, len(candidates) - 1)])

    @property
    def is_plain(self) -> bool:
        """True if the model's distribution is unchanged."""
        return self == Decoding()

    def distribution(self, logprobs: Floats, *, renormalize: bool = True) -> Floats:
        """Returns the log-probabilities after these rules, ``(width,)``; removed ones are minus
        infinity.

        Parameters
        ----------
        logprobs
            ``(width,)``, normalized or not.
        renormalize
            Whether the tokens that ``top_k``, ``top_p`` and ``min_p`` keep are made to sum to one.
            With False they keep their probabilities under the temperature.
        """
        if self.is_plain:
            return logprobs
        result = np.full(len(logprobs), -np.inf)
        places, values = self.kept(logprobs, renormalize=renormalize)
        result[places] = values
        return result

    def kept(
        self, logprobs: npt.NDArray[np.floating[Any]], *, renormalize: bool = True
    ) -> tuple[npt.NDArray[np.int64], Floats]:
        """Returns the nonzero part of :meth:`distribution`: indices, best first, and
        log-probabilities.

        With ``top_k``, a row of any precision is read without conversion.
        """
        if self.temperature == 0:
            return np.array([np.argmax(logprobs)]), np.zeros(1)
        as_it_was = self.temperature == 1 and not renormalize
        if self.top_k is not None and (renormalize or as_it_was):
            order = best(logprobs, min(self.top_k, len(logprobs)))
            scaled = self._scaled(logprobs[order])
            order = order[scaled > -np.inf]
            scaled = scaled[: len(order)]
            size = self._kept(np.exp(scaled))
            places, values = order[:size], scaled[:size]
        else:
            scaled = self._scaled(logprobs)
            whole = not as_it_was or self.top_p is not None
            total = float(np.exp(scaled).sum()) if whole else 1.0
            places = self._kept_places(scaled, total)
            values = scaled[places]
        if as_it_was:
            return places, np.asarray(logprobs[places], dtype=np.float64)
        if renormalize:
            total = float(np.exp(values).sum())
        return places, values - np.log(total)

    def _scaled(self, logprobs: npt.NDArray[np.floating[Any]]) -> Floats:
        """Applies the temperature to differences from the maximum, which loses no digits to it."""
        below: Floats = np.asarray(logprobs, dtype=np.float64)
        below = below - below.max()
        with np.errstate(over="ignore"):  # the result is then minus infinity
            return below / self.temperature

    def _kept_places(self, scaled: Floats, total: float) -> npt.NDArray[np.int64]:
        """Returns the indices that the rules keep, best first."""
        size = len(scaled)
        # Sorting a whole vocabulary takes 10 ms, and most rules need only its first entries.
        looked_at = min(size, 1024 if self.top_k is None else self.top_k)
        while True:
            order = best(scaled, looked_at)
            weights = np.exp(scaled[order])
            enough = looked_at == size or self.top_k is not None
            if not enough and self.top_p is not None:
                enough = float(weights.sum()) >= min(1.0, self.top_p * (1 + 1e-9)) * total
            elif not enough and self.min_p is not None:
                enough = bool(weights[-1] < self.min_p)
            if enough:
                break
            looked_at = size
        if self.top_k is None and self.top_p is not None:
            # The share refers to all tokens, not only to those examined.
            reached = np.flatnonzero(np.cumsum(weights) >= self.top_p * total)
            weights = weights[: int(reached[0]) + 1] if len(reached) else weights
            by_p = replace(self, top_p=None)
            return order[: by_p._kept(weights)]
        return order[: self._kept(weights)]

    def pass_over(self, generator: np.random.Generator) -> None:
        """Skips the random numbers of a draw whose outcome is known."""
        if self.temperature != 0:
            generator.random()

    def _kept(self, weights: Floats) -> int:
        """Returns how many of the weights, in descending order, the rules keep."""
        kept = len(weights) if self.top_k is None else min(self.top_k, len(weights))
        if self.top_p is not None:
            cumulative = np.cumsum(weights[:kept])
            kept = min(kept, int(np.searchsorted(cumulative, self.top_p * cumulative[-1])) + 1)
        if self.min_p is not None:
            kept = int(np.count_nonzero(weights[:kept] >= self.min_p * weights[0]))
        return max(1, kept)


def best(values: npt.NDArray[np.floating[Any]], count: int) -> npt.NDArray[np.int64]:
    """Returns the indices of the ``count`` largest values, best first; the smaller index wins a
    tie.
    """
    if count >= len(values):
        places = np.arange(len(values))
        return places[np.lexsort((places, -values))]
    places = _candidates(values, count)
    some = values[places]
    if count < len(places):
        least = np.partition(some, len(some) - count)[len(some) - count]
        above = np.flatnonzero(some > least)
        ties = np.flatnonzero(some == least)[: count - len(above)]
        places = places[np.concatenate([above, ties])]
    return places[np.lexsort((places, -values[places]))]


def _candidates(values: npt.NDArray[np.floating[Any]], count: int) -> npt.NDArray[np.int64]:
    """Returns a few ascending indices that include the ``count`` largest values and their ties.

    Values are split into groups. The maxima of ``count`` groups are at least the ``count``-th
    largest maximum, so at least ``count`` values are. Smaller values are therefore not among the
    ``count`` largest.
    """
    groups = 16 * count
    if len(values) < 4 * groups:
        return np.arange(len(values))
    rows = len(values) // groups
    tops = values[: rows * groups].reshape(rows, groups).max(axis=0)
    return np.flatnonzero(values >= np.partition(tops, groups - count)[groups - count])


def _number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number, got {value!r}")


def check_seed(seed: object) -> None:
    """Refuses a value that is neither a seed nor None."""
    if seed is not None and (type(seed) is not int or seed < 0):
        raise ArgumentError(f"seed must be a nonnegative integer or None, got {seed!r}")


def chosen_seed(seed: int | None) -> int:
    """Returns the seed, or one from the system's source of randomness."""
    check_seed(seed)
    entropy: Any = np.random.SeedSequence(seed).entropy
    return int(entropy)


def random_numbers(seed: int, index: int) -> np.random.Generator:
    """Returns the random number generator of the sample ``index``.

    It depends on the seed and the index alone. The first three of ten samples are therefore the
    same as three samples, and a prompt has the same samples in a batch as alone.
    """
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(index,)))
