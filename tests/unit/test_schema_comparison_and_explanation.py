"""Schemas compared, asked however instances are written, and asked why."""

import json
from itertools import product

import jsonschema
import pytest

from formalm import (
    ArgumentError,
    Constraint,
    JsonSchema,
    LanguageError,
    Regex,
    TypeScript,
    Vocabulary,
)

VALUES = [
    *(None, True, False, 0, 1, 2, -1, 1.5, 10**20, "", "a", "ab", "b", [], [0], ["a", 0], [0, 0]),
    *({}, {"a": 0}, {"a": "a"}, {"b": 1}, {"a": 1, "b": "x"}, [[], {}], {"a": {"a": []}}),
]
SCHEMAS = [
    True,
    False,
    {"type": "integer"},
    {"type": "number", "minimum": 1},
    {"type": "integer", "exclusiveMinimum": 0},
    {"type": ["integer", "string"], "maxLength": 1},
    {"enum": [1, "a", None]},
    {"enum": [1, "a"]},
    {"not": {"type": "object"}},
    {"type": "object", "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    {"type": "object", "minProperties": 1, "propertyNames": {"const": "a"}},
    {"type": "array", "items": {"type": "integer"}},
    {"type": "array", "contains": {"type": "integer"}},
    {"oneOf": [{"minimum": 1}, {"type": "integer"}]},
    {"if": {"type": "string"}, "then": {"pattern": "^a"}, "else": {"type": "array"}},
]


@pytest.mark.parametrize(("left", "right"), list(product(range(len(SCHEMAS)), repeat=2)))
def test_comparisons_are_those_of_instances(left: int, right: int) -> None:
    """A relation that holds is refuted by no value, a witness refutes one by another's verdict."""
    sides = [jsonschema.Draft202012Validator(SCHEMAS[one]) for one in (left, right)]
    found = JsonSchema(SCHEMAS[left]).compare(JsonSchema(SCHEMAS[right]), "inclusion")
    assert found.holds is not None
    if found.holds:
        assert not any(sides[0].is_valid(one) and not sides[1].is_valid(one) for one in VALUES)
    else:
        witness = json.loads(found.witness)
        assert sides[0].is_valid(witness)
        assert not sides[1].is_valid(witness)
    both = JsonSchema(SCHEMAS[left]).compare(JsonSchema(SCHEMAS[right]))
    back = JsonSchema(SCHEMAS[right]).compare(JsonSchema(SCHEMAS[left]), "inclusion")
    assert both.holds == (found.holds and back.holds)


def test_equal_identifiers_are_resolved_in_their_own_schema() -> None:
    def version(least: int) -> JsonSchema:
        number = {"type": "integer", "minimum": least}
        whole = {"properties": {"a": {"$ref": "https://a.b/c#/$defs/n"}}, "$defs": {"n": number}}
        return JsonSchema({"$id": "https://a.b/c", "type": "object", **whole})

    assert version(1).compare(version(0), "inclusion").holds
    assert version(0).compare(version(1)).witness == '{"a":0}'


def test_drafts_and_ways_of_writing_do_not_matter() -> None:
    fourth = {"$schema": "http://json-schema.org/draft-04/schema#"}
    fourth |= {"minimum": 3, "exclusiveMinimum": True}
    newest = JsonSchema(
        {"exclusiveMinimum": 3}, property_order="any", max_whitespace=0, escapes="ascii"
    )
    assert JsonSchema(fourth).compare(newest).holds
    assert TypeScript("{ a: string }").compare(TypeScript("interface A { a: string }")).holds
    names = JsonSchema({"type": "object", "properties": {"b": {}, "a": {}}})
    assert names.compare(JsonSchema({"properties": {"a": {}, "b": {}}, "type": "object"})).holds


def test_resources_are_each_schemas_own() -> None:
    def referring(to: object) -> JsonSchema:
        return JsonSchema({"$ref": "https://a.b/part"}, resources={"https://a.b/part": to})

    assert referring({"type": "integer"}).compare(referring({"type": "number"}), "inclusion").holds
    assert referring({"type": "string"}).compare(referring({"type": "null"})).holds is False


def test_unknown_identifiers_are_reported() -> None:
    few = {"type": "array", "items": {"type": "array", "items": {"enum": [1]}, "maxItems": 1}}
    unsure = JsonSchema({**few, "uniqueItems": True, "minItems": 9}, approximate=True)
    found = unsure.compare(JsonSchema({**few, "minItems": 9}), "inclusion")
    assert found.holds is not False
    assert (found.holds is None) == (found.reason is not None)
    with pytest.raises(LanguageError, match="at #"):
        JsonSchema({"type": "thing"}).compare(JsonSchema(True))
    with pytest.raises(ArgumentError):
        JsonSchema(True).compare(Regex("a"))
    with pytest.raises(ArgumentError, match="relation"):
        JsonSchema(True).compare(JsonSchema(True), "subset")


@pytest.mark.parametrize("indent", [None, 1, 4, "\t"])
def test_instances_are_accepted_however_they_are_written(indent: object) -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {}},
        "maxProperties": 2,
    }
    values = [
        {"b": [1, {"x": ' "  \\ \n'}], "a": "é\n  😀"},
        {"a": 1},
        {"b": 0, "c": 0, "d": 0},
        [],
    ]
    for value, ascii in product(values, (True, False)):
        text = json.dumps(value, indent=indent, ensure_ascii=ascii)
        wanted = jsonschema.Draft202012Validator(schema).is_valid(value)
        assert JsonSchema(schema).accepts(text) == wanted
        assert JsonSchema(schema).accepts(f" \n{text}\r\n") == wanted
    for wrong in ("", "{", "1 2", '{"a" "b"}', "{} {}", '{"a":"', "\ud800", '{"b":0 1}'):
        assert not JsonSchema(schema).accepts(wrong)
    assert not JsonSchema(False).accepts("1")


