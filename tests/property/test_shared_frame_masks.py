"""Schemas over one vocabulary share masks of equal places, and of no others.

Each case reads several schemas one after another over the same vocabulary, in both orders, and
compares every mask with its definition. The schemas of a pair differ in one thing that tokens see.
"""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import numpy as np
import pytest

from formalm import Constraint, JsonSchema, LanguageError, Vocabulary
from formalm.reference.naive_mask import naive_mask

TEXT, WHOLE, NUMBER = {"type": "string"}, {"type": "integer"}, {"type": "number"}

#: Tokens with names between quotes, with the ends of several containers, and with the beginnings
#: of what comes after them.
TOKENS = [
    *('"', "a", "b", "c", "id", "x", "\\", "u0", "0", "1", "é", "-", ".", "e", "E", "true", "null"),
    *(" ", "  ", "\n", "\n ", ":", ": ", ",", ", ", "{", "}", "[", "]"),
    *('"id"', ' "id"', '{"id"', '"id":', ' "id": ', '{"a"', '"a', ' "b', '\\u0069d"', '"\\u0069d"'),
    *('":', '":"', '": "', '": 1', '":1', '":{', '": [', '": {"', "a}", '1,"', '1, "', "1]", "1}"),
    *('",', '", "', '","', '"}', '"}}', '"]', '"]}', '"}]', '"}, "', '"},', "}}", "}]", "]}", "]]"),
    *("},{", "}, {", "], [", '],"', '", "a', '","id', '", "x"', "1, 1", "1,1", '", "c": ', "}}}"),
    *(
        "1.",
        ".1",
        "1e1",
        "e1",
        "1.1",
        "-1",
        "true,",
        "null}",
        "t",
        "f",
        "n",
        "[]",
        "{}",
        "[{",
        '["',
    ),
]

#: Tokens with a whole name and the beginning of its value.
MORE = ['"id": 1', '"id":"', ' "x": "', '{"a":', '"a": {', '","id":1', '"c":1,']


def inside(value: Any, **more: Any) -> dict[str, Any]:
    """An object with a property of that value."""
    return {"type": "object", "properties": {"a": value}, **more}


def items(item: Any, **more: Any) -> dict[str, Any]:
    """An array of such items in a property."""
    return inside({"type": "array", "items": item, **more})


