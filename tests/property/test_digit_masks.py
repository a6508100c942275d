"""Masks of numbers with tokens of several digits, against every token's bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import Constraint, JsonSchema, Vocabulary

TOKENS = [b"[", b"]", b",", b"-", b".", b"-1", b"12,", b"5]", b"1."]
TOKENS += [str(number).encode() for number in range(300)]
TOKENS += [b"00", b"000", b"007", b"0.5", b"9999999999", b"1" * 40]
VOCABULARY = Vocabulary.from_tokens(TOKENS)
ITEMS: list[dict[str, Any]] = [
    {"type": "integer"},
    {"type": "number"},
    {"type": "integer", "maximum": 250},
    {"type": "integer", "minimum": 17},
    {"type": "number", "exclusiveMaximum": -3},
    {"type": "integer", "multipleOf": 7},
    {"type": "integer", "multipleOf": 25, "minimum": 1000},
    {"type": "integer", "not": {"enum": [1, 10, 12, 100, 123]}},
    {"type": "integer", "anyOf": [{"maximum": 9}, {"minimum": 1_000_000_000}]},
]


@pytest.mark.parametrize("unique", [True, False])
@pytest.mark.parametrize("item", ITEMS, ids=str)
@given(choices=st.lists(st.integers(0, 10_000), max_size=12))
def test_masks_are_the_definition(item: dict[str, Any], unique: bool, choices: list[int]) -> None:
    schema = JsonSchema({"type": "array", "items": item, "uniqueItems": unique}, max_whitespace=0)
    matcher = Constraint(schema, VOCABULARY).matcher()
    for choice in [*choices, 0]:
        allowed = np.flatnonzero(matcher.mask()).tolist()
        read = matcher.text
        assert allowed == [at for at, token in enumerate(TOKENS) if schema.is_viable(read + token)]
        if not allowed:
            return
        matcher.advance(allowed[choice % len(allowed)])
