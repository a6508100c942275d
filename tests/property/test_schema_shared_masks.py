"""Places of a schema that share a mask: other objects, depths, names and members that came before.

Walks of one constraint meet many places; each mask is compared with its definition. Vocabularies
differ in how much of names their tokens have.
"""

import json
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import Constraint, JsonSchema, LanguageError, LimitError, Matcher, Vocabulary
from tests.support.mask_walks import compare_masks

PLAIN = ["a", "b", "x", "ab", "1", "12", '"', ":", ",", "{", "}", "[", "]", "\\", "n", "é", "true"]
#: Tokens with the end of a value, of a name, with the beginning of one, with all of one, with the
#: ends of containers.
MORE = [
    *('":', '":"', '":1', '":{"', '":[', ',"', '","', '"},', '"}', '"]', '"],"', "}}", "}]", "1}"),
    *(
        'a"',
        'b"',
        'ab"',
        'a":',
        'b":1',
        'ab":"',
        '":"a"',
        '":"a",',
        "1,",
        '1,"',
        '},"',
        "}]},{",
        "}}",
        "1}}",
    ),
    *(',"a', '","a', '1,"b', ',"a"', ',"ab"', ',"a":', ',"b":1', '":1,"', '":1,"a', '{"a', '{"a"'),
    *(
        '{"a":1}',
        '":1,',
        '":1}',
        '":"a"}',
        '":[]',
        '":{}',
        'a":1}',
        'a":1,"',
        '\\"',
        '\\n"',
        '\\":',
        'é"',
        'é":1',
        "[{",
        "[[",
        '["',
        '"a',
        '"a"',
        '"ab":',
    ),
]

NAMES = st.sampled_from(["a", "ab", "b", "é", "", "x", 'a"', "\n"])
LEAVES = st.sampled_from(
    [
        {"type": "string"},
        {"type": "string", "maxLength": 2},
        {"enum": ["a", "ab", 1]},
        {"type": "integer"},
        {"type": "boolean"},
        {"pattern": "^a"},
        {},
        False,
    ]
)


def schemas() -> st.SearchStrategy[object]:
    """Objects and arrays of few names, with what makes members depend on each other."""

    def larger(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
        names = st.lists(NAMES, max_size=2, unique=True)
        objects = st.fixed_dictionaries(
            {"type": st.just("object"), "properties": st.dictionaries(NAMES, inner, max_size=3)},
            optional={
                "required": names,
                "additionalProperties": inner,
                "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), inner),
                "propertyNames": st.sampled_from([{"maxLength": 2}, {"enum": ["a", "b", "ab"]}]),
                "maxProperties": st.integers(0, 3),
                "minProperties": st.integers(0, 3),
                "dependentRequired": st.dictionaries(NAMES, names, max_size=1),
                "dependentSchemas": st.dictionaries(NAMES, inner, max_size=1),
                "unevaluatedProperties": inner,
                "not": st.fixed_dictionaries({"required": names}),
            },
        )
        arrays = st.fixed_dictionaries(
            {"type": st.just("array"), "items": inner},
            optional={
                "prefixItems": st.lists(inner, max_size=2),
                "minItems": st.integers(0, 2),
                "maxItems": st.integers(1, 3),
                "contains": inner,
                "uniqueItems": st.booleans(),
            },
        )
        several = st.builds(
            lambda kind, some: {kind: some},
            st.sampled_from(["anyOf", "oneOf", "allOf"]),
            st.lists(inner, min_size=1, max_size=3),
        )
        return st.one_of(objects, objects, arrays, several)

    return larger(st.recursive(LEAVES, larger, max_leaves=5))


@st.composite
def vocabularies(draw: st.DrawFn) -> Vocabulary:
    """All of the plain tokens, and some of the others."""
    some = draw(st.lists(st.sampled_from(MORE), max_size=40, unique=True))
    tokens: list[bytes | None] = [token.encode() for token in dict.fromkeys([*PLAIN, *some])]
    return Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])