#: Schemas that differ in one thing, with instances along which their masks are compared.
PAIRS: dict[str, tuple[list[Any], list[Any]]] = {
    "types": (
        [inside(one) for one in (TEXT, WHOLE, NUMBER, {"type": ["string", "null"]}, {})],
        [{"a": "b"}, {"a": 1}, {"a": 1.1}, {"a": None}, {"a": {"b": [1]}}],
    ),
    "more than a type": (
        [inside(one) for one in (TEXT, {**TEXT, "maxLength": 1}, {"enum": ["a", 1]}, WHOLE)]
        + [inside({**WHOLE, "maximum": 5}), inside({**NUMBER, "multipleOf": 0.5}), inside(NUMBER)],
        [{"a": "b"}, {"a": "a"}, {"a": 1}, {"a": 0.5}],
    ),
    "strings": (
        [
            around({**TEXT, **more})
            for around in (inside, items)
            for more in (
                {"enum": ["a", "b"]},
                {"enum": ["a", "x"]},
                {"enum": ["b", "a", 'a"']},
                {"const": "a"},
                {"pattern": "^a*$"},
                {"pattern": "^a+$"},
                {"pattern": "^[ab]*$"},
                {"pattern": "a"},
                {"not": {"pattern": "a"}},
                {"pattern": "^a*$", "maxLength": 1},
                {"pattern": "^a*$", "minLength": 2},
                {"enum": ["a", "aa"], "pattern": "^a$"},
                {"anyOf": [{"const": "a"}, {"pattern": "^b"}]},
                {"oneOf": [{"const": "ab"}, {"pattern": "^a"}]},
                {"format": "date"},
                {"format": "time"},
                {"minLength": 1, "maxLength": 2},
            )
        ],
        [
            {"a": "a"},
            {"a": "b"},
            {"a": "aa"},
            {"a": ["a", "x"]},
            {"a": 'a"'},
            {"a": "ab"},
            {"a": "1010-10-10"},
            {"a": ["1"]},
        ],
    ),
    "numbers and other scalars": (
        [
            around(one)
            for around in (inside, items)
            for one in (
                {**WHOLE, "minimum": 1},
                {**WHOLE, "minimum": 0},
                {**WHOLE, "exclusiveMinimum": 0},
                {**WHOLE, "maximum": 1},
                {**NUMBER, "minimum": 1},
                {**NUMBER, "multipleOf": 0.5},
                {**NUMBER, "multipleOf": 0.1},
                {**NUMBER, "multipleOf": 0.1, "minimum": 1},
                {**NUMBER, "not": {"multipleOf": 0.5}},
                {"enum": [1, 11]},
                {"enum": [1, 10]},
                {"enum": [1, "a", None]},
                {"enum": [1, "a", True]},
                {"enum": ["a", False]},
                {"type": "boolean"},
                {"enum": [True]},
                {"enum": ["a", {}]},
                {"enum": ["a", [1]]},
                {"type": ["string", "array"], "enum": ["a", []]},
                {"type": ["string", "object"], "maxLength": 1},
            )
        ],
        [
            {"a": 1},
            {"a": 11},
            {"a": 10},
            {"a": 1.1},
            {"a": 0.5},
            {"a": -1},
            {"a": [1, 1.1]},
            {"a": True},
            {"a": False},
            {"a": "a"},
            {"a": [True]},
            {"a": ["a"]},
            {"a": {}},
        ],
    ),
    "next names": (
        [
            inside(TEXT),
            inside(TEXT, additionalProperties=False),
            inside(TEXT, maxProperties=1),
            inside(TEXT, additionalProperties=WHOLE),
            inside(TEXT, propertyNames={"maxLength": 1}),
            inside(TEXT, patternProperties={"^c": WHOLE}),
            inside(TEXT, required=["a", "c"]),
        ],
        [{"a": "b"}, {"a": "b", "c": 1}, {"a": "b", "c": "x"}, {}, {"x": 1}],
    ),
    "known names": (
        [
            {"type": "object", "properties": {"id": one, "a": TEXT}, **more}
            for one in (TEXT, WHOLE, {}, False, {"enum": ["a"]})
            for more in ({}, {"required": ["a"]}, {"additionalProperties": WHOLE})
        ],
        [{"id": "a"}, {"id": 1, "x": 1}, {"a": "a", "id": 1}, {"x": 1}, {"a": "b", "x": 1}],
    ),
    "names by patterns and closed objects": (
        [
            {"type": "object", "properties": {"id": WHOLE, "a": TEXT, "x": {}}, **more}
            for more in (
                {"patternProperties": {"^[^a]": WHOLE, "^a": {}}},
                {"patternProperties": {"^[^a]": {}, "^a": WHOLE}},
                {"patternProperties": {"^[^a]": False}},
                {"patternProperties": {"^[ab]+$": WHOLE}},
                {"patternProperties": {"^[^a]": {}}, "additionalProperties": False},
                {"patternProperties": {"^a": {}}, "maxProperties": 1},
                {"propertyNames": {"pattern": "^(id|a|c.*)$"}},
                {"additionalProperties": False},
                {"additionalProperties": False, "required": ["x"]},
                {"additionalProperties": False, "properties": {"id": TEXT, "x": False}},
                {
                    "additionalProperties": False,
                    "properties": dict.fromkeys(["id", "a", *(f"x{n}" for n in range(9))], TEXT),
                },
            )
        ],
        [
            {"id": 1, "a": "b", "x": 1},
            {"id": "a", "x1": "b"},
            {"a": "b", "c": 1, "b": 1},
            {"id": 1, "ab": 1},
            {"id": 1, "cb": "x"},
            {"x": [1]},
            {"x": {"id": 1}},
        ],
    ),
    "typed containers": (
        [
            inside(one, **more)
            for one in (
                {"type": "array", "items": inside(TEXT)},
                {"type": "array", "items": inside(TEXT), "maxItems": 1},
                {"type": "array", "items": inside(TEXT), "minItems": 2},
                {"type": "array", "items": inside(TEXT, additionalProperties=False)},
                {"type": "array", "items": {"type": "array", "items": inside(TEXT)}},
                {"type": "array", "prefixItems": [TEXT], "items": False},
                inside(TEXT, additionalProperties=False),
                inside(TEXT, required=["a"]),
            )
            for more in ({}, {"additionalProperties": False})
        ],
        [
            {"a": [{"a": "b"}, {"a": "x"}], "c": 1},
            {"a": [[{"a": "b"}, {}], []]},
            {"a": [{}, {"x": 1}]},
            {"a": ["a"], "c": 1},
            {"a": {"a": "b"}, "c": 1},
            {"a": {}, "x": {}},
        ],
    ),
    "beginnings of containers": (
        [
            around(one)
            for around in (inside, items)
            for one in (
                {"type": "object"},
                {"type": "object", "maxProperties": 0},
                {"type": "object", "minProperties": 1},
                inside(TEXT, additionalProperties=False),
                inside(TEXT, additionalProperties=False, required=["a"]),
                inside(False, additionalProperties=False),
                {"type": "object", "properties": {"id": {}, "x": TEXT}, "required": ["x"]},
                {"type": "object", "propertyNames": {"pattern": "^x"}, "required": ["x"]},
                {"type": "array", "items": TEXT},
                {"type": "array", "items": TEXT, "minItems": 1},
                {"type": "array", "items": TEXT, "minItems": 2},
                {"type": "array", "items": TEXT, "maxItems": 0},
                {"type": "array", "items": TEXT, "maxItems": 1},
                {"type": "array", "items": TEXT, "minItems": 1, "maxItems": 1},
                {"type": "array", "items": WHOLE, "maxItems": 1},
                {"type": "array", "items": TEXT, "uniqueItems": True, "minItems": 1},
                {"type": "array", "prefixItems": [TEXT, WHOLE], "items": False},
                {"type": "array", "contains": {"const": "x"}, "items": TEXT},
                {"type": "array", "items": {"type": "array", "items": TEXT, "minItems": 1}},
                {"type": "array", "items": {"type": "array", "items": TEXT, "maxItems": 1}},
                {"type": ["array", "string"], "items": inside(TEXT), "maxLength": 1},
                {"anyOf": [{"type": "array", "items": TEXT}, inside(TEXT, required=["a"])]},
            )
        ],
        [
            {"a": {}},
            {"a": {"a": "b"}},
            {"a": {"x": "b"}},
            {"a": []},
            {"a": ["x"]},
            {"a": ["x", "b"]},
            {"a": [["x"], []]},
            {"a": [1]},
            {"a": "b"},
            {"a": [{"a": "b"}]},
        ],
    ),
    "the container": (
        [inside(one) for one in (inside(TEXT), {"type": "array", "items": inside(TEXT)})]
        + [inside(TEXT), {"type": "array", "items": inside(TEXT)}, inside(inside(inside(TEXT)))],
        [
            {"a": "b"},
            {"a": {"a": "b"}},
            {"a": [{"a": "b"}]},
            [{"a": "b"}],
            {"a": {"a": {"a": "b"}}},
        ],
    ),
    "the container's end": (
        [
            inside(inside(TEXT), **more)
            for more in (
                {},
                {"required": ["c"]},
                {"minProperties": 2},
                {"maxProperties": 1},
                {"additionalProperties": False},
                {"dependentRequired": {"a": ["x"]}},
            )
        ],
        [{"a": {"a": "b"}}, {"a": {"a": "b"}, "c": 1}, {"a": {}, "x": {}}],
    ),
    "items": (
        [
            items(TEXT),
            items(WHOLE),
            items({}),
            items(TEXT, minItems=2),
            items(TEXT, maxItems=2),
            items(TEXT, uniqueItems=True),
            items(TEXT, contains={"const": "x"}),
            items(TEXT, prefixItems=[WHOLE]),
            items({"type": "array", "items": TEXT}),
        ],
        [
            {"a": []},
            {"a": ["b"]},
            {"a": ["b", "x", "c"]},
            {"a": [1]},
            {"a": [1, "b"]},
            {"a": [["b"]]},
        ],
    ),
    "verdicts": (
        [
            inside(inside(TEXT)),
            {"anyOf": [inside(inside(TEXT), required=["c"]), inside(inside({"const": "b"}))]},
            {
                **inside(inside(TEXT)),
                "if": inside({"required": ["x"]}),
                "then": {"required": ["c"]},
            },
            {**inside(TEXT), "not": {"required": ["a", "x"]}},
        ],
        [{"a": {"a": "b"}}, {"a": {"a": "b", "x": 1}, "c": 1}, {"a": {}}, {"a": "b", "c": 1}],
    ),
}

