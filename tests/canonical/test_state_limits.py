"""Masks that are shared by parts of regexes need no states beyond those of the positions read."""

from __future__ import annotations

import pytest

from formalm import Constraint, Regex, Vocabulary
from tests.canonical.small_tokenizers import trained
from tests.canonical.test_trained_tokenizers import PIECES


@pytest.mark.parametrize(
    ("pattern", "text", "limit"),
    [
        (r"[a-z]{0,40}x?1", "abcdefghx1", 40),
        (r'"([^"\\]|\\[nt"])*": (?:[a-z]*b){0,20}c', '"ab": abc', 21),
    ],
)
def test_a_shared_mask_is_never_what_exceeds_the_limit(pattern: str, text: str, limit: int) -> None:
    """Each limit suffices for the states that the walk itself derives."""
    vocabulary = Vocabulary.from_tokenizer_json(trained(PIECES["gpt2"]).to_str())
    for state_limit in (limit, 250_000):
        constraint = Constraint(
            Regex(pattern), vocabulary, tokenization="canonical", state_limit=state_limit
        )
        matcher = constraint.matcher()
        for token in vocabulary.encode(text):
            assert matcher.mask()[token]
            matcher.advance(token)
        assert matcher.is_accepting
