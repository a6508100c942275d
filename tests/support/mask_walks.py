"""Walks along which masks are compared with their definition."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from formalm import Matcher
from formalm.reference.naive_mask import naive_mask

__all__ = ["compare_masks"]


def compare_masks(
    matcher: Matcher, steps: int, choose: Callable[[list[int]], int | None]
) -> Matcher:
    """Compares each mask of a walk of at most so many tokens with its definition.

    The walk ends where no token but an end may follow, or none is chosen. Returns the matcher.
    """
    language, vocabulary = matcher.constraint.language, matcher.constraint.vocabulary
    for _ in range(steps):
        mask = matcher.mask()
        expected = naive_mask(language, vocabulary, matcher.text)
        assert np.array_equal(mask, expected), (language, matcher.text)
        allowed = [one for one in mask.nonzero()[0].tolist() if one not in matcher.end_token_ids]
        token_id = choose(allowed) if allowed else None
        if token_id is None:
            break
        matcher.advance(token_id)
    return matcher
