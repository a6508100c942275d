"""Masks of JSON Schemas are as defined, on random schemas, vocabularies and walks."""

import itertools
import json
import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import Constraint, JsonSchema, LanguageError, LimitError, Vocabulary
from tests.support.mask_walks import compare_masks

NAMES = ["a", "ab", "b", "é", ""]
TEXTS = ["", "a", "ab", "abab", "é€", '"', "a\\b", "\n", "2024-02-29", "x-y", "😀"]

SCALARS = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "minLength": 1},
        {"type": "string", "minLength": 2, "maxLength": 5},
        {"type": "string", "maxLength": 3},
        {"type": "string", "maxLength": 300},
        {"type": "string", "pattern": "^[a-z]+$"},
        {"type": "string", "pattern": "b"},
        {"type": "string", "pattern": "^[^/]+/é?"},
        {"type": "string", "pattern": "^[ -~é€]{2,}$", "maxLength": 30},
        {"type": "string", "pattern": "^([a-b]+ )*[a-b]+$", "maxLength": 40},
        {"type": "string", "pattern": "^a|b$|é"},
        {"type": "string", "format": "date"},
        {"enum": ["a", "ab", 'a"', 1, 1.5, None, {"a": 1}, [1, "a"]]},
        {"type": "integer"},
        {"type": "integer", "minimum": 3, "maximum": 120},
        {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.25},
        {"type": "number", "minimum": -3.5, "exclusiveMaximum": 117},
        {"type": "integer", "minimum": 1, "not": {"enum": [3, 117]}},
        {"type": ["null", "boolean"]},
        {"not": {"type": "string", "minLength": 2}},
        {},
        True,
    ]
)


def schemas() -> st.SearchStrategy[object]:
    def larger(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        some = st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        names = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
        objects = st.fixed_dictionaries(
            {"type": st.just("object")},
            optional={
                "properties": some,
                "required": names,
                "additionalProperties": inner | st.booleans(),
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "é"]), inner),
                "propertyNames": st.sampled_from([{"maxLength": 2}, {"pattern": "^[ab]+$"}]),
                "maxProperties": st.integers(0, 2),
                "minProperties": st.integers(0, 2),
            },
        )
        arrays = st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={
                "minItems": st.integers(0, 2),
                "maxItems": st.integers(0, 3),
                "uniqueItems": st.booleans(),
                "contains": inner,
            },
        )
        alternatives = st.lists(inner, min_size=1, max_size=3)
        joined = st.sampled_from(["anyOf", "oneOf", "allOf"])
        return st.one_of(
            objects, objects, arrays, st.builds(lambda k, v: {k: v}, joined, alternatives)
        )

    return st.recursive(SCALARS, larger, max_leaves=5)


def values() -> st.SearchStrategy[object]:
    leaf = st.sampled_from([*TEXTS, 0, 1, -3, 2.5, 117, None, True])
    return st.recursive(
        leaf,
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        ),
        max_leaves=4,
    )


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    """Slices of JSON texts, and every byte that such texts are made of."""
    tokens: list[bytes | None] = []
    for value in draw(st.lists(values(), min_size=2, max_size=12)):
        spaced = draw(st.booleans())
        separators = (", ", ": ") if spaced else (",", ":")
        text = json.dumps(value, ensure_ascii=draw(st.booleans()), separators=separators)
        data = text.encode()
        start = draw(st.integers(0, len(data) - 1))
        tokens.append(data[start : draw(st.integers(start + 1, len(data)))])
    tokens += [bytes([byte]) for byte in sorted({*range(0x20, 0x7F), *"é€😀\n".encode()})]
    tokens.append(None)
    return Vocabulary.from_tokens(tokens, end_token_ids=[len(tokens) - 1])


@settings(max_examples=60)
@given(
    schemas(),
    vocabularies(),
    st.sampled_from(["schema", "any"]),
    st.sampled_from([0, 1]),
    st.sampled_from(["minimal", "ascii", "any"]),
    st.data(),
)
def test_a_mask_is_its_definition_along_every_walk(
    schema: object,
    vocabulary: Vocabulary,
    order: str,
    blanks: int,
    escapes: str,
    data: st.DataObject,
) -> None:
    language = JsonSchema(
        json.dumps(schema),
        property_order=order,
        max_whitespace=blanks,
        escapes=escapes,
        approximate=True,
    )
    try:
        matcher = Constraint(language, vocabulary).matcher()
    except (LanguageError, LimitError):
        return

    def drawn(steps: list[int]) -> int:
        longest = max(steps, key=lambda i: len(vocabulary.token_bytes(i)))
        return data.draw(st.sampled_from([longest, *steps]))

    compare_masks(matcher, data.draw(st.integers(1, 12)), drawn)


