"""Numbering of a constraint's states as small integers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from formalm._core import Matcher
from formalm.constraint import Constraint
from formalm.errors import LimitError

__all__ = ["STATE_LIMIT", "States"]

STATE_LIMIT = 1_000_000
CACHE_BYTES = 64 << 20

Ids = npt.NDArray[np.int64]


class States:
    """The states that a walk through a constraint visits, numbered in the order of visits.

    Positions with equal futures are one state, so a node of a frontier needs only one integer for
    its language.

    Parameters
    ----------
    constraint
        The constraint.
    limit
        Maximum number of states.

    Attributes
    ----------
    accepting
        For each state: True if the input read so far is a member.
    """

    def __init__(self, constraint: Constraint, limit: int = STATE_LIMIT) -> None:
        self._constraint = constraint
        self._limit = limit
        self._ends = np.array(constraint.vocabulary.end_token_ids, dtype=np.int64)
        self._numbers: dict[int, int] = {}
        self._matchers: list[Matcher] = []
        self._allowed: dict[int, Ids] = {}
        self._words: dict[int, npt.NDArray[np.int32]] = {}
        self._finished: dict[int, bool] = {}
        self._cached_bytes = 0
        self.accepting: list[bool] = []

    def __len__(self) -> int:
        return len(self._matchers)

    def after(self, text: bytes) -> int:
        """Returns the state after the bytes of a viable prefix, from the start."""
        matcher = self._constraint.core.matcher()
        matcher.advance_bytes(text)
        return self.of(matcher)

    def of(self, matcher: Matcher) -> int:
        """Returns the state of a matcher of the constraint."""
        # All states keep one numbering for the duration of the walk.
        matcher.pin(self._matchers[0] if self._matchers else None)
        return self._number(matcher)

    def step(self, state: int, token_id: int) -> int:
        """Returns the state after an allowed token."""
        matcher = self._matchers[state].fork()
        matcher.advance(token_id)
        return self._number(matcher)

    def is_finished(self, state: int) -> bool:
        """Returns True if only an end may follow; computed on demand, because it may need a mask.

        Inside a character, where no token ends, tokens that extend beyond it are not known.
        """
        known = self._finished.get(state)
        if known is None:
            known = self._finished[state] = self._matchers[state].is_finished
        return known

    def allowed(self, state: int) -> Ids:
        """Returns the tokens that may follow, ascending, without end tokens."""
        known = self._allowed.get(state)
        if known is not None:
            return known
        ids = self._matchers[state].allowed_token_ids().astype(np.int64)
        if self.accepting[state] and len(self._ends):
            ids = ids[~np.isin(ids, self._ends)]
        if self._cached_bytes + ids.nbytes > CACHE_BYTES:
            self._allowed.clear()
            self._cached_bytes = 0
        self._allowed[state] = ids
        self._cached_bytes += ids.nbytes
        return ids

    def words(self, state: int) -> npt.NDArray[np.int32]:
        """Returns :meth:`allowed` as a bitmask, read-only."""
        known = self._words.get(state)
        if known is not None:
            return known
        words = self._matchers[state].bitmask()
        if self.accepting[state] and len(self._ends):
            words = words.copy()
            for end in self._ends.tolist():
                words.view(np.uint32)[end >> 5] &= np.uint32(~(1 << (end & 31)) & 0xFFFFFFFF)
        if len(self._words) * words.nbytes > CACHE_BYTES:
            self._words.clear()
        self._words[state] = words
        return words

    def _number(self, matcher: Matcher) -> int:
        key = matcher.state_key
        number = self._numbers.get(key)
        if number is None:
            number = len(self._matchers)
            if number >= self._limit:
                raise LimitError("states of the constraint", number + 1, self._limit)
            self._numbers[key] = number
            self._matchers.append(matcher)
            self.accepting.append(matcher.is_accepting)
        return number