ADULT = {
    "type": "object",
    "properties": {
        "age": {"type": "integer", "maximum": 150},
        "kind/~": {"enum": ["a", "b"]},
        "rest": {"not": {"type": "string"}},
        "never": False,
        "flag": {"const": False},
    },
    "required": ["age"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("beginning", "following", "places"),
    [
        ('{"age":', '"', ("#/properties/age/type",)),
        ('{"age":15', "1", ("#/properties/age/maximum",)),
        ("{", "}", ("#/required",)),
        ('{"b', '"', ("#/required", "#/additionalProperties")),
        ('{"age":1,"kind/~":"', "c", ("#/properties/kind~1~0/enum",)),
        ('{"age":1,"rest":', '"', ("#/properties/rest/not",)),
        ('{"age":1,"never"', ":", ("#/properties/never",)),
        ('{"age":1,"n', "e", ("#/properties/never",)),
        ('{"age":1,"flag":', "t", ("#/properties/flag/const",)),
        ('{"k', "i", ("property_order",)),
        ('{"age":1, ', " ", ("max_whitespace",)),
        ('{"age":1', "x", ()),
        ('{"age":1', "2", ()),
    ],
)
def test_keywords_are_named_that_forbid_a_byte(
    beginning: str, following: str, places: tuple[str, ...]
) -> None:
    found = JsonSchema(ADULT).places_against(beginning.encode(), following.encode())
    assert found == places


def test_a_matcher_explains_by_keywords() -> None:
    vocabulary = Vocabulary.from_tokens(
        [b'{"age":', b"1", b"x", b"}", b'"old"', None], end_token_ids=[5]
    )
    matcher = Constraint(JsonSchema(ADULT), vocabulary).matcher()
    matcher.advance(0)
    told = matcher.explain(4)
    assert told.places == ("#/properties/age/type",)
    assert told.text.endswith("; forbidden by #/properties/age/type")
    assert matcher.explain(1).places == ()
    assert matcher.explain(5).places == ()
    ended = Constraint(JsonSchema({"type": "integer", "minimum": 10}), vocabulary).matcher()
    ended.advance(1)
    assert ended.explain(5).places == ("#/minimum",)
    assert Constraint(Regex("a"), vocabulary).matcher().explain(1).places == ()
