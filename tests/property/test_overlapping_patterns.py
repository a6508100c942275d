"""Patterns of property names that overlap, judged by another library."""

from __future__ import annotations

import json
from random import Random
from time import process_time
from typing import Any

import jsonschema_rs
import pytest

from formalm import Constraint, JsonSchema, LanguageError, Vocabulary

LONGER = [b'":', b'","', b'":1,"', b"alpha.", b"a.b", b'{"', b'"}', b"a\xc3"]
TOKENS = [bytes([byte]) for byte in range(256)] + LONGER
VOCABULARY = Vocabulary.from_tokens([*TOKENS, None], end_token_ids=[len(TOKENS)])
PATTERNS = (
    "alpha.alpha.* beta.beta.* d.d.* e.e.* a.* b$ ^a ^[ab.]+$ a.b aa [0-9] ^.{3}$ x|a ^$ b.a "
    "^(ab|ba)$ ab{2,4} é ^[^a] c ^x- ^(a|b|c|d|e)+$"
).split(" ")
PARTS = ["a", "b", "ab", ".", "alpha.alpha", "beta.beta", "c", "d.d", "e", "1", "é", "x-"]
VALUES: list[Any] = [
    {"type": "string"},
    {"type": "integer"},
    {"type": ["integer", "string"]},
    {"minimum": 2},
    {"maximum": 3},
    {"enum": ["a", 1]},
    {"type": "object"},
    {},
    False,
    {"type": "array", "minItems": 1},
    {"const": 5},
    {"pattern": "a"},
    {"minLength": 2},
]
TYPES = ["string", "integer", "boolean", "number", "null", "array", "object"]
WORDS = "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu".split(" ")


def drawn_schema(chance: Random) -> dict[str, Any]:
    patterns = chance.sample(PATTERNS, chance.randint(3, 12))
    schema: dict[str, Any] = {
        "type": "object",
        "patternProperties": {pattern: chance.choice(VALUES) for pattern in patterns},
    }
    if chance.random() < 0.4:
        schema["additionalProperties"] = chance.choice([False, *VALUES])
    if chance.random() < 0.4:
        names = chance.sample(["a", "ab", "zz", "alpha.alpha"], 2)
        schema["properties"] = {name: chance.choice(VALUES) for name in names}
    if chance.random() < 0.3:
        schema["required"] = chance.sample(["a", "ab", "q"], 1)
    if chance.random() < 0.2:
        schema["minProperties"] = chance.randint(1, 2)
    if chance.random() < 0.2:
        schema["maxProperties"] = chance.randint(1, 2)
    if chance.random() < 0.15:
        schema["propertyNames"] = {"maxLength": 8}
    if chance.random() < 0.15:
        others = {pattern: chance.choice(VALUES) for pattern in chance.sample(PATTERNS, 4)}
        other = {"type": "object", "required": ["zz"], "patternProperties": others}
        schema = {"anyOf": [schema, other]}
    return schema


def drawn_instance(chance: Random) -> dict[str, Any]:
    instance = {}
    for _ in range(chance.randint(0, 3)):
        name = "".join(chance.choices(PARTS, k=chance.randint(0, 4)))
        value = chance.choice(["a", "aa", "b", 1, 2, 3, 5, {}, [], [1], None])
        instance[chance.choice([name, name, "a", "ab", "zz"])] = value
    return instance


def written(instance: object) -> bytes:
    return json.dumps(instance, separators=(",", ":"), ensure_ascii=False).encode()


def takes(constraint: Constraint, text: bytes, chance: Random, *, whole: bool) -> bool:
    """Whether masks let a text be written; if it is a member, every token of it must be allowed."""
    matcher, at = constraint.matcher(), 0
    while at < len(text):
        mask = matcher.mask()
        fitting = [one for one, token in enumerate(TOKENS) if text.startswith(token, at)]
        allowed = [one for one in fitting if mask[one]]
        if whole:
            assert allowed == fitting, (text, at)
        if not allowed:
            return False
        token_id = chance.choice(allowed)
        matcher.advance(token_id)
        at += len(TOKENS[token_id])
    return matcher.is_accepting


def walk(constraint: Constraint, chance: Random, steps: int) -> None:
    """Follow masks at random: some token is always allowed."""
    matcher = constraint.matcher()
    for _ in range(steps):
        allowed = matcher.allowed_token_ids()
        assert len(allowed), matcher.text
        token_id = int(chance.choice(list(allowed)))
        if token_id == len(TOKENS):
            return
        matcher.advance(token_id)


def check(seed: int) -> None:
    chance = Random(seed)
    schema = drawn_schema(chance)
    judge = jsonschema_rs.validator_for(schema)
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    try:
        constraint = Constraint(language, VOCABULARY)
    except LanguageError:
        return  # without an instance
    for _ in range(10):
        instance = drawn_instance(chance)
        text, valid = written(instance), judge.is_valid(instance)
        assert language.matches(text) == valid, (schema, text)
        assert takes(constraint, text, chance, whole=valid) == valid, (schema, text)
    walk(constraint, chance, 25)
    shortest = language.shortest()
    assert shortest is not None
    assert judge.is_valid(json.loads(shortest)), (schema, shortest)


@pytest.mark.parametrize("seed", range(0, 40, 2))
def test_overlapping_patterns_are_read_as_validators_read_them(seed: int) -> None:
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_more_are_read_so_too(part: int) -> None:
    for seed in range(1000 + 30 * part, 1030 + 30 * part):
        check(seed)


@pytest.mark.parametrize("count", [7, 9, 12])
@pytest.mark.parametrize("values", ["conflicting", "equal", "compatible"])
@pytest.mark.parametrize(
    "beside",
    [{}, {"additionalProperties": False}, {"minProperties": 1}, {"maxProperties": 2}],
    ids=str,
)
def test_many_patterns_that_overlap_are_masked_soon(
    count: int, values: str, beside: dict[str, Any]
) -> None:
    # Each set of these patterns has a name that all of them are found in.
    def value(at: int) -> dict[str, Any]:
        if values == "conflicting":
            return {"type": TYPES[at % len(TYPES)]}
        return {"type": "string"} if values == "equal" else {"not": {"const": WORDS[at]}}

    patterns = {f"{word}.{word}.*": value(at) for at, word in enumerate(WORDS[:count])}
    schema = {"type": "object", "patternProperties": patterns, **beside}
    judge = jsonschema_rs.validator_for(schema)
    begun = process_time()
    constraint = Constraint(JsonSchema(schema, property_order="any", max_whitespace=0), VOCABULARY)
    instances = [
        {"alpha.alpha.x": "x"},
        {"alpha.alpha.x": "alpha"},
        {"beta.beta-alpha.alpha": "x"},
        {"beta.beta-gamma.gamma": 1},
        {"q": 1, "beta.beta": 1},
        {"".join(f"{word}.{word}." for word in WORDS[:count]): "x"},
    ]
    for instance in instances:
        valid = judge.is_valid(instance)
        assert takes(constraint, written(instance), Random(1), whole=valid) == valid, instance
    assert process_time() - begun < 2
