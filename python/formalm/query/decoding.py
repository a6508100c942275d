"""Choosing the next token from a distribution."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError

__all__ = ["Decoding", "best"]

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Decoding:
    """How the next token is drawn from a distribution.

    In this order, each on the renormalized result of the one before: ``temperature``, ``top_k``,
    ``top_p``, ``min_p``. In :func:`~formalm.generate` the mask comes first, so that every rule
    chooses among allowed tokens; in a :class:`~formalm.Query` the rules come first, as they say
    what is asked about.

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
        scaled = self._scaled(logprobs[candidates])
        weights = np.exp(scaled)
        if (self.top_k, self.top_p, self.min_p) != (None, None, None):
            order = np.argsort(-scaled, kind="stable")
            kept = order[: self._kept(weights[order])]
            candidates, weights = candidates[kept], weights[kept]
        cumulative = np.cumsum(weights)
        # One uniform a token: a sample's stream does not depend on the rules or on its batch.
        draw = generator.random() * cumulative[-1]
        place = int(np.searchsorted(cumulative, draw, side="right"))
        return int(candidates[min(place, len(candidates) - 1)])

    @property
    def is_plain(self) -> bool:
        """Whether the model's distribution stays as it is."""
        return self == Decoding()

    def distribution(self, logprobs: Floats, *, renormalize: bool = True) -> Floats:
        """The log-probabilities after these rules, ``(width,)``; minus infinity for what is cut.

        Parameters
        ----------
        logprobs
            ``(width,)``, normalised or not.
        renormalize
            Whether what ``top_k``, ``top_p`` and ``min_p`` keep is made to sum to one. With False
            it keeps the probability it had under the temperature.
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
        """What :meth:`distribution` leaves: the places, best first, and their log-probabilities.

        With ``top_k`` a row of any precision is looked through as it is.
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
        """The temperature on what lies below the greatest, which loses no digits to it."""
        below: Floats = np.asarray(logprobs, dtype=np.float64)
        below = below - below.max()
        with np.errstate(over="ignore"):  # minus infinity is what it is then
            return below / self.temperature

    def _kept_places(self, scaled: Floats, total: float) -> npt.NDArray[np.int64]:
        """The places that the rules keep, best first."""
        size = len(scaled)
        # Sorting a whole vocabulary takes ten milliseconds, and most rules need its beginning.
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
            # The share is of everything, not of what was looked at.
            reached = np.flatnonzero(np.cumsum(weights) >= self.top_p * total)
            weights = weights[: int(reached[0]) + 1] if len(reached) else weights
            by_p = replace(self, top_p=None)
            return order[: by_p._kept(weights)]
        return order[: self._kept(weights)]

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


def best(values: npt.NDArray[np.floating[Any]], count: int) -> npt.NDArray[np.int64]:
    """The places of the ``count`` largest values, best first; ties go to the smaller place."""
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
    """A few places, in rising order, with the ``count`` largest values and their ties among them.

    Of groups of values, ``count`` have a greatest one that is no less than the ``count``-th of
    these: so many values are no less, and what is less is none of them.
    """
    groups = 16 * count
    if len(values) < 4 * groups:
        return np.arange(len(values))
    rows = len(values) // groups
    tops = values[: rows * groups].reshape(rows, groups).max(axis=0)
    return np.flatnonzero(values >= np.partition(tops, groups - count)[groups - count])


def _number(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError(f"{name} must be a number, not {value!r}")
