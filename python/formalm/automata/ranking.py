"""Ranking of the members of an automaton: counts, n-th member, rank, uniform samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any

from formalm import _core
from formalm.argument_checks import checked_integer, shown
from formalm.errors import ArgumentError, LimitError

__all__ = ["MEMORY_LIMIT_BYTES", "MemberRanking", "Span"]

MEMORY_LIMIT_BYTES = 256 << 20
"""Memory that counts and tables may use unless the caller says otherwise."""

_MOST_LENGTHS = 10_000_000


@dataclass(frozen=True)
class Span:
    """A selection of members: of one length, of at most a length, or all."""

    kind: str
    length: int = 0

    @classmethod
    def of(cls, exact: int | None, most: int | None, names: tuple[str, str]) -> Span:
        """Returns the span of two arguments that exclude each other."""
        if exact is not None and most is not None:
            raise ArgumentError(f"{names[0]} and {names[1]} cannot both be given")
        if exact is not None:
            return cls("exactly", checked_integer(names[0], exact))
        if most is not None:
            return cls("at most", checked_integer(names[1], most))
        return cls("any")


@dataclass(frozen=True)
class MemberRanking:
    """The members of a graph by length, then from the smallest.

    Attributes
    ----------
    core
        The graph.
    characters
        Whether lengths count characters; otherwise labels.
    names
        The names of the arguments that bound lengths, for messages.
    memory_limit_bytes
        Maximum memory for counts and tables.
    """

    core: _core.Graph
    characters: bool
    names: tuple[str, str]
    memory_limit_bytes: int = MEMORY_LIMIT_BYTES

    def __post_init__(self) -> None:
        checked_integer("memory_limit_bytes", self.memory_limit_bytes, least=1)

    def count(self, exact: int | None, most: int | None) -> int:
        """Returns the number of members in a span."""
        span = Span.of(exact, most, self.names)
        if span.kind == "any":
            total = self.core.total(self.memory_limit_bytes)
            return self._finite(total)
        at_most = span.kind == "at most"
        return self.core.count(span.length, at_most, self.characters, self.memory_limit_bytes)

    def counts(self, most: int) -> list[int]:
        """Returns the number of members of each length up to ``most``."""
        checked_integer(self.names[1], most)
        if most >= _MOST_LENGTHS:
            raise LimitError("lengths", most + 1, _MOST_LENGTHS)
        known = self.core.counts(most, self.characters, self.memory_limit_bytes)
        return known + [0] * (most + 1 - len(known))

    def nth(self, index: int) -> Any:
        """Returns the member with an index."""
        if type(index) is not int:
            raise ArgumentError(f"index must be an integer, got {type(index).__name__}")
        if index < 0:
            raise ArgumentError(f"index must be a non-negative integer, got {shown(index)}")
        limit = self.memory_limit_bytes
        place = self.core.locate(index, self.characters, limit)
        if place is None:
            total = shown(self._finite(self.core.total(limit)))
            raise ArgumentError(
                f"index must be below the number of members ({total}), got {shown(index)}"
            )
        length, number = place
        return self.core.unrank([number], "exactly", length, self.characters, limit)[0]

    def rank(self, member: Any, length: int) -> int:
        """Returns the index of a member of known length."""
        limit = self.memory_limit_bytes
        number = self.core.rank(member, length, self.characters, limit)
        if number is None:
            raise ArgumentError(f"{member!r} is not a member, so it has no rank")
        if length == 0:
            return number
        return number + self.core.count(length - 1, True, self.characters, limit)

    def sample(self, n: int, seed: int | None, exact: int | None, most: int | None) -> list[Any]:
        """Returns ``n`` members of a span, drawn uniformly and independently."""
        n = checked_integer("n", n)
        if seed is not None and (type(seed) is not int or seed < 0):
            raise ArgumentError(f"seed must be a non-negative integer or None, got {seed!r}")
        span = Span.of(exact, most, self.names)
        # The members of a finite language have indexes without a length bound.
        characters = self.characters and span.kind != "any"
        asked = (span.kind, span.length, characters, self.memory_limit_bytes)
        total = self._finite(self.core.span_total(*asked))
        if total == 0:
            raise ArgumentError("there is no member to sample")
        needed = n * (100 + total.bit_length() // 4)
        if needed > self.memory_limit_bytes:
            raise LimitError("bytes", needed, self.memory_limit_bytes, "draw fewer at a time")
        random = Random(seed)
        return self.core.unrank([random.randrange(total) for _ in range(n)], *asked)

    def members(self, exact: int | None, most: int | None) -> Iterator[Any]:
        """Yields the members of a span in order."""
        span = Span.of(exact, most, self.names)
        first = span.length if span.kind == "exactly" else 0
        last = None if span.kind == "any" else span.length
        return self.core.members(first, last, self.characters, self.memory_limit_bytes)

    def _finite(self, total: int | None) -> int:
        if total is None:
            raise ArgumentError(
                "the language has infinitely many members",
                hint=f"bound them with {self.names[0]} or {self.names[1]}",
            )
        return total
