"""How far work on a question has come."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from formalm.errors import ArgumentError

__all__ = ["Progress", "Series", "checked_progress"]


@dataclass(frozen=True)
class Progress:
    """What was done so far, told before each batch.

    Attributes
    ----------
    forwards, calls
        What the model did.
    nodes
        Token sequences looked at; of a score, for the text that is at work.
    frontier
        Entries of the queue: what is to be looked at next, each for itself and its siblings.
    best_logprob
        The most that anything still to come can have, in nats; None if nothing is queued, as in
        samples, scores and distortions.
    covered
        Probability of what was found: the hits so far, or what is decided of a mass. None for
        samples, scores and distortions.
    seconds
        Time since the beginning.
    """

    forwards: int
    calls: int
    nodes: int
    frontier: int
    best_logprob: float | None
    covered: float | None
    seconds: float


def checked_progress(
    progress: Callable[[Progress], None] | None,
) -> Callable[[Progress], None] | None:
    """Refuse what cannot be called."""
    if progress is not None and not callable(progress):
        raise ArgumentError(f"progress is a function of a Progress, not {progress!r:.60}")
    return progress


class Series:
    """Progress of questions asked one after the other, told as that of one.

    Attributes
    ----------
    tell
        What a question is given for its own progress; None if nobody asked.
    """

    def __init__(self, progress: Callable[[Progress], None] | None) -> None:
        self._progress = checked_progress(progress)
        self._started = time.monotonic()
        self._forwards = self._calls = 0
        self.tell = None if self._progress is None else self._tell

    def over(self, forwards: int, calls: int) -> None:
        """Note what a question has spent that is over."""
        self._forwards += forwards
        self._calls += calls

    def _tell(self, now: Progress) -> None:
        if self._progress is not None:
            forwards, calls = self._forwards + now.forwards, self._calls + now.calls
            seconds = time.monotonic() - self._started
            told = Progress(forwards, calls, now.nodes, now.frontier, None, None, seconds)
            self._progress(told)
