"""How far work on a question has come."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from formalm.errors import ArgumentError

__all__ = ["Progress", "checked_progress"]


@dataclass(frozen=True)
class Progress:
    """What was done so far, told before each batch.

    Attributes
    ----------
    forwards, calls
        What the model did.
    nodes
        Token sequences looked at.
    frontier
        Entries of the queue: what is to be looked at next, each for itself and its siblings.
    best_logprob
        The most that anything still to come can have, in nats; None if nothing is queued, as in
        samples.
    covered
        Probability of what was found: the hits so far, or what is decided of a mass. None for
        samples.
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
