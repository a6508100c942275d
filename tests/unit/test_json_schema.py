"""JSON Schemas as languages."""

import copy
import json
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Constraint,
    JsonSchema,
    LanguageError,
    LimitError,
    StringLiteral,
    TokenError,
    Vocabulary,
)

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_members_are_instances() -> None:
    person = JsonSchema(PERSON)
    assert person.matches('{"name": "Ada", "age": 3}')
    assert not person.matches('{"age": 3, "name": "Ada"}')
    assert JsonSchema(PERSON, property_order="any").matches('{"age": 3, "name": "Ada"}')
    assert not person.is_viable('{"name": "Ada", "age": -1')
    assert person.shortest() == b'{"name":""}'


def test_policies() -> None:
    assert not JsonSchema(PERSON, max_whitespace=0).is_viable("{ ")
    assert JsonSchema(PERSON, max_whitespace=3).matches('{   "name":   ""   }')
    assert not JsonSchema({"type": "string"}).is_viable('"\\u0041')
    assert JsonSchema({"type": "string"}, escapes="any").matches('"\\u0041"')
    assert not JsonSchema({"type": "string"}, escapes="ascii").is_viable('"é')
    assert JsonSchema({"type": "string"}, escapes="ascii").matches('"\\u00e9"')
    dated = {"type": "string", "format": "date"}
    assert not JsonSchema(dated).is_viable('"2023-02-30')
    assert JsonSchema(dated, formats=False).matches('"soon"')


def test_values() -> None:
    assert JsonSchema(PERSON).value(b'{"name": "Ada"}') == {"name": "Ada"}
    with pytest.raises(TokenError):
        JsonSchema(PERSON).value("{}")


def test_numbers_are_exact() -> None:
    assert JsonSchema({"type": "number", "multipleOf": 0.01}).matches("19.99")
    assert not JsonSchema({"maximum": Decimal("9007199254740993")}).matches("9007199254740994")
    assert JsonSchema({"maximum": Decimal("9007199254740993")}).matches("9007199254740993")


def test_sources(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(PERSON))
    assert JsonSchema(path) == JsonSchema(path.read_text())
    other = {"http://example.com/person": PERSON}
    people = JsonSchema({"items": {"$ref": "http://example.com/person"}}, resources=other)
    assert people.matches('[{"name": ""}]')
    assert not people.is_viable("[1")


def test_copies_and_pickles() -> None:
    person = JsonSchema(PERSON, property_order="any", resources={"http://example.com/a": True})
    for again in (copy.copy(person), pickle.loads(pickle.dumps(person))):  # noqa: S301
        assert again == person
        assert hash(again) == hash(person)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"type": "strin"}, "#/type"),
        ({"properties": {"a": {"pattern": "("}}}, "#/properties/a/pattern"),
        ({"$ref": "#/none"}, "#/$ref"),
        ({"type": "string", "minLength": 2, "maxLength": 1}, "no instance"),
        ({"properties": {"a": {"$ref": "#missing"}}}, "#/properties/a/$ref"),
        ({"items": {"$ref": "https://a.b/c"}}, "#/items/$ref"),
        ({"$dynamicRef": "#x"}, "#/$dynamicRef"),
        ({"properties": {"x": {"pattern": r"(a)\1"}}}, "#/properties/x/pattern"),
        ({"pattern": "a{3,1}"}, "#/pattern"),
        ({"pattern": r"\p{Foo}"}, "#/pattern"),
        ({"patternProperties": {"[": {}}}, "#/patternProperties"),
        ({"minimum": "1"}, "#/minimum"),
        ({"multipleOf": 0}, "#/multipleOf"),
        ({"minLength": -1}, "#/minLength"),
        ({"required": "a"}, "#/required"),
        ({"enum": 3}, "#/enum"),
        ({"items": 3}, "#/items"),
        ({"properties": []}, "#/properties"),
        ({"allOf": [True, {"not": 7}]}, "#/allOf/1/not"),
    ],
)
def test_refusals_name_the_location(schema: dict[str, object], place: str) -> None:
    with pytest.raises(LanguageError, match=place.replace("$", r"\$")):
        JsonSchema(schema).automaton()


def test_values_that_are_not_schemas_are_refused() -> None:
    with pytest.raises(LanguageError, match="not valid JSON"):
        JsonSchema("{")
    for wrong in (3, None, {1: 2}, {"const": float("nan")}, {"const": object()}):
        with pytest.raises(ArgumentError):
            JsonSchema(wrong)  # type: ignore[arg-type]
    for options in (
        {"property_order": "no"},
        {"max_whitespace": -1},
        {"escapes": "no"},
        {"formats": 1},
    ):
        with pytest.raises(ArgumentError):
            JsonSchema({}, **options)  # type: ignore[arg-type]


