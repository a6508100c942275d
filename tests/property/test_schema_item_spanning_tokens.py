"""Masks of distinct items, with tokens that contain several whole items."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from formalm import Constraint, JsonSchema, Vocabulary

ITEMS = ['""', '"a"', '"b"', "1", "12", "2", "[]", "[1]", "{}", '{"a":""}', "true", "null"]
ENDS = ["", ",", "]", '"', "[", "{"]


def tokens(seed: int) -> list[bytes]:
    """Single bytes, and pieces of arrays that begin and end anywhere."""
    random = Random(seed)
    texts = {bytes([one]) for one in b'[]{},:"ab12truenl'}
    while len(texts) < 120:
        whole = "[" + ",".join(random.choices(ITEMS, k=random.randint(1, 4))) + random.choice("],")
        at = random.randrange(len(whole))
        texts.add(whole[at : at + random.randint(2, 9)].encode())
    return sorted(texts)


SCHEMAS: list[dict[str, Any]] = [
    {},
    {"items": {"type": "string"}},
    {"items": {"type": ["number", "string"]}},
    {"items": {"type": ["array", "number"]}},
    {"items": {"type": "object"}},
    {"items": {"type": "string", "pattern": "^(a*|b)$"}},
    {"items": {"type": "object", "required": ["a"], "additionalProperties": False,
               "properties": {"a": {"type": "string"}}}},
    {"items": {"type": "array", "uniqueItems": True}},
]  # fmt: skip


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_masks_are_what_may_be_read(schema: dict[str, Any], order: Any) -> None:
    language = JsonSchema({"type": "array", "uniqueItems": True, **schema}, property_order=order)
    for seed in range(12):
        texts = tokens(seed)
        vocabulary = Vocabulary.from_tokens([*texts, None], end_token_ids=[len(texts)])
        constraint, random = Constraint(language, vocabulary), Random(seed)
        for _ in range(4):
            matcher = constraint.matcher()
            for _ in range(8):
                mask = matcher.mask().tolist()
                read = [matcher.allows(token) for token in range(len(texts))]
                assert mask[:-1] == read, [
                    (matcher.text, texts[at]) for at in range(len(texts)) if mask[at] != read[at]
                ]
                allowed = [at for at in range(len(texts)) if read[at]]
                if not allowed:
                    break
                long = [at for at in allowed if len(texts[at]) > 1]
                matcher.advance(random.choice(long or allowed))


def test_masks_after_a_literal_prefix() -> None:
    language = JsonSchema({"type": "array", "uniqueItems": True})
    texts = [b"[", b'"","",', b"1,1,", b'"",', b'""', b"1", b"]", b"x", b",1]"]
    vocabulary = Vocabulary.from_tokens([*texts, None], end_token_ids=[len(texts)])
    from formalm import StringLiteral

    matcher = Constraint(StringLiteral("x") + language, vocabulary).matcher()
    matcher.advance(7)
    assert [bool(one) for one in matcher.mask()[:-1]] == [matcher.allows(at) for at in range(9)]
    matcher.advance(0)
    assert [bool(one) for one in matcher.mask()[:-1]] == [matcher.allows(at) for at in range(9)]
    assert not matcher.allows(1)
    assert not matcher.allows(2)
    matcher.advance(5)
    assert not matcher.mask()[8]
