"""Where a document's choices come from: a seeded source, or all choices one after another."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol


class Source(Protocol):
    """Takes one decision at a time."""

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1, each with probability 1 / n."""

    def weighted(self, cumulative: Sequence[int]) -> int:
        """Return an index with probability proportional to its share of the cumulative weights."""


class RandomSource:
    """Decisions from a seed.

    Only `random.Random.random` is used: it is the one method whose sequence Python promises to
    keep between versions.
    """

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed).random

    def below(self, n: int) -> int:
        """Return a number from 0 to n - 1."""
        return int(self._random() * n)

    def weighted(self, cumulative: Sequence[int]) -> int:
        """Return an index drawn by weight."""
        point = self._random() * cumulative[-1]
        index = 0
        while cumulative[index] <= point:
            index += 1
        return index

    def shuffle(self, items: list[object]) -> None:
        """Shuffle in place (Fisher-Yates)."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]


class _ReplayedSource:
    """Follows a path of decisions, takes the first choice beyond it, and notes all widths."""

    def __init__(self, path: Sequence[int]) -> None:
        self.path = list(path)
        self.widths: list[int] = []

    def below(self, n: int) -> int:
        self.widths.append(n)
        if len(self.widths) > len(self.path):
            self.path.append(0)
        return self.path[len(self.widths) - 1]

    def weighted(self, cumulative: Sequence[int]) -> int:
        return self.below(len(cumulative))


def every_outcome(
    draw: Callable[[Source], tuple[str, float]], limit: int = 1_000_000
) -> Iterator[tuple[str, float]]:
    """Yield every outcome of a drawing function, one for each derivation.

    The slow definition of the distribution: the tests compare with it.

    Parameters
    ----------
    draw
        Maps a source to a text and its log-probability.
    limit
        Derivations after which to stop with an error.

    Yields
    ------
    tuple of str and float
        The text and the log-probability of this derivation of it.
    """
    path: list[int] = []
    for _ in range(limit):
        source = _ReplayedSource(path)
        yield draw(source)
        path = source.path
        while path and path[-1] == source.widths[len(path) - 1] - 1:
            path.pop()
        if not path:
            return
        path[-1] += 1
    raise OverflowError(f"more than {limit} derivations")


def log_uniform(n: int) -> float:
    """Return the log-probability of one of `n` equal choices."""
    return -math.log(n)