def test_masks_are_their_definition() -> None:
    """Every mask on the way to two members, against the definition."""
    texts = [bytes([byte]) for byte in range(256)]
    texts += [
        b'{"',
        b'":',
        b'", "',
        b"name",
        b'name":"',
        b'"}',
        b"12",
        b'":"x"}',
        "é".encode(),
        b'"a',
    ]
    vocabulary = Vocabulary.from_tokens([*texts, b"<end>"], end_token_ids=[len(texts)])
    for schema in (PERSON, {"properties": {"name": {"enum": ["x", "é"]}}}):
        language = JsonSchema(schema)
        matcher = Constraint(language, vocabulary).matcher()
        for byte in b'{"name": "x"}':
            read = matcher.text
            expected = [language.is_viable(read + text) for text in texts]
            assert np.array_equal(matcher.mask()[: len(texts)], expected), read
            matcher.advance(byte)
        assert matcher.is_accepting


def test_shortest_completions_are_found_through_long_names() -> None:
    names = [f"a rather long name {number}" for number in range(9)]
    text = {"type": "string", "minLength": 1}
    schema = {"type": "object", "required": names, "properties": dict.fromkeys(names, text)}
    for order in ("any", "schema"):
        language = JsonSchema(schema, property_order=order)
        found = language.shortest()
        assert found is not None
        assert list(json.loads(found)) == names
        assert language.matches(found)
        assert len(found) == sum(len(f'"{name}":"x",') for name in names) + 1
        assert language.shortest(found[:40]) == found


def test_shortest_completions_are_those_of_the_graph() -> None:
    """Against the machine written out: nothing shorter, nothing as short and smaller."""
    bits = {"enum": [1, 22, "a", 'a"', None]}
    inner = {"type": "object", "properties": {"b": bits, "a": bits}, "additionalProperties": False}
    for more in ({}, {"required": ["b"]}, {"required": ["b", "a"]}, {"minProperties": 1}):
        for items in ({"minItems": 1}, {"contains": {"required": ["a"]}}):
            schema = {"type": "array", "items": {**inner, **more}, "maxItems": 2, **items}
            for order in ("any", "schema"):
                language = JsonSchema(schema, property_order=order)
                least = language.to_automaton().shortest()
                data = least.encode() if isinstance(least, str) else least
                assert language.shortest() == data


@pytest.mark.parametrize(
    ("schema", "text", "ending"),
    [
        ({}, '{"', '":0}'),
        ({"type": "object"}, '{"zz', '":0}'),
        ({"type": "object", "required": ["abc"]}, '{"abc":1,"zz', '":0}'),
        ({"additionalProperties": {"type": "string"}, "type": "object"}, '{"a":"",', '"":""}'),
        ({"minProperties": 3}, "{", '" ":0,"!":0,"":0}'),
        ({"minProperties": 12}, '{"zz', None),
        (
            {"additionalProperties": {"required": ["name"], "type": "object"}},
            '{"é',
            '":{"name":0}}',
        ),
        ({"minLength": 3000}, '"', " " * 3000 + '"'),
        ({"patternProperties": {"^x-": {"type": "string"}}}, '{"x-', '":""}'),
    ],
)
@pytest.mark.parametrize("order", ["schema", "any"])
def test_shortest_completions_of_open_objects_take_no_search(
    schema: dict[str, object], text: str, ending: str | None, order: str
) -> None:
    language = JsonSchema(schema, property_order=order)
    found = language.shortest(text)
    assert found is not None
    assert language.matches(found)
    if ending is not None:
        assert found == (text + ending).encode()


OBJECTS = {"type": "object", "properties": {"a": {"type": "boolean"}}}
CLOSED = {**OBJECTS, "additionalProperties": False}

#: No more than two objects. Which member is right depends on what the object is besides, so that
#: values are not counted.
TANGLED = {
    **CLOSED,
    "properties": {"a": {"type": "string"}, "b": {"const": 1}},
    "oneOf": [{"properties": {"a": {"maxLength": 0}}, "required": ["a"]}, {"required": ["b"]}],
    "maxProperties": 1,
}


def distinct(items: object, **more: object) -> dict[str, object]:
    return {"type": "array", "uniqueItems": True, "items": items, **more}


