"""JSON Schemas as languages."""

import copy
import json
import pickle
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest

from formalm import ArgumentError, Constraint, JsonSchema, LanguageError, TokenError, Vocabulary

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
    assert JsonSchema(PERSON, order="any").matches('{"age": 3, "name": "Ada"}')
    assert not person.is_viable('{"name": "Ada", "age": -1')
    assert person.shortest() == b'{"name":""}'


def test_policies() -> None:
    assert not JsonSchema(PERSON, blanks=0).is_viable("{ ")
    assert JsonSchema(PERSON, blanks=3).matches('{   "name":   ""   }')
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
    person = JsonSchema(PERSON, order="any", resources={"http://example.com/a": True})
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
    ],
)
def test_refusals_name_the_place(schema: dict[str, object], place: str) -> None:
    with pytest.raises(LanguageError, match=place.replace("$", r"\$")):
        JsonSchema(schema).automaton()


def test_what_is_no_schema() -> None:
    with pytest.raises(LanguageError, match="no JSON"):
        JsonSchema("{")
    for wrong in (3, None, {1: 2}, {"const": float("nan")}, {"const": object()}):
        with pytest.raises(ArgumentError):
            JsonSchema(wrong)  # type: ignore[arg-type]
    for options in ({"order": "no"}, {"blanks": -1}, {"escapes": "no"}, {"formats": 1}):
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
        language = JsonSchema(schema, order=order)
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
                language = JsonSchema(schema, order=order)
                least = language.to_automaton().shortest()
                data = least.encode() if isinstance(least, str) else least
                assert language.shortest() == data