OPTIONS: list[dict[str, Any]] = [
    {"separators": (", ", ": ")},
    {"separators": (",", ":")},
    {"separators": (",", ": ")},
    {"separators": (", ", ":")},
    {"max_whitespace": 1},
    {"max_whitespace": 2},
    {"max_whitespace": 0},
    {"indent": 1},
    {"separators": (", ", ": "), "escapes": "ascii"},
    {"separators": (", ", ": "), "escapes": "any"},
    {"separators": (", ", ": "), "number_format": "any"},
    {"separators": (", ", ": "), "property_order": "any"},
]


#: How much tokens contain: no whitespace with a further byte between two parts, as real
#: vocabularies do; the beginnings of what comes after it; whole names with their values.
SEEN = ("one part", "the next part", "names and values")


def vocabulary(seen: str) -> Vocabulary:
    """A vocabulary that no other test has."""
    chosen = [*TOKENS, *(MORE if seen == SEEN[2] else ())]
    if seen == SEEN[0]:
        chosen = [text for text in chosen if not re.search(r"[:,]\s+\S", text)]
    texts = [text.encode() for text in chosen]
    single = [bytes([byte]) for byte in sorted({byte for text in texts for byte in text})]
    tokens = list(dict.fromkeys([*texts, *single]))
    return Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])