@pytest.mark.parametrize(
    "schema",
    [
        distinct({"type": "string"}),
        {
            "prefixItems": [{"enum": [1, 2]}, {"type": "boolean"}],
            "items": {"type": "integer"},
            "uniqueItems": True,
        },
        distinct({"enum": [1, 2, "a"]}, minItems=3),
        distinct(OBJECTS),
        distinct({**CLOSED, "properties": {"id": {"type": "integer", "minimum": 1}}}),
        distinct({"type": "array", "items": {"type": "boolean"}}),
        distinct(CLOSED),
        distinct({**CLOSED, "required": ["a"]}, minItems=2),
        {"properties": {"b": distinct({"enum": [[1], {}]})}},
        distinct({"items": {"enum": [1, 2]}, "maxItems": 2, "type": "array", "uniqueItems": True}),
        distinct({"patternProperties": {"^[ab]$": {"type": "null"}}, **CLOSED, "properties": {}}),
        distinct({"type": "array", "items": {"type": "integer"}, "maxItems": 2, "minItems": 2}),
        {"anyOf": [{"type": "null"}, distinct({"type": "string"})]},
        {"type": "array", "uniqueItems": True},
        {"allOf": [{"uniqueItems": True}, {"items": CLOSED}], "type": "array"},
        {"oneOf": [{"uniqueItems": True}, {"items": CLOSED}], "type": "array"},
    ],
)
def test_distinct_items_that_are_exact(schema: dict[str, object]) -> None:
    assert JsonSchema(schema).notes == ()


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (distinct(TANGLED), "#/uniqueItems"),
        ({"properties": {"b": distinct(TANGLED)}}, "#/properties/b/uniqueItems"),
        ({"maxLength": 1 << 40}, "#/maxLength"),
    ],
)
def test_inexact_keywords_are_refused_or_reported(schema: dict[str, object], place: str) -> None:
    with pytest.raises(LanguageError, match=place):
        JsonSchema(schema).automaton()
    vocabulary = Vocabulary.from_tokens([b"[", b"]", b"{", b"}", b'"', b"<end>"], end_token_ids=[5])
    loose = JsonSchema(schema, approximate=True)
    for language in (loose, StringLiteral("[") + loose):
        report = Constraint(language, vocabulary).report
        assert not report.exact
        assert [note.place for note in report.notes] == [place]
        assert report.approximations[0].startswith(place)
    assert pickle.loads(pickle.dumps(loose)) == loose != JsonSchema(schema)  # noqa: S301


def test_keywords_that_are_exact_by_other_means_are_reported_too() -> None:
    vocabulary = Vocabulary.from_tokens([b'"', b"<end>"], end_token_ids=[1])
    for options, message in (({}, "not enforced"), ({"formats": False}, "annotations")):
        report = Constraint(JsonSchema({"format": "color"}, **options), vocabulary).report
        assert report.exact
        assert [(note.place, note.effect) for note in report.notes] == [("#/format", "exact")]
        assert message in report.notes[0].message


def test_dead_ends_are_where_they_are_reported() -> None:
    """Two values only: a third item is promised, and cannot come."""
    language = JsonSchema(distinct(TANGLED, minItems=3), approximate=True, max_whitespace=0)
    assert language.is_viable('[{"b":1},')
    assert not language.is_viable('[{"b":1},{"a":""},')


def test_distinct_values_run_out() -> None:
    closed = {**CLOSED, "required": ["a"]}
    with pytest.raises(LanguageError, match="no instance"):
        JsonSchema(distinct(closed, minItems=3)).automaton()
    language = JsonSchema(distinct(closed), max_whitespace=0)
    assert language.is_viable('[{"a":true},{"a":f')
    assert not language.is_viable('[{"a":true},{"a":t')
    assert not language.is_viable('[{"a":true},{"a":false},')


def test_keywords_without_effect_are_noted() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    schema = {
        "$schema": draft,
        "title": "silent",
        "definitions": {"a": True},
        "dependentRequired": {"a": ["b"]},
        "then": {"required": ["a"]},
        "properties": {
            "a": {"$ref": "#/definitions/a", "minLength": 3, "description": "silent"},
            "b": {"type": "string", "minlength": 3, "x-order": 1},
            "c": {"type": "integer", "nullable": True},
        },
    }
    said = {note.place: note.message for note in JsonSchema(schema).notes}
    assert said == {
        "#/dependentRequired": "dependentRequired has no effect in draft 7",
        "#/then": "then has no effect without if",
        "#/properties/a/minLength": "draft 7 ignores keywords next to $ref, such as minLength",
        "#/properties/b/minlength": "minlength is not a keyword: did you mean minLength?",
        "#/properties/c/nullable": (
            "nullable is not a keyword of JSON Schema: add null to the types"
        ),
    }


