"""Masks of many schemas at once, and of tokens that open strings, are as defined."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from formalm import CallFormat, Constraint, JsonSchema, ToolCalls, Vocabulary
from formalm.languages import Language
from tests.support.mask_walks import compare_masks

NAMES = ["a", "ab", "abc", "b", "é", "a b"]
SCALARS: list[Any] = [
    {"type": "string"},
    {"type": "string", "maxLength": 3},
    {"type": "string", "minLength": 1, "maxLength": 9},
    {"type": "string", "pattern": "^[ab]+$"},
    {"enum": ["a", "ab", 1]},
    {"type": "integer"},
    {"type": ["string", "number", "null"]},
    {"type": "array", "items": {"type": "string"}},
    {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
    {},
]
PIECES = ['"', ' "', "a", "ab", "b", " ", ":", ": ", ",", ", ", "{", "}", "[", "]", "1", "\\", "é"]


def tokens_of(random: Random, count: int = 140) -> list[bytes]:
    """Every piece and every byte of it, tokens that open strings, and tokens over many parts."""
    made = {piece.encode() for piece in PIECES}
    made |= {bytes([byte]) for piece in made for byte in piece}
    made |= {f'{blank}"{name}{end}'.encode() for blank in ("", " ") for name in NAMES
             for end in ("", '"', '":', '": "', '": 1')}  # fmt: skip
    while len(made) < count:
        made.add("".join(random.choices(PIECES, k=random.randint(2, 6))).encode())
    return sorted(made)


def object_of(random: Random, depth: int = 1) -> dict[str, Any]:
    """A random object schema."""
    names = random.sample(NAMES, random.randint(0, 4))
    inner = [object_of(random, depth - 1)] if depth else []
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: random.choice([*SCALARS, *inner]) for name in names},
        "required": [name for name in names if random.random() < 0.3],
    }
    kind = random.randrange(5)
    if kind == 0:
        schema["additionalProperties"] = False
    elif kind == 1:
        schema["additionalProperties"] = {"type": random.choice(["string", "integer"])}
    elif kind == 2:
        schema["patternProperties"] = {"^a": {"not": {"type": "boolean"}}}
    elif kind == 3:
        schema["maxProperties"] = len(schema["required"]) + random.randint(1, 2)
    return schema


OPTIONS: list[dict[str, Any]] = [
    {"separators": (", ", ": "), "property_order": "schema"},
    {"separators": (", ", ": "), "property_order": "any"},
    {"separators": (",", ": "), "escapes": "any"},
    {"max_whitespace": 1},
    {"max_whitespace": 0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("seed", range(8))
def test_tokens_that_open_strings_are_the_definition(seed: int, options: dict[str, Any]) -> None:
    random = Random(seed)
    language = JsonSchema(object_of(random, 2), **options)
    walk(random, language, tokens_of(random), walks=4, steps=14)


def walk(
    random: Random, language: Language, tokens: list[bytes], *, walks: int, steps: int
) -> None:
    """Compare masks with the definition along random members."""
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    constraint = Constraint(language, vocabulary)
    for _ in range(walks):
        compare_masks(constraint.matcher(), steps, random.choice)


def check_union(
    random: Random, together: Constraint, alone: list[Constraint], *, walks: int, steps: int
) -> None:
    """Compare masks with the union of those of other constraints, along random members."""
    for _ in range(walks):
        matcher, others = together.matcher(), [one.matcher() for one in alone]
        for _ in range(steps):
            mask = matcher.mask()
            assert np.array_equal(mask, np.any([one.mask() for one in others], axis=0))
            allowed = np.flatnonzero(mask[:-1])
            if not len(allowed):
                break
            token_id = int(random.choice(allowed))
            matcher.advance(token_id)
            others = [one for one in others if one.mask()[token_id]]
            for one in others:
                one.advance(token_id)


@pytest.mark.parametrize("memory_limit_bytes", [None, 1 << 16])
@pytest.mark.parametrize("seed", range(3))
def test_a_union_has_the_union_of_the_masks(seed: int, memory_limit_bytes: int | None) -> None:
    random = Random(seed)
    options = {"separators": (", ", ": "), "property_order": "schema"}
    schemas = [JsonSchema(object_of(random), **options) for _ in range(40)]
    language: Language = schemas[0]
    for one in schemas[1:]:
        language = language | one
    tokens = tokens_of(random)
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    alone = [Constraint(one, vocabulary) for one in schemas]
    together = Constraint(language, vocabulary, memory_limit_bytes=memory_limit_bytes)
    check_union(random, together, alone, walks=12, steps=20)


@pytest.mark.parametrize("seed", range(6))
def test_alternatives_have_the_union_of_the_masks(seed: int) -> None:
    random = Random(seed)
    options = {"separators": (", ", ": "), "property_order": "any"}
    schemas = [object_of(random) for _ in range(40)]
    # Rules about names that no alternative lists.
    for at in (3, 7, 11):
        schemas[at] = {"type": "object", "minProperties": random.randint(1, 3)}
        schemas[at + 20] = {"type": "object", "propertyNames": {"pattern": "^a"}}
        schemas[at + 21]["dependentRequired"] = {"a b": ["ab"]}
    alternatives = JsonSchema({"anyOf": schemas}, **options)
    tokens = tokens_of(random)
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    alone = [Constraint(JsonSchema(one, **options), vocabulary) for one in schemas]
    together = Constraint(alternatives, vocabulary)
    check_union(random, together, alone, walks=20, steps=24)


@pytest.mark.parametrize("seed", range(3))
def test_arguments_of_a_tool_have_the_masks_of_its_schema(seed: int) -> None:
    random = Random(seed)
    schemas = [object_of(random) for _ in range(30)]
    options = {"separators": (", ", ": "), "property_order": "schema"}
    format = CallFormat('{"name": "{name}", "arguments": {arguments}}', "<a>", "</a>")
    named = {f"tool_{at}": JsonSchema(one, **options) for at, one in enumerate(schemas)}
    pieces = ["<a>", '{"name": "', '", "arguments": ', "}</a>", "}}", "}}</a>"]
    pieces += [f"tool_{at}" for at in range(30)]
    tokens = sorted({*tokens_of(random), *(piece.encode() for piece in pieces)})
    tokens = sorted({*tokens, *(bytes([byte]) for piece in tokens for byte in piece)})
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    calls = Constraint(ToolCalls(named, format), vocabulary)
    for at in random.sample(range(30), 6):
        inside = Constraint(named[f"tool_{at}"], vocabulary).matcher()
        before = f'<a>{{"name": "tool_{at}", "arguments": '
        matcher = calls.matcher()
        for byte in before.encode():
            matcher.advance(tokens.index(bytes([byte])))
        for _ in range(20):
            mask, own = matcher.mask(), inside.mask()
            # What stays inside is the same; beyond it only a brace and the end of the call come.
            assert not np.any(own[:-1] & ~mask[:-1])
            beyond = [tokens[token_id] for token_id in np.flatnonzero(mask[:-1] & ~own[:-1])]
            assert all(b"}" in token for token in beyond), beyond
            allowed = np.flatnonzero(own[:-1])
            if not len(allowed):
                break
            token_id = int(random.choice(allowed))
            matcher.advance(token_id)
            inside.advance(token_id)
