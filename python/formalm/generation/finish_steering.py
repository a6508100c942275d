"""``finish=True``: masks that keep a member within reach of the token budget."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.constraint import Constraint, Matcher
from formalm.errors import LimitError, TokenError

__all__ = ["FinishSteering"]

SEARCH_LIMIT = 1 << 20


class FinishSteering:
    """Restricts masks to tokens after which some member can still be completed within the budget.

    The first step decides whether that is possible, and no later step can lose it. The cost of a
    completion is its minimum number of tokens. If that takes long to find, it is the minimum number
    of tokens that spell the shortest completion in bytes. If tokens must be canonical, both are
    numbers of canonical tokens, and the matchers may begin after prompts.
    """

    def __init__(self, constraint: Constraint) -> None:
        self._core = constraint.core
        # Of other languages, the fewest canonical tokens are the result of a bounded search.
        self._is_estimate = (
            constraint.tokenization == "canonical" and not constraint.language.is_regular
        )

    def check(self, matcher: Matcher, budget: int) -> None:
        """Refuses a budget below the shortest completion.

        Raises
        ------
        LimitError
            With the number of tokens needed.
        TokenError
            If no token sequence spells a member.
        """
        self.check_core(matcher.core, budget)

    def check_core(self, matcher: _core.Matcher, budget: int) -> None:
        """Does the same for a core matcher."""
        if self._core.completes_within(matcher, budget):
            return
        shortest = self._core.shortest_token_ids(matcher, SEARCH_LIMIT)
        if shortest is None and self._is_estimate:
            raise TokenError(
                "no member in canonical tokens was found from here",
                hint="the search is bounded where a language is not regular; drop finish=True",
            )
        if shortest is None:
            raise TokenError(
                "no token sequence completes a member from here",
                hint="the vocabulary lacks tokens for some bytes that the language needs",
            )
        if len(shortest) <= budget:
            # The bounded search for a completion that fits had given up; this one does.
            return
        raise LimitError(
            "tokens",
            len(shortest),
            budget,
            hint="raise max_tokens or drop finish=True",
            is_estimate=self._is_estimate,
        )

    def words(self, matcher: _core.Matcher, budget: int) -> npt.NDArray[np.int32]:
        """Returns :meth:`kept` as a bitmask; errors as there."""
        mask = self.kept(matcher, budget)
        padded = np.zeros(-(-len(mask) // 32) * 32, dtype=np.bool_)
        padded[: len(mask)] = mask
        return np.packbits(padded, bitorder="little").view(np.int32)

    def restrict(self, matcher: Matcher, mask: npt.NDArray[np.bool_], budget: int) -> None:
        """Removes from a mask the tokens that are not in :meth:`kept`; errors as there."""
        mask &= self.kept(matcher.core, budget)

    def kept(self, matcher: _core.Matcher, budget: int) -> npt.NDArray[np.bool_]:
        """Returns the mask of a core matcher without the tokens after which no member fits into
        ``budget`` tokens, including this one.

        Raises
        ------
        LimitError
            If the tokens lead to too many states that all need different completions.
        """
        try:
            return self._core.completion_mask(matcher, budget)
        except LimitError as error:
            hint = (
                "too many states need different completions; raise max_tokens or drop finish=True"
            )
            raise LimitError(error.what, error.needed, error.allowed, hint=hint) from None