def test_lengths_beyond_counting_are_an_error() -> None:
    with pytest.raises(LimitError):
        JsonSchema({"minLength": 1 << 40}).automaton()


def test_unreachable_subschemas_are_noted() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"anyOf": [{"type": "string"}, {"type": "integer"}], "minimum": 0, "maxLength": 3},
            "b": {"type": "string", "oneOf": [{"minimum": 1}, {"type": "integer"}]},
            "c": {"minimum": 3, "maximum": 2, "type": "integer"},
            "d": False,
            "e": {"type": "null"},
        },
        "propertyNames": {"pattern": "^[a-d]$"},
    }
    said = {note.place: note.message for note in JsonSchema(schema).notes}
    assert said == {
        "#/properties/b/oneOf/1": (
            "no instance satisfies this alternative together with its sibling keywords"
        ),
        "#/properties/c": "no instance has this property",
        "#/properties/e": "no instance has this property",
    }


def test_formats_by_name() -> None:
    schema = {"properties": {"a": {"format": "date"}, "b": {"format": "uuid"}}, "type": "object"}
    some = JsonSchema(schema, formats=["date"])
    assert not some.is_viable('{"a": "x')
    assert some.matches('{"b": "x"}')
    assert [note.place for note in some.notes] == ["#/properties/b/format"]
    assert JsonSchema(schema, formats=()) == JsonSchema(schema, formats=False)
    assert pickle.loads(pickle.dumps(some)) == some  # noqa: S301
    assert repr(some).endswith("formats=('date',))")
    with pytest.raises(ArgumentError, match='unknown format "color"'):
        JsonSchema(schema, formats=["color"])
    for wrong in ("date", 1, [1]):
        with pytest.raises(ArgumentError, match="formats must be"):
            JsonSchema(schema, formats=wrong)  # type: ignore[arg-type]


def test_open_objects_can_be_closed() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "object"}, "b": {"properties": {}}}}
    closed = JsonSchema(schema, additional_properties=False, max_whitespace=0)
    assert closed.matches('{"a":{"any":1},"b":{}}')
    assert not closed.is_viable('{"c')
    assert not closed.is_viable('{"b":{"')
    assert {note.place for note in closed.notes} == {"#", "#/properties/b"}
    assert JsonSchema(schema, max_whitespace=0).matches('{"c":1}')


def test_open_parts_are_as_deep_as_they_may() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "array"}}}
    for depth in range(4):
        language = JsonSchema(schema, max_depth=depth, max_whitespace=0)
        for nested in range(5):
            text = '{"a":[' + "[" * nested + "]" * nested + "]}"
            # The array that is asked for is one of them.
            assert language.matches(text) == (nested == 0 or nested < depth), text
            text = '{"b":' + '{"x":' * nested + "1" + "}" * nested + "}"
            assert language.matches(text) == (nested <= depth), text
    with pytest.raises(ArgumentError, match="max_depth"):
        JsonSchema(schema, max_depth=-1)


@pytest.mark.parametrize(
    ("schema", "options", "shortest"),
    [
        ({"type": "string", "pattern": "\\x01"}, {"escapes": "ascii"}, r'"\u0001"'),
        ({"type": "string", "pattern": "\U0001f600"}, {"escapes": "ascii"}, r'"\ud83d\ude00"'),
        ({"type": "string", "pattern": "^a.b$"}, {}, '"a b"'),
        (
            {"type": "object", "propertyNames": {"pattern": '"'}, "minProperties": 1},
            {},
            r'{"\"":0}',
        ),
        (
            {"type": "object", "required": ["é"], "propertyNames": {"enum": ["d\n", "é"]}},
            {"property_order": "any", "escapes": "ascii"},
            r'{"\u00e9":0}',
        ),
        (
            {"type": "object", "required": ["a"], "dependentRequired": {"a": ["b"], "b": ["cc"]}},
            {},
            '{"a":0,"b":0,"cc":0}',
        ),
    ],
)
def test_shortest_instances_are_shortest_as_spelled(
    schema: dict[str, object], options: dict[str, str], shortest: str
) -> None:
    assert JsonSchema(schema, **options).shortest() == shortest.encode()
