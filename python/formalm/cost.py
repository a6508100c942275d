"""Cost reports: progress while a query runs, and the model calls, tokens and time of its result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from formalm.errors import ArgumentError

__all__ = ["Cost", "Progress"]


@dataclass(frozen=True)
class Cost:
    """The cost of an answer so far; costs add up with ``+``.

    A field that :class:`~formalm.Limits` bounds has the name of its limit.

    Attributes
    ----------
    forwards
        Prefixes that the model evaluated.
    calls
        Calls of the model; each evaluates a batch of prefixes.
    tokens_computed
        Tokens that the model read: whole prefixes, or the new tokens after a cached state.
    cache_hits
        Prefixes evaluated from a cached state, without reading their earlier tokens again.
    expansions
        Token sequences whose continuations were examined, each counted once.
    seconds
        Wall-clock time.
    """

    forwards: int
    calls: int
    tokens_computed: int
    cache_hits: int
    expansions: int
    seconds: float

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.forwards + other.forwards,
            self.calls + other.calls,
            self.tokens_computed + other.tokens_computed,
            self.cache_hits + other.cache_hits,
            self.expansions + other.expansions,
            self.seconds + other.seconds,
        )


@dataclass(frozen=True)
class Progress:
    """The state of a driver, reported before each batch.

    Attributes
    ----------
    cost
        The cost so far, as in the result.
    nodes
        Token sequences reached; for a score, those of the current text.
    frontier
        Entries of the queue; each stands for itself and its siblings.
    best_logprob
        An upper bound on the log-probability of any result still to come, in nats; None if nothing
        is queued, as in samples, scores and distortions.
    covered
        The probability found so far: of the hits, or of the decided mass. None for samples, scores
        and distortions.
    """

    cost: Cost
    nodes: int
    frontier: int
    best_logprob: float | None
    covered: float | None

    @property
    def forwards(self) -> int:
        """Prefixes that the model evaluated."""
        return self.cost.forwards

    @property
    def calls(self) -> int:
        """Calls of the model."""
        return self.cost.calls


def checked_progress(
    progress: Callable[[Progress], None] | None,
) -> Callable[[Progress], None] | None:
    """Returns a progress function or None; refuses a value that is not callable."""
    if progress is not None and not callable(progress):
        raise ArgumentError(
            f"progress must be a callable that takes a Progress, got {progress!r:.60}"
        )
    return progress


class Series:
    """Combined progress of several queries that run one after another.

    Attributes
    ----------
    tell
        The ``progress`` function of each query; None if there is none.
    """

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self._progress = checked_progress(progress)
        self._started = time.monotonic()
        self._spent = Cost(0, 0, 0, 0, 0, 0.0)
        self.tell = None if self._progress is None else self._tell

    def over(self, cost: Cost) -> None:
        """Adds the cost of a finished query."""
        self._spent += cost

    def _tell(self, now: Progress) -> None:
        if self._progress is not None:
            seconds = time.monotonic() - self._started
            cost = replace(self._spent + now.cost, seconds=seconds)
            self._progress(replace(now, cost=cost, best_logprob=None, covered=None))
