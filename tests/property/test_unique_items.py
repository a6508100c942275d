"""Arrays whose items must be distinct, or must not: what is not refused as undecided is exact.

The oracle is a list of all values there are: a text can go on if it begins one that is valid.
"""

import json
from collections.abc import Sequence
from itertools import permutations, product

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from formalm import JsonSchema, LanguageError, LimitError

Schema = dict[str, object]


class Universe:
    """All values that a schema may allow, and every beginning of some of their texts."""

    def __init__(self, values: Sequence[object], *, every: int = 1) -> None:
        self.values = values
        self.texts = [json.dumps(value, separators=(",", ":")) for value in values]
        self.begun = sorted({text[:end] for text in self.texts[::every] for end in ends(text)})

    def check(self, schema: Schema) -> bool:
        """Compare a schema, whose instances are all among the values, with them.

        Returns ``False`` where a limit of steps refuses the schema.
        """
        oracle = jsonschema_rs.validator_for(schema)
        pairs = zip(self.values, self.texts, strict=True)
        members = [text for value, text in pairs if oracle.is_valid(value)]
        language = JsonSchema(schema, property_order="any", max_whitespace=0)
        try:
            language.automaton()
        except LanguageError as error:
            if "enough distinct items remain" not in str(error):
                assert members == []
            return True
        except LimitError:
            return False
        ahead = {text[:end] for text in members for end in ends(text)}
        assert [one for one in self.begun if language.is_viable(one) != (one in ahead)] == []
        least = min(members, key=lambda text: (len(text), text))
        assert language.shortest() == least.encode()
        return True


def ends(text: str) -> range:
    return range(1, len(text) + 1)


def arrays_of(values: Sequence[object], most: int) -> list[object]:
    return [list(items) for count in range(most + 1) for items in product(values, repeat=count)]


counts = st.integers(min_value=0, max_value=3)


def statements(items: SearchStrategy[Schema], most: int) -> SearchStrategy[Schema]:
    """Statements about arrays."""
    return st.fixed_dictionaries(
        {},
        optional={
            "uniqueItems": st.just(True),
            "items": items,
            "prefixItems": st.lists(items, min_size=1, max_size=2),
            "contains": items,
            "minContains": counts,
            "maxContains": counts,
            "minItems": counts,
            "maxItems": st.integers(min_value=1, max_value=most),
        },
    )


def combined(parts: SearchStrategy[Schema]) -> SearchStrategy[Schema]:
    """Schemas, beside combinations of such ones and of what these combine."""
    once = combinations_of(parts)
    return st.builds(
        lambda own, more: {**own, **more}, parts, st.just({}) | once | combinations_of(once)
    )


def combinations_of(parts: SearchStrategy[Schema]) -> SearchStrategy[Schema]:
    lists = st.lists(parts, min_size=1, max_size=3)
    return st.one_of(
        parts,
        st.builds(lambda name, some: {name: some}, st.sampled_from(["allOf", "anyOf"]), lists),
        st.builds(lambda some: {"oneOf": some}, lists),
        st.builds(lambda one: {"not": one}, parts),
        st.builds(lambda one, two, three: {"if": one, "then": two, "else": three}, *[parts] * 3),
    )


def arrays(
    values: list[object], most: int, schemas: SearchStrategy[Schema]
) -> SearchStrategy[Schema]:
    """Schemas of arrays of some values, so many at most, that say more of them."""
    listed = {"items": {"enum": values}}
    return st.builds(
        lambda schema, distinct: {
            "type": "array",
            "maxItems": most,
            "allOf": [listed, {"uniqueItems": distinct}, schema],
        },
        combined(schemas),
        st.booleans(),
    )


FLAT: list[object] = [0, 10, "a", "ab", None, [0]]
OF_FLAT = Universe(arrays_of(FLAT, 4), every=7)
flat_items = st.one_of(
    st.lists(st.sampled_from(FLAT), min_size=1, max_size=4).map(lambda some: {"enum": some}),
    st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": ["null", "array"]}, {}]),
    st.sampled_from([{"minLength": 2}, {"minimum": 5}, {"pattern": "^a"}, {"not": {"const": 0}}]),
)

flat = arrays(FLAT, 4, statements(flat_items, 4))

NESTED: list[object] = [0, 1, [], [0], [1], [0, 1], [1, 0], [0, 0]]
OF_NESTED = Universe(arrays_of(NESTED, 3))
digits: SearchStrategy[Schema] = st.sampled_from([{"const": 0}, {"const": 1}, {"enum": [0, 1]}, {}])
within = st.one_of(
    combined(statements(digits, 2)).map(lambda one: {"type": "array", **one}),
    st.lists(st.sampled_from(NESTED), min_size=1, max_size=4).map(lambda some: {"enum": some}),
    st.sampled_from([{"type": "integer"}, {"type": "array", "uniqueItems": True}]),
)

nested = arrays(NESTED, 3, statements(within, 3))

LISTS = arrays_of([0, 1], 2)
MEMBERS = [
    dict(members)
    for one, other in product([None, *LISTS, 0], [None, 0, [0], [0, 0], [0, 1]])
    for members in permutations(
        [(name, value) for name, value in (("a", one), ("b", other)) if value is not None]
    )
]
OF_MEMBERS = Universe(MEMBERS)
lists = combined(statements(digits, 2)).map(lambda one: {"type": "array", **one})
members = st.fixed_dictionaries(
    {},
    optional={
        "properties": st.fixed_dictionaries({}, optional={"a": lists, "b": lists}),
        "required": st.lists(st.sampled_from("ab"), max_size=2, unique=True),
        "minProperties": st.just(1),
    },
)


of_members = combined(members).map(
    lambda schema: {
        "type": "object",
        "properties": {
            "a": {"enum": [*LISTS, 0]},
            "b": {"enum": [0, [0], [0, 0], [0, 1]]},
        },
        "additionalProperties": False,
        "allOf": [schema],
    }
)

#: Schemas and the values that they are judged on.
FAMILIES = {
    "items": (flat, OF_FLAT),
    "arrays within arrays": (nested, OF_NESTED),
    "members": (of_members, OF_MEMBERS),
}


MANY = pytest.param(3000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("examples", [120, MANY])
def test_distinct_items_are_exact(family: str, examples: int) -> None:
    schemas, universe = FAMILIES[family]
    refused = 0

    @settings(max_examples=examples, deadline=None)
    @given(schema=schemas)
    def check(schema: Schema) -> None:
        nonlocal refused
        refused += not universe.check(schema)

    check()
    assert refused <= examples // 100


def test_an_item_may_repeat_the_one_being_read() -> None:
    twice = {"type": "array", "maxItems": 2, "not": {"uniqueItems": True}}
    language = JsonSchema(twice, max_whitespace=0)
    assert language.is_viable("[1")
    assert language.matches("[1,1]")
    assert language.matches("[1.0,1]")
    assert not language.is_viable("[1,2]")
    # Only where some member asks for it.
    lists = {"a": {"type": "array", "maxItems": 2}}
    distinct = {"properties": {"a": {"uniqueItems": True}}}
    one = {"required": ["a", "b"], "oneOf": [distinct, {"required": ["b"]}]}
    language = JsonSchema({"properties": lists, **one}, property_order="any", max_whitespace=0)
    assert language.matches('{"b":1,"a":[2,2]}')
    assert not language.is_viable('{"b":1,"a":[2,3')
