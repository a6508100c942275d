"""Limits on the work of a query: hits, model evaluations, time, memory."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from formalm.errors import ArgumentError

__all__ = ["Limits"]

MOST_SECONDS = sys.float_info.max


@dataclass(frozen=True)
class Limits:
    """Limits at which a driver stops by itself. None means no limit.

    Limits bound the cost of an answer; ``tolerance`` says when it is good enough. At a limit, the
    driver returns what is proven so far, with the name of the limit as ``truncated_by``.
    ``forwards``, ``tokens_computed`` and ``seconds`` bound the fields of
    :class:`~formalm.cost.Cost` with these names.

    Parameters
    ----------
    hits
        Maximum number of hits.
    forwards
        Maximum number of prefixes that the model evaluates. A state that was evicted and is needed
        again counts again.
    seconds
        Maximum time, checked between batches.
    memory_bytes
        Maximum memory of the frontier: the sequences reached so far, without the model's states.
    beams
        For each length in tokens, a search over token sequences keeps only this many: the most
        probable continuations of those kept at the length before. 1 is greedy. A dropped sequence
        may be better than those found.
    state_bytes
        Maximum memory of the model's answers and caches, half for each; 256 MiB if None. It stops
        nothing: evicted values are computed again when needed.
    tokens_computed
        Maximum number of tokens that the model reads, checked between batches.

    Raises
    ------
    ArgumentError
        On use, for an invalid number.
    """

    hits: int | None = None
    forwards: int | None = 100_000
    seconds: float | None = None
    memory_bytes: int | None = None
    beams: int | None = None
    state_bytes: int | None = None
    tokens_computed: int | None = None

    def check(self) -> None:
        """Refuses invalid numbers."""
        numbers = ("hits", "forwards", "tokens_computed", "memory_bytes", "beams", "state_bytes")
        for name in numbers:
            value: object = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ArgumentError(f"limits.{name} must be a positive integer, got {value!r}")
        seconds: object = self.seconds
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        # Not `<= 0`, which is False for NaN too.
        if seconds is not None and not (is_number and 0 < seconds <= MOST_SECONDS):  # type: ignore[operator]
            raise ArgumentError(
                f"limits.seconds must be a positive number, got {seconds!r:.60}",
                hint="None means no limit",
            )
