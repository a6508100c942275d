"""Steering a generation so that its budget ends inside the language."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from formalm.constraint import Constraint, Matcher
from formalm.errors import LimitError

__all__ = ["Finish"]

SEARCH_LIMIT = 1 << 20


class Finish:
    """Knows how many tokens the shortest completion takes, and keeps to what the budget allows.

    A token is kept if, after it, some member can still be completed within the budget. So the first
    step decides whether there is a way, and no later step can lose it. Costs are remembered by
    state: many tokens lead to few states.
    """

    def __init__(self, constraint: Constraint) -> None:
        self._core = constraint.core
        self._end_token_ids = frozenset(constraint.vocabulary.end_token_ids)
        self._exact: dict[int, int] = {}
        self._above: dict[int, int] = {}

    def check(self, matcher: Matcher, budget: int) -> None:
        """Refuse a budget that is below the shortest completion.

        Raises
        ------
        LimitError
            With the number of tokens needed.
        """
        if self._cost(matcher, budget) is None:
            needed = self._cost(matcher, SEARCH_LIMIT)
            raise LimitError(
                "tokens",
                SEARCH_LIMIT if needed is None else needed,
                budget,
                hint="raise max_tokens, or drop finish=True",
            )

    def restrict(self, matcher: Matcher, mask: npt.NDArray[np.bool_], budget: int) -> None:
        """Clear what would leave no member within ``budget`` tokens, the next one among them."""
        for token_id in np.flatnonzero(mask).tolist():
            if token_id in self._end_token_ids:
                continue
            matcher.advance(token_id)
            if self._cost(matcher, budget - 1) is None:
                mask[token_id] = False
            matcher.rollback()

    def _cost(self, matcher: Matcher, limit: int) -> int | None:
        """Tokens of the shortest completion if it has at most ``limit``."""
        if matcher.is_accepting:
            return 0
        key = matcher.state_key
        if key not in self._exact:
            if limit <= self._above.get(key, 0):
                return None
            completion = self._core.shortest_token_ids(matcher.core, limit)
            if completion is None:
                self._above[key] = limit
                return None
            self._exact[key] = len(completion)
        cost = self._exact[key]
        return cost if cost <= limit else None