def compare(constraints: list[Constraint], seed: int, walks: int, first: str = "") -> None:
    """Compare masks along random walks, which may begin with some text, with their definition."""
    random = Random(seed)
    for walk in range(walks):
        matcher = constraints[walk % len(constraints)].matcher()
        matcher.advance_bytes(first.encode())

        def choose(steps: list[int], matcher: Matcher = matcher) -> int:
            longest = max(steps, key=lambda i: len(matcher.constraint.vocabulary.token_bytes(i)))
            return longest if random.random() < 0.3 else random.choice(steps)

        compare_masks(matcher, 14, choose)


@settings(max_examples=500)
@given(
    schemas(),
    st.lists(vocabularies(), min_size=1, max_size=2),
    st.sampled_from(["any", "any", "schema"]),
    st.sampled_from(["minimal", "minimal", "ascii", "any"]),
    st.sampled_from([0, 0, 1]),
    st.integers(0, 2**32 - 1),
)
def test_masks_are_as_defined_wherever_they_are_shared(
    schema: object, some: list[Vocabulary], order: str, escapes: str, blanks: int, seed: int
) -> None:
    """Also of a language that is lifted to two vocabularies."""
    language = JsonSchema(
        json.dumps(schema),
        property_order=order,
        escapes=escapes,
        max_whitespace=blanks,
        approximate=True,
    )
    try:
        constraints = [Constraint(language, vocabulary) for vocabulary in some]
    except (LanguageError, LimitError):
        return
    compare(constraints, seed, walks=12)


@pytest.mark.parametrize(
    ("schema", "first"),
    [
        # What may follow the inner object depends on which names it had.
        (
            {
                "properties": {"a": {"type": "object", "maxProperties": 2}},
                "anyOf": [{"properties": {"a": {"required": ["x"]}}}, {"required": ["b"]}],
                "required": ["a"],
            },
            ['{"a":{"x":', '{"a":{"1":', '{"x":{"x":', '{"b":1,"a":{"n":'],
        ),
        (
            {"items": {"properties": {"a": {}}}, "contains": {"required": ["x"]}, "maxContains": 1},
            ['[{"x":', '[{"1":', '[{"1":1},{"x":1,"', '[{"x":1},{"1":1,"'],
        ),
        # The same names in objects that end differently, and at other depths.
        (
            {"properties": {"a": {"properties": {"a": {"properties": {"a": {"enum": [1]}}}}}}},
            ['{"', '{"a":{"', '{"a":{"a":{"', '{"a":{"a":{"a":', '{"a":{"a":', '{"x":{"a":'],
        ),
        (
            {
                "properties": {"a": {"items": {"required": ["b"]}}, "b": {"required": ["b"]}},
                "required": ["a", "b"],
            },
            ['{"a":[{"b":', '{"b":{"b":', '{"a":[],"b":{"b":', '{"b":{"b":1},"a":[{"b":'],
        ),
        (
            {"additionalProperties": {"additionalProperties": False, "properties": {"a": {}}}},
            ['{"x":{"', '{"x":{"a":1}', '{"x":{"a":'],
        ),
        (
            {"properties": {"a": {"uniqueItems": True}, "b": {}}, "minProperties": 2},
            ['{"a":["a","', '{"b":["a","', '{"a":"', '{"1":1,"a":"', '{"a":[{"a":'],
        ),
        # A value of which truths are asked.
        (
            {"oneOf": [{"properties": {"a": {"type": "object"}}}, {"required": ["b"]}]},
            ['{"a":{"x":1', '{"a":1', '{"x":1', '{"x":"', '{"b":1,"a":"', '{"b":1,"a":[1'],
        ),
    ],
)
@pytest.mark.parametrize("order", ["any", "schema"])
def test_nearly_equivalent_states(schema: dict[str, object], first: list[str], order: str) -> None:
    """With all tokens."""
    language = JsonSchema(
        json.dumps(schema), property_order=order, max_whitespace=0, approximate=True
    )
    tokens: list[bytes | None] = [token.encode() for token in dict.fromkeys([*PLAIN, *MORE])]
    constraint = Constraint(
        language, Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    )
    for text in first:
        if language.is_viable(text):
            compare([constraint], seed=3, walks=5, first=text)
