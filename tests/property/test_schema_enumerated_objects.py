"""Objects of few members: satisfiable and viable is what the enumeration of all of them says."""

import json
from itertools import permutations, product

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import JsonSchema, LanguageError

NAMES = "abc"
VALUES = [0, True]

#: Every object of these names and values.
OBJECTS = [
    {name: value for name, value in zip(NAMES, chosen, strict=True) if value is not None}
    for chosen in product([None, *VALUES], repeat=len(NAMES))
]

statements = st.one_of(
    st.builds(
        lambda name, value: {"properties": {name: {"const": value}}},
        st.sampled_from(NAMES),
        st.sampled_from(VALUES),
    ),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(
        lambda names: {"required": names}
    ),
    st.integers(0, 3).map(lambda count: {"minProperties": count}),
    st.integers(0, 3).map(lambda count: {"maxProperties": count}),
    st.sampled_from(["^[ab]$", "^[bc]$"]).map(lambda one: {"propertyNames": {"pattern": one}}),
    st.builds(
        lambda one, other: {"dependentRequired": {one: [other]}},
        st.sampled_from(NAMES),
        st.sampled_from(NAMES),
    ),
    st.sampled_from([{"const": {"a": 0}}, {"enum": [{}, {"b": True, "c": 0}]}]),
    st.sampled_from(
        [{"additionalProperties": False}, {"patternProperties": {"[ab]": {"const": 0}}}]
    ),
)


def joined(inner: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[dict[str, object]]:
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.builds(
            lambda kind, all: {kind: all}, st.sampled_from(["allOf", "anyOf", "oneOf"]), several
        ),
        inner.map(lambda one: {"not": one}),
        st.builds(
            lambda one, then, other: {"if": one, "then": then, "else": other}, inner, inner, inner
        ),
        st.builds(
            lambda name, one: {"dependentSchemas": {name: one}}, st.sampled_from(NAMES), inner
        ),
        inner.map(lambda one: {**one, "unevaluatedProperties": {"const": 0}}),
    )


formulas = st.recursive(statements, joined, max_leaves=8)


@settings(max_examples=150, deadline=None)
@given(formulas, st.sampled_from(["schema", "any"]), st.data())
def test_objects_are_those_of_an_enumeration(
    formula: dict[str, object], order: str, data: st.DataObject
) -> None:
    closed = {
        "type": "object",
        "properties": {name: {"enum": VALUES} for name in NAMES},
        "additionalProperties": False,
    }
    schema = {**closed, "allOf": [formula]}
    language = JsonSchema(schema, property_order=order, max_whitespace=0)
    valid = [value for value in OBJECTS if jsonschema_rs.is_valid(schema, value)]
    if not valid:
        with pytest.raises(LanguageError, match="no instance"):
            language.automaton()
        return
    texts = set()
    for value in valid:
        for members in permutations(value.items()):
            texts.add(json.dumps(dict(members), separators=(",", ":")))
    if order == "any":
        assert all(language.matches(text) for text in texts)
    else:
        # One order of each object at least, and no other texts.
        texts = {text for text in texts if language.matches(text)}
        assert {frozenset(json.loads(text).items()) for text in texts} == {
            frozenset(value.items()) for value in valid
        }
    beginnings = {text[:end] for text in texts for end in range(len(text) + 1)}
    for beginning in data.draw(st.permutations(sorted(beginnings)))[:25]:
        for byte in '{}",:abc01truef':
            expected = beginning + byte in beginnings
            assert language.is_viable(beginning + byte) == expected, beginning + byte
