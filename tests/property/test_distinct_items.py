"""Arrays of distinct items: what is not refused as undecided is exact, by all arrays there are."""

import json
from itertools import product

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import JsonSchema, LanguageError

VALUES = [0, 10, "a", "ab", None, [0]]
MOST = 4
ARRAYS = [list(items) for length in range(MOST + 1) for items in product(VALUES, repeat=length)]
TEXTS = [json.dumps(items, separators=(",", ":")) for items in ARRAYS]
BEGUN = sorted({text[:end] for text in TEXTS[::7] for end in range(1, len(text) + 1)})

counts = st.integers(min_value=0, max_value=3)
items = st.one_of(
    st.lists(st.sampled_from(VALUES), min_size=1, max_size=4).map(lambda some: {"enum": some}),
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": ["null", "array"]}, {}]),
    st.sampled_from([{"minLength": 2}, {"minimum": 5}, {"pattern": "^a"}, {"not": {"const": 0}}]),
)
statements = st.fixed_dictionaries(
    {},
    optional={
        "uniqueItems": st.just(True),
        "items": items,
        "prefixItems": st.lists(items, min_size=1, max_size=2),
        "contains": items,
        "minContains": counts,
        "maxContains": counts,
        "minItems": counts,
        "maxItems": st.integers(min_value=1, max_value=MOST),
    },
)
lists = st.lists(statements, min_size=1, max_size=2)
nested = st.builds(
    lambda own, more: {**own, **more},
    statements,
    st.one_of(
        st.just({}),
        lists.map(lambda some: {"allOf": some}),
        lists.map(lambda some: {"anyOf": some}),
        st.builds(
            lambda one, other: {"allOf": [one, {"anyOf": other}]},
            statements,
            lists,
        ),
    ),
)


@settings(max_examples=120, deadline=None)
@given(schema=nested)
def test_arrays_of_distinct_items_are_exact(schema: dict[str, object]) -> None:
    whole = {
        "type": "array",
        "maxItems": MOST,
        "allOf": [{"items": {"enum": VALUES}}, {"uniqueItems": True}, schema],
    }
    oracle = jsonschema_rs.validator_for(whole)
    members = [text for items, text in zip(ARRAYS, TEXTS, strict=True) if oracle.is_valid(items)]
    language = JsonSchema(whole, order="any", blanks=0)
    try:
        language.automaton()
    except LanguageError as error:
        if "not decided" not in str(error):
            assert members == []
        return
    ahead = {text[:end] for text in members for end in range(1, len(text) + 1)}
    assert [begun for begun in BEGUN if language.is_viable(begun) != (begun in ahead)] == []
    least = min(members, key=lambda text: (len(text), text))
    assert language.shortest() == least.encode()


@pytest.mark.slow
@settings(max_examples=3000, deadline=None)
@given(schema=nested)
def test_many_arrays_of_distinct_items_are_exact(schema: dict[str, object]) -> None:
    test_arrays_of_distinct_items_are_exact.hypothesis.inner_test(schema)
