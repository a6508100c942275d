"""The cost of an answer: model evaluations, tokens read, time."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cost"]


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
