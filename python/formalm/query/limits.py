"""Where work stops by itself."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from formalm.errors import ArgumentError

__all__ = ["Limits"]

MOST_SECONDS = sys.float_info.max


@dataclass(frozen=True)
class Limits:
    """Where a driver stops by itself. None is no limit.

    Limits say when an answer has cost enough; ``tolerance``, when it is good enough. What was
    proven until a limit was reached is returned, with the name of the limit as ``truncated_by``.
    ``forwards``, ``tokens_computed`` and ``seconds`` bound the fields of
    :class:`~formalm.cost.Cost` with these names.

    Parameters
    ----------
    hits
        Most hits.
    forwards
        Most prefixes evaluated by the model. A state that was dropped to save memory and is needed
        again counts again.
    seconds
        Most time, looked at between batches.
    memory_bytes
        Most memory for the frontier: the sequences reached so far, without what the model keeps.
    beam
        Of each length in tokens, a listing of token sequences keeps only so many, the most probable
        continuations of those it kept of the length before. 1 is greedy. What it drops may be
        better than what it finds.
    state_bytes
        Most memory for what the model said and for its caches, half for each; 256 MiB if None. It
        stops nothing: what is let go is computed again when it is needed.
    tokens_computed
        Most tokens that the model is handed to read, looked at between batches.

    Raises
    ------
    ArgumentError
        When it is used, for a number that is none.
    """

    hits: int | None = None
    forwards: int | None = 100_000
    seconds: float | None = None
    memory_bytes: int | None = None
    beam: int | None = None
    state_bytes: int | None = None
    tokens_computed: int | None = None

    def check(self) -> None:
        """Refuse numbers that are no limits."""
        numbers = ("hits", "forwards", "tokens_computed", "memory_bytes", "beam", "state_bytes")
        for name in numbers:
            value: object = getattr(self, name)
            if value is not None and (type(value) is not int or value < 1):
                raise ArgumentError(f"limits.{name} must be an integer from 1, not {value!r}")
        seconds: object = self.seconds
        is_number = isinstance(seconds, (int, float)) and not isinstance(seconds, bool)
        # Not `<= 0`, which a NaN is not either.
        if seconds is not None and not (is_number and 0 < seconds <= MOST_SECONDS):  # type: ignore[operator]
            raise ArgumentError(
                f"limits.seconds must be a positive number, not {seconds!r:.60}",
                hint="None is no limit",
            )
