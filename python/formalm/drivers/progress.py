"""Progress reports: the cost so far and the size of the frontier."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from formalm.drivers.cost import Cost
from formalm.errors import ArgumentError

__all__ = ["Progress", "Series", "checked_progress"]


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
