"""Steering a generation so that its budget ends inside the language."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.constraint import Constraint, Matcher
from formalm.errors import LimitError, TokenError

__all__ = ["Finish"]

SEARCH_LIMIT = 1 << 20


class Finish:
    """Keeps to the tokens after which some member can still be completed within the budget.

    The first step decides whether there is a way, and no later step can lose it. What a completion
    takes are the fewest tokens; where finding them takes long, the fewest that spell the shortest
    text.
    """

    def __init__(self, constraint: Constraint) -> None:
        self._core = constraint.core

    def check(self, matcher: Matcher, budget: int) -> None:
        """Refuse a budget that is below the shortest completion.

        Raises
        ------
        LimitError
            With the number of tokens needed.
        TokenError
            If no sequence of tokens spells a member.
        """
        if self._core.completes_within(matcher.core, budget):
            return
        shortest = self._core.shortest_token_ids(matcher.core, SEARCH_LIMIT)
        if shortest is None:
            raise TokenError(
                "no sequence of tokens spells a member from here",
                hint="the vocabulary lacks tokens for some bytes that the language needs",
            )
        hint = "raise max_tokens, or drop finish=True"
        raise LimitError("tokens", len(shortest), budget, hint=hint)

    def restrict(self, matcher: Matcher, mask: npt.NDArray[np.bool_], budget: int) -> None:
        """Clear what would leave no member within ``budget`` tokens, the next one among them.

        Raises
        ------
        LimitError
            If the tokens lead to too many texts that are all completed differently.
        """
        mask &= self.kept(matcher.core, budget)

    def kept(self, matcher: _core.Matcher, budget: int) -> npt.NDArray[np.bool_]:
        """The mask of a core's matcher with nothing in it that would leave no member.

        Raises
        ------
        LimitError
            As :meth:`restrict`.
        """
        try:
            return self._core.completion_mask(matcher, budget)
        except LimitError as error:
            hint = "texts here are all completed differently: raise max_tokens, drop finish=True"
            raise LimitError(error.what, error.needed, error.allowed, hint=hint) from None
