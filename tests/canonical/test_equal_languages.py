"""Canonical masks of one language that is read by two kinds of machines."""

from __future__ import annotations

import json
import random
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from formalm import Constraint, Grammar, JsonSchema, Language, Regex, StringLiteral, Vocabulary
from tests.canonical.small_tokenizers import trained
from tests.canonical.test_trained_tokenizers import PIECES

VOCABULARIES = ["gpt2", "cl100k isolated False", "digits"]


def check_walks(one: Language, other: Language, kind: str, steps: int, walks: int = 8) -> None:
    """Asserts that masks along random walks agree at every token."""
    vocabulary = Vocabulary.from_tokenizer_json(trained(PIECES[kind]).to_str())
    constraints = [
        Constraint(language, vocabulary, tokenization="canonical") for language in (one, other)
    ]
    ends = set(vocabulary.end_token_ids)
    for seed in range(walks):
        rng = random.Random(seed)
        matchers = [constraint.matcher() for constraint in constraints]
        for _ in range(steps):
            masks = [matcher.mask() for matcher in matchers]
            assert np.array_equal(*masks), matchers[0].text
            assert matchers[0].is_accepting == matchers[1].is_accepting
            allowed = [at for at in np.flatnonzero(masks[0]).tolist() if at not in ends]
            if not allowed:
                break
            token = rng.choice(allowed)
            for matcher in matchers:
                matcher.advance(token)


def spellings(value: Any) -> str:
    """A pattern for all spellings of a value: 1 is written 1.0 too."""
    text = re.escape(json.dumps(value, separators=(",", ":")))
    return re.sub(r"[0-9]+", r"\g<0>(\\.0+)?", text)


def number_items(most: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": 1, "maximum": most}


# Not 0, which may be -0 as well.
NUMBERS = [*range(1, 24), 100, 101, 110, 112]
FEW = [list(items) for count in range(3) for items in product(range(1, 3), repeat=count)]
DISTINCT: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "any count": (
        {"items": number_items(23), "uniqueItems": True, "maxItems": 2},
        [[a, *rest] for a in range(1, 24) for rest in [[], *([b] for b in range(1, 24) if b != a)]]
        + [[]],
    ),
    "at least two": (
        {"items": {"enum": NUMBERS}, "uniqueItems": True, "minItems": 2, "maxItems": 2},
        [[a, b] for a in NUMBERS for b in NUMBERS if a != b],
    ),
    "distinct arrays of distinct numbers": (
        {
            "items": {
                "type": "array",
                "items": number_items(2),
                "uniqueItems": True,
                "maxItems": 2,
            },
            "uniqueItems": True,
            "maxItems": 2,
        },
        [
            list(arrays)
            for count in range(3)
            for arrays in product([one for one in FEW if len(set(one)) == len(one)], repeat=count)
            if count < 2 or arrays[0] != arrays[1]
        ],
    ),
    "negated, with another condition": (
        {
            "items": number_items(11),
            "uniqueItems": True,
            "maxItems": 2,
            "not": {"contains": {"const": 7}},
        },
        [
            items
            for count in range(3)
            for items in map(list, product([*range(1, 7), *range(8, 12)], repeat=count))
            if len(set(items)) == len(items)
        ],
    ),
}


@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize("name", DISTINCT)
def test_distinct_numbers_have_the_masks_of_their_list(name: str, kind: str) -> None:
    keywords, members = DISTINCT[name]
    schema = JsonSchema({"type": "array", **keywords}, max_whitespace=0)
    check_walks(schema, Regex("|".join(map(spellings, members))), kind, 12)


NESTED: dict[str, dict[str, Any]] = {
    "open": {"type": "object"},
    "typed": {"type": "object", "additionalProperties": {"type": "integer"}},
    "patterns": {
        "type": "object",
        "patternProperties": {"^t": {"type": "string"}},
        "additionalProperties": False,
    },
    "distinct strings": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
    "distinct numbers": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True},
}


@pytest.mark.parametrize("kind", VOCABULARIES)
@pytest.mark.parametrize("name", NESTED)
def test_a_schema_in_a_grammar_has_the_masks_of_the_schema(name: str, kind: str) -> None:
    schema = JsonSchema(NESTED[name], max_whitespace=0)
    grammar = Grammar('start: "the " value\n%declare value', languages={"value": schema})
    check_walks(grammar, StringLiteral("the ") + schema, kind, 16, walks=4)


def test_a_grammar_continues_after_a_schema_as_a_concatenation_does() -> None:
    schema = JsonSchema({"type": "object"}, max_whitespace=0)
    grammar = Grammar('start: value " and " value\n%declare value', languages={"value": schema})
    check_walks(grammar, schema + StringLiteral(" and ") + schema, "gpt2", 24, walks=12)
