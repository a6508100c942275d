"""`contains` with distinct items, against all arrays."""

import json
from collections.abc import Sequence
from itertools import combinations, permutations, product

import jsonschema_rs
import pytest

from formalm import JsonSchema, LanguageError

VALUES = ["a", "!", "bb", 1, 10, None, [0]]
#: A schema, and which of the values are of it.
KINDS = {
    "texts": ({"type": "string"}, ["a", "!", "bb"]),
    "numbers": ({"type": "integer"}, [1, 10]),
    "one": ({"const": [0]}, [[0]]),
    "long": ({"enum": ["bb", 10, [0]]}, ["bb", 10, [0]]),
    "none": ({"const": 7}, []),
}


def written(items: Sequence[object]) -> str:
    return json.dumps(items, separators=(",", ":"))


def members(kind: str, counts: dict[str, int], least: int, most: int) -> list[str]:
    """Return all arrays, the shortest first and the smallest of these."""
    of_kind = KINDS[kind][1]
    texts = []
    for length in range(least, most + 1):
        for items in permutations(VALUES, length):
            count = sum(item in of_kind for item in items)
            if counts.get("minContains", 1) <= count <= counts.get("maxContains", length):
                texts.append(written(items))
    return sorted(texts, key=lambda text: (len(text), text))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "counts",
    [{}, {"minContains": 2}, {"minContains": 3}, {"minContains": 1, "maxContains": 1},
     {"minContains": 0, "maxContains": 2}, {"minContains": 2, "maxContains": 3}],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize(("least", "most"), [(0, 3), (3, 4), (4, 4)])
