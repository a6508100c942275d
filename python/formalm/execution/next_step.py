"""The continuations of a node of a walk: sums and draws over the model's row, without a copy of it.

A step has an end and children. Both have probabilities: those of the query's distribution, of which
the language removes a part. Draws are inverted cumulative sums, the end first, then the children by
token id.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.execution.sequence_trie import END
from formalm.models import LogitRow
from formalm.models.logit_rows import Words

__all__ = ["ListedStep", "NextStep", "RowStep", "token_ids_of"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class NextStep(Protocol):
    """The continuations of a node.

    Attributes
    ----------
    end
        The probability of an end.
    children
        The total probability of the allowed tokens.
    """

    end: float
    children: float

    @property
    def memory_bytes(self) -> int:
        """Memory of the step, and of the row that it reads."""
        ...

    def logprob(self, token_id: int) -> float:
        """Returns the log-probability of a token; minus infinity if it is not allowed."""
        ...

    def reweighted(self, tokens: Sequence[int], factors: Sequence[float]) -> float:
        """Returns ``children`` after the probabilities of some tokens, ascending, are multiplied by
        factors.
        """
        ...

    def draw(
        self,
        target: float,
        children: float,
        tokens: Sequence[int] = (),
        factors: Sequence[float] = (),
    ) -> int:
        """Returns the continuation at a point of the cumulative probabilities: a token or ``END``.

        ``children`` is :meth:`reweighted` of the tokens.
        """
        ...

    def listed(self) -> tuple[Ids, Floats]:
        """Returns the allowed tokens, ascending, and their probabilities: new arrays."""
        ...


class RowStep:
    """The continuations that a bitmask allows in a model's whole row.

    Parameters
    ----------
    row
        The model's row.
    words, size
        The allowed tokens without end tokens: a bitmask, of which the first ``size`` bits count.
    ends
        The end tokens, if an end is allowed; else empty.
    """

    __slots__ = ("_row", "_size", "_table", "_words", "children", "end")

    def __init__(self, row: LogitRow, words: Words, size: int, ends: Sequence[int]) -> None:
        self._row, self._words, self._size = row, words, size
        self._table = _core.DrawTable(row.values, words, size, row.is_normalized)
        row.accept(self._table.log_sum, self._table.soundness)
        log_sum = row.log_sum
        self.children = math.exp(min(0.0, self._table.log_allowed - log_sum))
        self.end = math.exp(min(0.0, row.log_sum_of(ends) - log_sum)) if ends else 0.0

    @property
    def memory_bytes(self) -> int:
        """Memory of the step, and of the row that it reads."""
        return self._table.memory_bytes + self._row.memory_bytes

    def logprob(self, token_id: int) -> float:
        """Returns the log-probability of a token; minus infinity if it is not allowed."""
        if token_id >= self._size or not int(self._words[token_id >> 5]) >> (token_id & 31) & 1:
            return -math.inf
        return min(0.0, self._row.value(token_id) - self._row.log_sum)

    def reweighted(self, tokens: Sequence[int], factors: Sequence[float]) -> float:
        """See :meth:`NextStep.reweighted`."""
        if not tokens:
            return self.children
        found = self._table.reweighted_log_sum(
            self._row.values, self._words, self._size, tokens, factors
        )
        return math.exp(min(0.0, found - self._row.log_sum))

    def draw(
        self,
        target: float,
        children: float,
        tokens: Sequence[int] = (),
        factors: Sequence[float] = (),
    ) -> int:
        """See :meth:`NextStep.draw`."""
        if target < self.end or children <= 0.0:
            return END
        uniform = (target - self.end) / children
        return self._table.draw(self._row.values, self._words, self._size, uniform, tokens, factors)

    def listed(self) -> tuple[Ids, Floats]:
        """See :meth:`NextStep.listed`."""
        ids = token_ids_of(self._words, self._size)
        logprobs = self._row.take(ids) - self._row.log_sum
        possible = logprobs > -np.inf
        return ids[possible], np.exp(np.minimum(logprobs[possible], 0.0))


class ListedStep:
    """The continuations of a node as arrays: ascending tokens and their probabilities."""

    __slots__ = ("_ids", "_probabilities", "children", "end")

    def __init__(self, ids: Ids, probabilities: Floats, end: float) -> None:
        self._ids, self._probabilities, self.end = ids, probabilities, end
        self.children = float(probabilities.sum())

    @property
    def memory_bytes(self) -> int:
        """Memory of the arrays."""
        return self._ids.nbytes + self._probabilities.nbytes

    def logprob(self, token_id: int) -> float:
        """Returns the log-probability of a token; minus infinity if it is not allowed."""
        place = int(np.searchsorted(self._ids, token_id))
        if place >= len(self._ids) or self._ids[place] != token_id:
            return -math.inf
        probability = float(self._probabilities[place])
        return math.log(probability) if probability > 0 else -math.inf

    def reweighted(self, tokens: Sequence[int], factors: Sequence[float]) -> float:
        """See :meth:`NextStep.reweighted`."""
        return float(self._weights(tokens, factors).sum()) if tokens else self.children

    def draw(
        self,
        target: float,
        children: float,
        tokens: Sequence[int] = (),
        factors: Sequence[float] = (),
    ) -> int:
        """See :meth:`NextStep.draw`."""
        if target < self.end or not len(self._ids):
            return END
        weights = self._weights(tokens, factors)
        place = int(np.searchsorted(np.cumsum(weights), target - self.end, side="right"))
        if place >= len(self._ids):  # rounding at the upper end
            place = int(np.flatnonzero(weights)[-1])
        return int(self._ids[place])

    def listed(self) -> tuple[Ids, Floats]:
        """See :meth:`NextStep.listed`."""
        return self._ids, self._probabilities

    def _weights(self, tokens: Sequence[int], factors: Sequence[float]) -> Floats:
        if not tokens:
            return self._probabilities
        weights: Floats = self._probabilities.copy()
        weights[np.searchsorted(self._ids, np.asarray(tokens))] *= factors
        return weights


def token_ids_of(words: Words, size: int) -> Ids:
    """Returns the tokens of a bitmask among the first ``size``, ascending."""
    bits = np.unpackbits(words.view(np.uint8), bitorder="little", count=None)[:size]
    return np.flatnonzero(bits)
