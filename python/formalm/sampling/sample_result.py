"""``Samples``: draws with weights, and the mass and means estimated from them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

from formalm.cost import Cost
from formalm.errors import ArgumentError
from formalm.query.query import Event
from formalm.records.record import Origin, Record
from formalm.sampling.mean_estimate import (
    Estimate,
    bounded_mean,
    checked_confidence,
    effective_size,
)

__all__ = ["Sample", "SampleStatus", "Samples", "Target"]

Target = Literal["local", "posterior", "without_replacement", "uniform"]
SampleStatus = Literal["done", "exhausted", "truncated", "interrupted"]


@dataclass(frozen=True)
class Sample:
    """A member that was drawn.

    Attributes
    ----------
    text
        The member, including ``given``; bytes that are not UTF-8 show as U+FFFD. For a local walk
        that ended outside the language, the text up to there.
    data
        The text as bytes.
    given
        The part that was given.
    token_ids
        The tokens after ``given``, without the end.
    logprob
        The model's log-probability of these tokens and the end after them, in nats, including the
        share of the given prefix; minus infinity outside the language, or if ``decoding`` excludes
        it.
    log_weight
        The log weight, in nats. Local: the log of the model's probability over that of the draw.
        Posterior and uniform: 0. Without replacement: the log of its probability over that of being
        drawn.
    rank
        Its number among the draws, from 1.
    origin
        The context from which :meth:`record` makes a record.
    """

    text: str
    data: bytes = field(repr=False)
    given: str = field(repr=False)
    token_ids: tuple[int, ...] = field(repr=False)
    logprob: float
    log_weight: float
    rank: int = field(repr=False, compare=False)
    origin: Origin = field(repr=False, compare=False)

    def record(self) -> Record:
        """Returns a record with everything known about the draw."""
        return self.origin.record(
            self.rank,
            self.data,
            self.token_ids,
            self.logprob,
            log_weight=self.log_weight,
        )

    @property
    def given_bytes(self) -> int:
        """Number of bytes that were given."""
        return len(self.origin.given)


@dataclass(frozen=True)
class Samples(Sequence[Sample]):
    """Draws, and estimates from them.

    Attributes
    ----------
    draws
        The samples in the order drawn.
    event
        The event.
    target
        The target distribution.
    status
        ``"done"``; ``"exhausted"``: there are no more members; ``"truncated"``: a limit stopped it;
        ``"interrupted"``: the user stopped it.
    truncated_by
        The limit, or ``"context"`` if members beyond the model's context were omitted.
    seed
        The seed of the random numbers.
    attempts
        Number of walks started, including rejected ones.
    dropped
        Number of members that the query's function ``keep`` dropped, each counted once.
    cost
        The cost of all draws.
    """

    draws: tuple[Sample, ...]
    event: Event
    target: Target
    status: SampleStatus
    truncated_by: str | None
    seed: int
    attempts: int
    dropped: int
    cost: Cost = field(repr=False, compare=False)

    @property
    def forwards(self) -> int:
        """Prefixes that the model evaluated."""
        return self.cost.forwards

    @property
    def calls(self) -> int:
        """Calls of the model; each evaluates a batch of prefixes."""
        return self.cost.calls

    def __len__(self) -> int:
        return len(self.draws)

    def __getitem__(self, place: int) -> Sample:  # type: ignore[override]
        return self.draws[place]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.draws)

    @property
    def log_weights(self) -> npt.NDArray[np.float64]:
        """Log weights of all draws, ``(len(self),)``."""
        return np.array([draw.log_weight for draw in self.draws])

    @property
    def effective_size(self) -> float:
        """Kish's effective size: the number of posterior draws that these are worth."""
        return effective_size(self.log_weights)

    def mass(self, confidence: float = 0.95) -> Estimate:
        """Estimates the probability of the language without bias from local draws.

        Raises
        ------
        ArgumentError
            For other targets: posterior draws do not determine it, and sums without replacement
            have no interval; :func:`~formalm.mass` proves one.
        """
        return self._weighted(np.exp(self.log_weights), confidence)

    def mean(self, function: Callable[[str], float], confidence: float = 0.95) -> Estimate:
        """Estimates the mean of a function from 0 to 1 under P(string | string is a member).

        For uniform draws it is the mean over the members, independent of the model. For local draws
        the value is a ratio of two weighted estimates, and the interval covers both together.

        Raises
        ------
        ArgumentError
            If a value is not a number from 0 to 1, or for draws without replacement.
        """
        confidence = checked_confidence(confidence)
        if not callable(function):
            raise ArgumentError(
                f"function must be a callable that takes a string, got {function!r:.60}"
            )
        values = np.array(
            [
                _value(function, draw.text) if draw.log_weight > -math.inf else 0.0
                for draw in self.draws
            ]
        )
        if self.target in ("posterior", "uniform"):
            low, high = bounded_mean(values, confidence)
            value = float(values.mean()) if len(values) else math.nan
            return Estimate(value, low, high, confidence, float(len(values)))
        weights = np.exp(self.log_weights)
        each = (1 + confidence) / 2
        above, below = self._weighted(weights * values, each), self._weighted(weights, each)
        value = above.value / below.value if below.value else math.nan
        low = above.low / below.high if below.high else 0.0
        high = min(1.0, above.high / below.low) if below.low else 1.0
        return Estimate(value, low, high, confidence, self.effective_size)

    def _weighted(self, values: npt.NDArray[np.float64], confidence: float) -> Estimate:
        if self.target != "local":
            raise ArgumentError(
                f"mass estimates require target='local', got {self.target!r}",
                hint="sample with target='local', or compute bounds with formalm.mass",
            )
        low, high = bounded_mean(values, confidence)
        value = float(values.mean()) if len(values) else math.nan
        return Estimate(value, low, high, confidence, self.effective_size)


def _value(function: Callable[[str], float], text: str) -> float:
    """Returns a function's value for a text: a number from 0 to 1, or a bool."""
    value: object = function(text)
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= 1:
        raise ArgumentError(
            f"function must return values from 0 to 1, got {value!r:.60} for {text!r:.60}"
        )
    return number
