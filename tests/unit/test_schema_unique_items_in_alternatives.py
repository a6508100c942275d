"""Distinct items inside alternatives and in short arrays, against all arrays."""

import json
from itertools import product
from typing import Any

import jsonschema_rs
import pytest

from formalm import JsonSchema, LanguageError

VALUES = ["a", "b", "all", 1, None]
UNIQUE = {"type": "array", "uniqueItems": True}
LETTERS = {"enum": ["a", "b"]}
EXACT: dict[str, Any] = {
    "beside a constant": {
        "oneOf": [{**UNIQUE, "minItems": 1, "items": LETTERS}, {"const": ["all"]}],
    },
    "beside an enumeration": {
        "anyOf": [{**UNIQUE, "items": LETTERS}, {"enum": [["all"], ["all", 1]]}],
    },
    "beside an array of another kind": {
        "oneOf": [
            {**UNIQUE, "minItems": 1, "items": LETTERS},
            {"type": "array", "minItems": 2, "items": {"type": "integer"}},
        ]
    },
    "two alternatives": {
        "oneOf": [
            {**UNIQUE, "minItems": 1, "items": LETTERS},
            {**UNIQUE, "minItems": 1, "items": {"enum": [1, None]}},
        ]
    },
    "beside no array": {"oneOf": [{"type": "string"}, {**UNIQUE, "items": LETTERS}]},
    "one place": {"prefixItems": [{"type": "string"}], "items": False, **UNIQUE},
    "one place that is needed": {
        "prefixItems": [{"type": "string"}], "items": False, "minItems": 1, **UNIQUE,
    },
    "at most one item": {"maxItems": 1, "prefixItems": [LETTERS, {"const": 1}], **UNIQUE},
    "no place": {"items": False, **UNIQUE},
    "two places with values enough": {
        "prefixItems": [{"type": "string"}, LETTERS], "items": False, **UNIQUE,
    },
    "few places of many": {
        "prefixItems": [{"type": "string"}, {"enum": ["a", 1]}, {"enum": VALUES}],
        "maxItems": 3, **UNIQUE,
    },
    "an end of its own": {
        "prefixItems": [LETTERS, {"type": "string"}, {"allOf": [{"const": 1}, {"const": None}]}],
        **UNIQUE,
    },
    "a draft with a list of items": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "items": [{"type": "string"}], "additionalItems": False, "minItems": 1, **UNIQUE,
    },
}  # fmt: skip


@pytest.mark.parametrize("name", EXACT)
def test_distinct_items_are_exact_where_values_obviously_suffice(name: str) -> None:
    schema = EXACT[name]
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    judge = jsonschema_rs.validator_for(schema)
    members = set()
    for length in range(4):
        for items in product(VALUES, repeat=length):
            text = json.dumps(items, separators=(",", ":"))
            assert language.matches(text) == judge.is_valid(list(items)), text
            if judge.is_valid(list(items)):
                members.add(text)
    # What can be begun can be ended: by one of the arrays above, or with another string.
    for length in range(4):
        for items in product(VALUES, repeat=length):
            begun = json.dumps(items, separators=(",", ":"))[:-1]
            if not language.is_viable(begun):
                assert not any(text.startswith(begun + end) for text in members for end in ",]")
                continue
            ended = language.shortest(begun)
            assert ended is not None
            assert judge.is_valid(json.loads(ended)), ended


@pytest.mark.parametrize(
    "schema",
    [
        # The first item may take the only value of the second.
        {"prefixItems": [{"type": "string"}, {"const": "a"}], "minItems": 2, **UNIQUE},
        {"oneOf": [{"prefixItems": [{"type": "string"}, {"const": "a"}], "minItems": 2, **UNIQUE},
                   {"const": [1]}]},
    ],
)  # fmt: skip
def test_distinct_items_that_may_run_out_are_not_reported_as_exact(schema: dict[str, Any]) -> None:
    with pytest.raises(LanguageError, match="enough distinct items remain"):
        JsonSchema(schema, property_order="any", max_whitespace=0).automaton()
