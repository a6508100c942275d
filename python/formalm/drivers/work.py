"""What was spent on a question."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Work"]


@dataclass(frozen=True)
class Work:
    """What a driver has spent so far.

    Attributes
    ----------
    forwards
        Prefixes that the model evaluated.
    calls
        Batches of them.
    tokens_computed
        Tokens that it was handed to read: whole prefixes, or what was new after a state that it
        went on from.
    cache_hits
        Prefixes evaluated from such a state, their beginnings not handed over again.
    expansions
        Sequences whose continuations were looked at, each counted once.
    seconds
        Time.
    """

    forwards: int
    calls: int
    tokens_computed: int
    cache_hits: int
    expansions: int
    seconds: float