#: Tokens that end an item or a name, begin others, and are inside of them.
JOINING = [
    *('","', '","",', '","a', '"],', '"},{"', '"},{"a', "],[", ',"', '":"', '":1', '":', "{", "}"),
    *("[", "]", '"', ",", ":", "a", "b", "x", "ab", "xa", "1", "12", "2", "\\", "\\n", "n", "é"),
]


def check_walks(language: JsonSchema, *, joined: bool) -> None:
    """Compare masks along walks with naive ones; with tokens that join items, or without."""
    tokens = [text for text in JOINING if joined or text not in ('","a', '"},{"a', '","",')]
    encoded: list[bytes | None] = [text.encode() for text in tokens]
    vocabulary = Vocabulary.from_tokens([*encoded, None], end_token_ids=[len(tokens)])
    constraint = Constraint(language, vocabulary)
    random = Random(7)
    for _ in range(25):
        compare_masks(constraint.matcher(), 16, random.choice)


@pytest.mark.parametrize(
    "schema",
    [
        {"items": {"type": "string"}, "uniqueItems": True},
        {"items": {"type": "string", "pattern": "^(x.*|a)$"}, "uniqueItems": True},
        {"items": {"enum": ["a", "b", 1]}, "uniqueItems": True},
        {"items": [{"type": "string"}, {"const": "a"}], "minItems": 2, "uniqueItems": True},
        {"items": {"properties": {"a": {"type": "string"}}}, "uniqueItems": True},
        {
            "items": {
                "properties": {"a": {"enum": [1, 2]}},
                "required": ["a"],
                "additionalProperties": False,
            },
            "minItems": 2,
            "uniqueItems": True,
        },
        {"items": {"items": {"enum": ["a", "b"]}, "uniqueItems": True}, "uniqueItems": True},
        {"patternProperties": {"^x": {"const": 1}}, "additionalProperties": {"type": "string"}},
        {"patternProperties": {"^[ab]$": {}}, "additionalProperties": False, "minProperties": 2},
        {"patternProperties": {"a": {"type": "integer"}, "b": {"minimum": 2}}, "maxProperties": 2},
        {"properties": {"a": {}, "ab": {}}, "propertyNames": {"pattern": "^a|x$"}},
        {"anyOf": [{"required": ["a"]}, {"additionalProperties": {"type": "string"}}]},
        # One class of names is empty but for "", another has no end, a third many members.
        {"patternProperties": {"^a": {"const": 1}, "^[^a]": {"type": "string"}}},
        {
            "patternProperties": {"^[ab]{1,500}$": {"type": "integer"}},
            "additionalProperties": False,
        },
        {
            "patternProperties": {"^(a|x.*)$": {}},
            "properties": {"xa": {"const": 1}},
            "additionalProperties": False,
        },
        # Strings and names that refuse nothing before their end.
        {"patternProperties": {"a": {"const": 1}}, "additionalProperties": False},
        {
            "patternProperties": {".*": {"pattern": "ab|^x|b$"}},
            "properties": {"a": {"minLength": 2}},
        },
        {"additionalProperties": {"type": "string", "oneOf": [{"pattern": "a"}, {"pattern": "b"}]}},
        {"properties": {"a": {"pattern": "a[ab]{3}x"}}, "required": ["a", "ab"]},
        {
            "items": {
                "properties": {
                    "a": {"oneOf": [{"type": "string", "minLength": 1}, {"const": 1}]},
                    "ab": {"type": "string", "pattern": "a|x"},
                }
            },
            "minItems": 3,
            "uniqueItems": True,
        },
        {
            "items": {"anyOf": [{"type": "string", "minLength": 1}, {"required": ["a"]}]},
            "uniqueItems": True,
        },
    ],
)
@pytest.mark.parametrize("joined", [True, False])
def test_masks_of_tokens_that_join_items(schema: dict[str, object], joined: bool) -> None:
    """With tokens that join items or names, and without: along walks of many kinds."""
    kind = "array" if "items" in schema else "object"
    draft = "http://json-schema.org/draft-07/schema#"
    whole = {"$schema": draft, "type": kind, **schema}
    language = JsonSchema(whole, property_order="any", max_whitespace=0, approximate=True)
    check_walks(language, joined=joined)


