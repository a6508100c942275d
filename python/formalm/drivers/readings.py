"""What a search over strings knows of a string: its readings, and what they add up to.

The terms are those of :mod:`formalm.drivers.marginal`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formalm._core import Matcher
from formalm.drivers.task import Found
from formalm.models import Position

__all__ = ["Candidate", "Fan", "Node", "Reading", "log_sum"]

# A pending reading is evaluated before its string is expanded if it is this share of the bound.
WORTH_EVALUATING = 0.01


@dataclass(eq=False)
class Fan:
    """The tokens after an evaluated reading, in order of their bytes."""

    rows: npt.NDArray[np.int64]
    logprobs: npt.NDArray[np.float64]
    end: float


@dataclass(eq=False)
class Reading:
    """A token sequence that spells the first ``length`` bytes of a string.

    There is one object a sequence: strings that share it share its evaluation.
    """

    parent: Reading | None
    token_ids: tuple[int, ...]
    length: int
    logprob: float
    root: int = 0
    position: Position | None = None
    matcher: Matcher | None = None
    fan: Fan | None = None
    children: dict[int, Reading] = field(default_factory=dict)


@dataclass(eq=False)
class Node:
    """A byte string, its readings, and the fans that reach beyond it.

    ``done`` are the bytes whose strings are queued already; they have taken the pending readings
    along, and what stays here is what those may still open up elsewhere.
    """

    data: bytes
    matcher: Matcher
    root: int = 0
    exact: list[Reading] = field(default_factory=list)
    pending: list[Reading] = field(default_factory=list)
    fans: list[tuple[Reading, int, int]] = field(default_factory=list)
    done: frozenset[int] = frozenset()

    def bound(self) -> float:
        """Log of the most that all members strictly below can have together."""
        parts = [reading.logprob for reading in self.pending]
        for reading, low, high in self.fans:
            if reading.fan is not None:
                parts.append(float(np.logaddexp.reduce(reading.fan.logprobs[low:high])))
        return log_sum(parts)

    def wanted(self) -> list[Reading]:
        """The readings to evaluate before it is worth going on; largest first."""
        if not self.pending:
            return []
        least = self.bound() + math.log(WORTH_EVALUATING)
        worth = [reading for reading in self.pending if reading.logprob >= least]
        return worth or ([] if self.fans else self.pending[:1])


@dataclass(eq=False)
class Candidate:
    """A string that is a member, with readings of its own to keep count of."""

    node: Node
    complete: bool
    tolerance: float

    def found(self) -> float:
        """Log of the sum over the readings found so far."""
        readings = self.node.exact
        if not self.complete:
            return log_sum(reading.logprob for reading in readings)
        return log_sum(r.logprob + r.fan.end for r in readings if r.fan is not None)

    def open_readings(self) -> list[Reading]:
        """Those whose evaluation can still add to it."""
        size = len(self.node.data)
        return [r for r in self.node.pending if r.length < size or self.complete]

    def bound(self) -> float:
        """Log of the most that the string can have."""
        return log_sum([self.found(), *(reading.logprob for reading in self.open_readings())])

    def wanted(self) -> list[Reading]:
        """The readings to evaluate until the rest is within the tolerance; none if it is."""
        readings = self.open_readings()
        if not readings or self.tolerance == 0.0:
            return readings
        spare = self.found() + math.log(self.tolerance)
        if log_sum(reading.logprob for reading in readings) <= spare:
            return []
        least = spare - math.log(len(readings))
        return [reading for reading in readings if reading.logprob > least]

    def hit(self, given: bytes) -> Found:
        """What is yielded."""
        best = min(self.node.exact, key=lambda reading: (-reading.logprob, reading.token_ids))
        return Found(self.node.data, best.token_ids, self.found(), len(self.node.exact), given)


def log_sum(values: Iterable[float]) -> float:
    """Logarithm of the sum of exponentials; the same for every order of the values."""
    logs = list(values)
    top = max(logs, default=-math.inf)
    if top == -math.inf:
        return top
    return top + math.log(math.fsum(math.exp(value - top) for value in logs))