def test_contained_items_are_distinct(
    kind: str, counts: dict[str, int], least: int, most: int
) -> None:
    texts = members(kind, counts, least, most)
    schema = {
        "items": {"enum": VALUES},
        "uniqueItems": True,
        "minItems": least,
        "maxItems": most,
        "type": "array",
        "contains": KINDS[kind][0],
        **counts,
    }
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    if not texts:
        with pytest.raises(LanguageError, match="no instance"):
            language.automaton()
        return
    assert language.shortest() == texts[0].encode()
    every = sorted(
        {written(items) for length in range(4) for items in permutations(VALUES, length)}
    )
    known = set(texts)
    for text in every[:: 1 + len(every) // 40]:
        assert language.matches(text) == (text in known)
        begun = text[:-1]
        fitting = [one for one in texts if one.startswith(begun)]
        assert language.is_viable(begun) == bool(fitting), begun
        if fitting:
            assert language.shortest(begun) == fitting[0].encode(), begun


def test_several_contains_keywords_are_all_satisfied() -> None:
    schema = {
        "type": "array",
        "uniqueItems": True,
        "minItems": 4,
        "maxItems": 4,
        "items": {"enum": VALUES},
        "allOf": [
            {"contains": KINDS["numbers"][0], "minContains": 2},
            {"contains": {"const": "bb"}},
        ],
    }
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    texts = [
        written(items)
        for items in permutations(VALUES, 4)
        if all(one in items for one in (1, 10, "bb"))
    ]
    assert language.shortest() == min(texts, key=lambda text: (len(text), text)).encode()
    assert language.is_viable('["bb",1')
    assert not language.is_viable('["a",1,"bb","!"')


@pytest.mark.parametrize(
    "kinds", list(combinations(KINDS, 2)) + list(combinations(KINDS, 3)), ids=str
)
@pytest.mark.parametrize("unique", [False, True])
def test_the_shortest_array_that_contains_several_kinds(
    kinds: tuple[str, ...], unique: bool
) -> None:
    """One item may be of several kinds, or no item of two of them."""
    schema = {
        "type": "array",
        "items": {"enum": VALUES},
        "uniqueItems": unique,
        "allOf": [{"contains": KINDS[kind][0]} for kind in kinds],
    }
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    texts = [
        written(items)
        for length in range(4)
        for items in permutations(VALUES, length)
        if all(any(item in KINDS[kind][1] for item in items) for kind in kinds)
    ]
    if not texts:
        with pytest.raises(LanguageError, match="no instance"):
            language.automaton()
        return
    shortest = min(texts, key=lambda text: (len(text), text))
    for end in range(len(shortest)):
        assert language.shortest(shortest[:end]) == shortest.encode()


def test_long_distinct_items_are_not_sought_among_all_arrays() -> None:
    names = [f"a name that is long enough {number}" for number in range(3)]
    schema = {
        "type": "array",
        "items": {"type": "string"},
        "uniqueItems": True,
        "allOf": [{"contains": {"const": name}} for name in names],
    }
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    assert language.shortest() == written(names).encode()


FEW = [0, "a", None, [0]]
TEXT = {"type": "string"}
OTHER = {"type": ["integer", "null"]}
UNIQUE = {"uniqueItems": True}
SPREAD = [
    {"allOf": [UNIQUE, {"minItems": 3}], "items": {"enum": FEW}, "maxItems": 4},
    {"allOf": [UNIQUE, {"allOf": [{"items": {"enum": FEW}}, {"minItems": 2}]}], "maxItems": 4},
    {"$defs": {"list": {"items": {"enum": FEW}, **UNIQUE}}, "$ref": "#/$defs/list", "minItems": 4},
    {"allOf": [{**UNIQUE, "contains": {"const": 0}}, {"contains": {"type": "string"}}],
     "items": {"enum": FEW}},
    {"allOf": [{"prefixItems": [{"enum": [0, "a"]}, {"enum": ["a"]}], "items": {"enum": FEW}},
               {**UNIQUE, "minItems": 3}]},
    {"allOf": [{**UNIQUE, "items": {"enum": FEW}}, {"maxContains": 1, "minItems": 4,
                                                   "contains": {"type": "string"}}]},
    {"allOf": [{**UNIQUE, "items": {"enum": FEW}}, {"maxContains": 1, "minItems": 4,
                                                   "contains": {"type": ["string", "null"]}}]},
    {"anyOf": [{**UNIQUE, "items": {"enum": [0, "a"]}, "minItems": 2},
               {"items": {"enum": ["a", None]}, "maxItems": 3}]},
    {"anyOf": [{**UNIQUE, "items": {"enum": [0, "a"]}}, {**UNIQUE, "items": {"enum": [[0], None]}},
               {"type": "string"}], "minItems": 2},
    {"items": {"enum": FEW}, **UNIQUE, "anyOf": [{"contains": TEXT}, {"minItems": 3}]},
    {"allOf": [{"items": {"enum": FEW}}, {"items": {"type": ["integer", "null", "array"]}}, UNIQUE],
     "minItems": 3},
    {"items": {"enum": FEW}, **UNIQUE, "maxItems": 3,
     "anyOf": [{"contains": OTHER, "minContains": 2}, {"contains": TEXT, "minItems": 3}]},
]  # fmt: skip


@pytest.mark.parametrize("schema", SPREAD, ids=str)
def test_distinct_items_are_exact_with_further_item_keywords(schema: dict[str, object]) -> None:
    oracle = jsonschema_rs.validator_for(schema)
    arrays = [list(items) for length in range(6) for items in product(FEW, repeat=length)]
    texts = [written(items) for items in arrays if oracle.is_valid(items)]
    language = JsonSchema({**schema, "type": "array"}, property_order="any", max_whitespace=0)
    if not texts:
        with pytest.raises(LanguageError, match="no instance"):
            language.automaton()
        return
    for text in {written(items)[:-1] for items in arrays if len(items) < 5}:
        assert language.is_viable(text) == any(one.startswith(text) for one in texts), text
    least = min(texts, key=lambda text: (len(text), text))
    assert language.shortest() == least.encode()


BOOLS = {"type": "array", "items": {"type": "boolean"}, "uniqueItems": True}
HOLDING = {"properties": {"a": BOOLS}, "required": ["a"], "additionalProperties": False}
HOLDERS = {"type": "object", **HOLDING}
IDENTITIES = [
    {"items": BOOLS, **UNIQUE, "contains": {"const": [True]}},
    {"items": {"not": {"const": [False, True]}}, "allOf": [{"items": BOOLS}]},
    {"items": {"anyOf": [{"type": "string"}, BOOLS]}, "anyOf": [{"items": {"enum": [[True]]}}, {}]},
    {
        "prefixItems": [{"enum": [True, False]}, {"const": True}],
        **UNIQUE,
        "contains": {"const": None},
    },
]


@pytest.mark.parametrize("schema", IDENTITIES, ids=str)
def test_values_that_depend_on_their_index_are_not_counted(schema: dict[str, object]) -> None:
    with pytest.raises(LanguageError, match="enough distinct items remain"):
        JsonSchema({**schema, "type": "array"}, property_order="any").automaton()


TOLD_APART = [
    {"items": HOLDERS, **UNIQUE, "contains": {"minProperties": 1}, "minContains": 2},
    {"items": HOLDERS, "allOf": [{"items": {"not": {"const": {"a": [False, True]}}}}]},
    {"items": HOLDERS, "not": {"enum": [[{"a": [False, True]}]]}, "minItems": 1},
    {"items": BOOLS, **UNIQUE, "contains": {"minItems": 1}, "minContains": 0, "maxContains": 2},
    {"items": BOOLS, "not": UNIQUE},
]


@pytest.mark.parametrize("schema", TOLD_APART, ids=str)
def test_distinct_items_inside_distinguished_items_are_exact(
    schema: dict[str, object],
) -> None:
    schema = {**schema, "type": "array", "maxItems": 3}
    oracle = jsonschema_rs.validator_for(schema)
    lists = [[*items] for length in range(3) for items in product([False, True], repeat=length)]
    values = lists if schema["items"] is BOOLS else [{"a": one} for one in lists]
    arrays = [list(items) for length in range(4) for items in product(values, repeat=length)]
    texts = [written(items) for items in arrays if oracle.is_valid(items)]
    ahead = {text[:end] for text in texts for end in range(1, len(text) + 1)}
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    for text in map(written, arrays):
        for end in range(1, len(text) + 1):
            assert language.is_viable(text[:end]) == (text[:end] in ahead), text[:end]


def test_other_subschemas_may_define_what_is_counted() -> None:
    schema = {"properties": {"a": BOOLS}, "allOf": [{"properties": {"a": {"minItems": 2}}}]}
    language = JsonSchema({**schema, "type": "object"}, property_order="any", max_whitespace=0)
    assert language.shortest('{"a":[t') == b'{"a":[true,false]}'
    assert not language.is_viable('{"a":[true]')


@pytest.mark.parametrize(
    "schema",
    [
        # Which text comes first decides whether there is a second one.
        {"prefixItems": [TEXT, {"type": "string", "pattern": "^x"}], "maxItems": 2, **UNIQUE,
         "contains": {"enum": ["x", "y"]}, "minContains": 2},
    ],
    ids=str,
)  # fmt: skip
def test_contains_with_uncountable_items_is_refused(schema: dict[str, object]) -> None:
    with pytest.raises(LanguageError, match="enough distinct items remain"):
        JsonSchema({**schema, "type": "array"}, property_order="any").automaton()


@pytest.mark.parametrize("count", [30, 60])
def test_many_distinct_items_are_found_at_once(count: int) -> None:
    schema = {"type": "array", "uniqueItems": True, "minItems": count}
    for more in [
        {"contains": {"type": "string"}, "minContains": count // 2},
        {"contains": {"const": "admin"}, "items": {"type": "string"}},
        {"contains": {"type": "integer"}, "maxContains": 3},
    ]:
        language = JsonSchema({**schema, **more}, property_order="any")
        found = json.loads(language.shortest())
        assert len(found) == count
        assert language.matches(json.dumps(found, separators=(",", ":"), ensure_ascii=False))