STRINGS: dict[str, object] = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
XS = {"type": "string", "pattern": "^x"}

#: Arrays of distinct items of which more is asked than the same of every item.
BESIDE: list[dict[str, object]] = [
    {"anyOf": [STRINGS, {**STRINGS, "minItems": 2}]},
    {"anyOf": [STRINGS, {**STRINGS, "maxItems": 2, "items": XS}]},
    {"anyOf": [STRINGS, {"type": "array", "minItems": 3, "items": XS}]},
    {"anyOf": [STRINGS, {"type": "array", "items": {"enum": ["a", "b", "x"]}, "minItems": 2}]},
    {"oneOf": [STRINGS, {**STRINGS, "minItems": 2}]},
    {"oneOf": [STRINGS, {"type": "array", "items": {"type": "string"}, "maxItems": 2}]},
    {**STRINGS, "prefixItems": [{"type": "string"}, {"const": "a"}], "minItems": 2},
    {**STRINGS, "prefixItems": [XS, {"not": XS}, {"const": True}], "items": XS},
    {**STRINGS, "prefixItems": [True, {"const": True}, {"const": False}], "items": XS},
    {**STRINGS, "prefixItems": [{"enum": ["a", "b"]}, {"enum": ["a", "b"]}], "items": False},
    {**STRINGS, "contains": {"const": "a"}},
    {**STRINGS, "contains": XS, "minContains": 2, "maxContains": 3},
    {**STRINGS, "items": True, "contains": {"type": "string"}},
    {**STRINGS, "items": True, "contains": {"required": ["a"]}},
    {**STRINGS, "not": {"prefixItems": [XS, XS], "minItems": 2}},
    {"type": "array", "items": {"type": "string"}, "not": {"uniqueItems": True}, "maxItems": 3},
    {
        "properties": {"a": STRINGS},
        "anyOf": [
            {"properties": {"b": {"type": "string"}}},
            {"required": ["a"], "properties": {"a": {"minItems": 2}}},
        ],
    },
    {
        "properties": {"a": {"type": "array"}, "b": True},
        "required": ["a", "b"],
        "if": {"properties": {"b": {"const": 1}}},
        "then": {"properties": {"a": STRINGS}},
        "else": {"properties": {"a": {**STRINGS, "items": XS}}},
    },
    {"items": STRINGS, "anyOf": [{"minItems": 2}, {"items": {"minItems": 1}}]},
    {
        "type": "array",
        "uniqueItems": True,
        "items": {"properties": {"a": {"type": "string"}}, "required": ["a"]},
        "anyOf": [{"minItems": 2}, {"prefixItems": [{"properties": {"a": XS}}]}],
    },
]


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("schema", BESIDE)
def test_masks_of_distinct_items_with_other_keywords(
    schema: dict[str, object], joined: bool
) -> None:
    language = JsonSchema(schema, property_order="any", max_whitespace=0, approximate=True)
    check_walks(language, joined=joined)


def cpu_time_of_masks(schema: dict[str, object], vocabulary: Vocabulary) -> float:
    """Return the seconds that the masks inside distinct items take, each a new one."""
    matcher = Constraint(
        JsonSchema(schema, property_order="any", max_whitespace=0), vocabulary
    ).matcher()
    spent = 0.0
    for byte in b'["xen","by","xab' if "properties" not in schema else b'{"a":["xen","by","xab':
        matcher.advance(byte)
        begun = time.process_time()
        matcher.mask()
        spent += time.process_time() - begun
    return spent


@pytest.mark.parametrize("at", [0, 1, 2, 16])
def test_masks_of_distinct_items_with_other_keywords_do_not_recheck_every_token(at: int) -> None:
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    words = ("".join(letters) for letters in itertools.product("abenxy", repeat=6))
    tokens += [word.encode() for word in words]
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    alone = min(cpu_time_of_masks(STRINGS, vocabulary) for _ in range(2))
    beside = min(cpu_time_of_masks(BESIDE[at], vocabulary) for _ in range(2))
    assert beside < 5 * alone + 0.05
