"""Strings whose allowed lengths have a gap: masks allow no token that ends in the gap."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from formalm import Constraint, JsonSchema, Vocabulary
from tests.support.mask_walks import compare_masks

TOKENS = [
    *(b'"', b"a", b'a"', b'aa"', b'aaa"', b"aa", b'"a', b'"aa', b'"aa"', b'""', b"[", b"]", b","),
    *(b'["a', b"\\n", "é".encode(), b'b"'),
]
VOCABULARY = Vocabulary.from_tokens([*TOKENS, None], end_token_ids=[len(TOKENS)])
STRINGS: list[dict[str, Any]] = [
    {"anyOf": [{"const": ""}, {"type": "string", "minLength": 3}]},
    {"type": "string", "anyOf": [{"maxLength": 0}, {"minLength": 3}]},
    {"type": "string", "anyOf": [{"enum": [""]}, {"minLength": 2}]},
    {"type": "string", "anyOf": [{"maxLength": 1}, {"minLength": 3, "maxLength": 3}]},
    {"type": "string", "anyOf": [{"minLength": 2, "maxLength": 2}, {"minLength": 4}]},
    {"type": "string", "pattern": r"^$|^[\s\S]{2,}$"},
    # The gap lies behind the lengths that are tested in advance.
    {"type": "string", "anyOf": [{"maxLength": 1500}, {"minLength": 1503}]},
    # No gap.
    {"type": "string", "minLength": 2, "maxLength": 3},
    {"type": "string", "maxLength": 2000},
]


@pytest.mark.parametrize("is_item", [False, True])
@pytest.mark.parametrize("schema", STRINGS)
def test_no_token_ends_in_a_gap(schema: dict[str, Any], is_item: bool) -> None:
    language = JsonSchema({"type": "array", "items": schema} if is_item else schema)
    constraint = Constraint(language, VOCABULARY)
    for seed in range(20):
        compare_masks(constraint.matcher(), 10, Random(seed).choice)


@pytest.mark.parametrize(("least", "most"), [(1500, 1503), (1100, 1102)])
def test_no_token_ends_in_a_gap_far_away(least: int, most: int) -> None:
    language = JsonSchema({"type": "string", "anyOf": [{"maxLength": least}, {"minLength": most}]})
    matcher = Constraint(language, VOCABULARY).matcher()
    text = b'"' + b"a" * (least - 3)
    matcher.advance_bytes(text)
    for _ in range(8):
        viable = [language.is_viable(text + token) for token in TOKENS]
        assert matcher.mask()[: len(TOKENS)].tolist() == viable, len(text)
        matcher.advance(TOKENS.index(b"a"))
        text += b"a"