def written(instance: Any, options: dict[str, Any]) -> str:
    """The text of an instance with the options' whitespace."""
    separators = options.get("separators", (",", ":") if "indent" not in options else None)
    return json.dumps(
        instance, ensure_ascii=False, separators=separators, indent=options.get("indent")
    )


def compare(language: JsonSchema, tokens: Vocabulary, texts: list[str], random: Random) -> int:
    """Compares the masks along texts, cut at random, with their definition."""
    constraint, compared = Constraint(language, tokens), 0
    known = {tokens.token_bytes(number): number for number in range(len(tokens))}
    for text in texts:
        matcher, left = constraint.matcher(), text.encode()
        while True:
            want = naive_mask(language, tokens, matcher.text)
            assert np.array_equal(matcher.mask(), want), (language, matcher.text)
            compared += 1
            fitting = [one for one in known if one and left.startswith(one) and want[known[one]]]
            if not fitting:
                break
            token = random.choice(fitting)
            matcher.advance(known[token])
            left = left[len(token) :]
    return compared


@pytest.mark.parametrize("seen", SEEN)
@pytest.mark.parametrize("name", PAIRS)
def test_places_that_differ_in_one_thing_do_not_share(name: str, seen: str) -> None:
    schemas, instances = PAIRS[name]
    random = Random(name)
    for options in OPTIONS[:2]:
        texts = [written(one, options) for one in instances]
        for order in (schemas, schemas[::-1]):
            tokens = vocabulary(seen)
            for schema in order:
                assert compare(JsonSchema(schema, **options), tokens, texts, random) >= len(texts)


@pytest.mark.parametrize(
    "name", ["types", "known names", "items", "strings", "numbers and other scalars"]
)
def test_options_that_tokens_see_are_not_shared(name: str) -> None:
    schemas, instances = PAIRS[name]
    random = Random(name)
    for seed, seen in enumerate(SEEN):
        tokens = vocabulary(seen)
        for options in Random(seed).sample(OPTIONS, len(OPTIONS)):
            texts = [written(one, options) for one in instances]
            for schema in schemas[:4]:
                compare(JsonSchema(schema, **options), tokens, texts, random)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_schemas_over_one_vocabulary_have_masks_by_definition(seed: int) -> None:
    random, tokens = Random(seed), vocabulary(SEEN[seed % 3])
    every = [pair for pairs in PAIRS.values() for pair in pairs[0]]
    instances = [one for pairs in PAIRS.values() for one in pairs[1]]
    for _ in range(12):
        options = random.choice(OPTIONS)
        schema: Any = random.choice(every)
        for _ in range(random.randrange(3)):
            outer = random.choice(every)
            key = random.choice(["a", "x"])
            schema = {**outer, "properties": {**outer.get("properties", {}), key: schema}}
        texts = [written(one, options) for one in random.sample(instances, 4)]
        texts += [written({"a": one}, options) for one in random.sample(instances, 4)]
        try:
            language = JsonSchema(schema, **options)
            compare(language, tokens, texts, random)
        except LanguageError:
            continue
