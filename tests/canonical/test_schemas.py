"""Canonical tokens of schemas whose names and items make a state of every input."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from formalm import Constraint, JsonSchema, Vocabulary
from tests.canonical.small_tokenizers import encode_raw, trained
from tests.canonical.test_trained_tokenizers import PIECES
from tests.canonical.tokenizer_files import NAMES, load, quick_and_slow

KINDS = ["gpt2", "cl100k isolated False", "digits"]
SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"the": {"type": "integer"}, "then": True}},
    {
        "type": "object",
        "required": ["name"],
        "properties": {"tags": {"items": {"type": "string"}, "uniqueItems": True}},
        "propertyNames": {"maxLength": 6},
        "maxProperties": 3,
    },
    {"type": "array", "items": {"enum": ["the", "then", "1", "a the"]}, "uniqueItems": True},
    {
        "type": "object",
        "patternProperties": {"^x": {"$ref": "#"}, "1": {"maximum": 12}},
        "additionalProperties": {"type": "string", "minLength": 2},
    },
]


def walk(constraint: Constraint, rng: random.Random, steps: int) -> list[int]:
    """Tokens chosen at random among those allowed."""
    matcher, ends = constraint.matcher(), set(constraint.vocabulary.end_token_ids)
    for _ in range(steps):
        allowed = [one for one in matcher.allowed_token_ids().tolist() if one not in ends]
        assert allowed or matcher.is_accepting
        if not allowed:
            break
        matcher.advance(rng.choice(allowed))
    return list(matcher.token_ids)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_masks_are_those_of_a_new_constraint(schema: Any, order: str, kind: str) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(trained(PIECES[kind]).to_str())
    language = JsonSchema(schema, property_order=order)
    shared = Constraint(language, vocabulary, tokenization="canonical")
    rng = random.Random(2)
    for _ in range(2):
        ids = walk(shared, rng, 12)
        new = Constraint(language, vocabulary, tokenization="canonical").matcher()
        known = shared.matcher()
        assert new.advance_many(ids) == len(ids)
        for at, token_id in enumerate(ids):
            if at % 4 == 0:
                fresh = Constraint(language, vocabulary, tokenization="canonical").matcher()
                fresh.advance_many(ids[:at])
                assert np.array_equal(fresh.mask(), known.mask()), known.text
            known.advance(token_id)
        assert np.array_equal(new.mask(), known.mask()), known.text
    assert shared.report.exact


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
def test_no_token_of_an_instance_is_masked(schema: Any, order: str, kind: str) -> None:
    tokenizer = trained(PIECES[kind])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    language = JsonSchema(schema, property_order=order)
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    count = 0
    for text in language.sample(40, seed=3):
        ids = encode_raw(tokenizer, vocabulary, text)
        if ids is None or len(ids) > 200:
            continue
        count += 1
        matcher = constraint.matcher()
        for token_id in ids:
            assert matcher.mask()[token_id], (text, matcher.text)
            matcher.advance(token_id)
        assert matcher.is_accepting
    assert count > 4


@pytest.mark.skipif(not NAMES, reason="no files in ../shared/tokenizers")
@pytest.mark.parametrize("name", quick_and_slow(NAMES))
def test_long_texts_of_open_objects_take_no_state_for_every_token(name: str) -> None:
    case = load(name)
    constraint = Constraint(JsonSchema(SCHEMAS[0]), case.vocabulary, tokenization="canonical")
    rng = random.Random(4)
    for _ in range(4):
        ids = walk(constraint, rng, 60)
        assert ids


@pytest.mark.parametrize("name", quick_and_slow(NAMES))
def test_tokens_that_mask_classes_leave_open_are_rechecked(name: str) -> None:
    case = load(name)
    distinct = JsonSchema({"type": "array", "items": {"type": "string"}, "uniqueItems": True})
    constraint = Constraint(distinct, case.vocabulary, tokenization="canonical")
    # Behind the first texts masks are made that the others go by.
    for text in ('[ "a","', '[ "b', '[ "', '["a", "', '["b', '["a","', '["a"'):
        matcher = constraint.matcher()
        ids = case.vocabulary.encode(text)
        if matcher.advance_many(ids) < len(ids):
            continue
        fresh = Constraint(distinct, case.vocabulary, tokenization="canonical").matcher()
        fresh.advance_many(ids)
        assert np.array_equal(fresh.mask(), matcher.mask()), text
