"""Distinct items over few values, by counting all arrays."""

import json
from itertools import combinations, product

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import JsonSchema, LanguageError

LEAVES: list[object] = [True, False, None]
SMALL: list[object] = [*LEAVES, [], {}, *([leaf] for leaf in LEAVES)]
SMALL += [{name: leaf} for name in "ab" for leaf in LEAVES]
VALUES = [*SMALL, *(list(pair) for pair in product(LEAVES, repeat=2))]
VALUES += [{"a": one, "b": other} for one, other in product(LEAVES, repeat=2)]

leaves = st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": ["null", "boolean"]}])

objects = st.fixed_dictionaries(
    {
        "type": st.just("object"),
        "properties": st.dictionaries(st.sampled_from("ab"), leaves, min_size=1, max_size=2),
        "additionalProperties": st.just(False),
    },
    optional={
        "required": st.just(["a"]),
        "minProperties": st.just(1),
        "maxProperties": st.just(1),
        "dependentRequired": st.sampled_from([{"a": ["b"]}, {"b": ["a"]}]),
        "not": st.sampled_from([{"required": ["a", "b"]}, {"properties": {"a": {"const": True}}}]),
        "if": st.just({"properties": {"a": {"const": True}}}),
        "then": st.just({"required": ["b"]}),
    },
)
arrays = st.fixed_dictionaries(
    {"type": st.just("array"), "items": leaves, "maxItems": st.integers(0, 2)},
    optional={
        "minItems": st.just(1),
        "uniqueItems": st.just(True),
        "contains": st.just({"const": True}),
    },
)
# Arrays of distinct items beside other arrays are refused, or taken and told of.
plain = arrays.filter(lambda one: "uniqueItems" not in one)
alternatives = st.lists(objects | plain | leaves, min_size=1, max_size=2)
items = st.one_of(objects, arrays, st.builds(lambda one: {"anyOf": one}, alternatives))


@settings(max_examples=120, deadline=None)
@given(items, st.integers(0, 4), st.integers(1, 5), st.randoms(use_true_random=False))
def test_an_array_continues_while_values_are_left(
    item: dict[str, object], least: int, most: int, random: object
) -> None:
    count = [value for value in VALUES if jsonschema_rs.is_valid(item, value)]
    bounds = {"minItems": least, "maxItems": most}
    schema = {"type": "array", "items": item, "uniqueItems": True, **bounds}
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    if least > min(len(count), most):
        with pytest.raises(LanguageError, match="no instance"):
            language.automaton()
        return
    shuffled = [*count]
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    text = "["
    for read, value in enumerate(shuffled[: most + 1]):
        # One more item may be read if there is room, and if enough of them are left.
        can_read = read < most and len(count) >= max(least, read + 1)
        encoded = json.dumps(value, separators=(",", ":"))
        assert language.is_viable(text + encoded) == can_read, text + encoded
        if not can_read:
            break
        text += encoded
        again = text + "," + encoded
        assert not language.is_viable(again + ",")
        assert not language.matches(again + "]")
        assert language.matches(text + "]") == (read + 1 >= least), text
        text += ","


def test_values_are_shared_among_positions() -> None:
    """Items whose values overlap: brute force over all arrays."""
    flags = {"type": "array", "items": {"type": "boolean"}, "maxItems": 1}
    empty = {"enum": [[], {}]}
    schema = {"type": "array", "prefixItems": [empty, flags], "items": empty, "uniqueItems": True}
    language = JsonSchema(schema, max_whitespace=0)
    values: list[object] = [[], {}, [True], [False]]
    for length in range(5):
        for chosen in combinations(values * 2, length):
            text = json.dumps(list(chosen), separators=(",", ":"))
            assert language.matches(text) == jsonschema_rs.is_valid(schema, list(chosen)), text
