"""Invalid schemas are refused, ignored keywords are noted, and meta-schemas are known."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import jsonschema_rs
import pytest

from formalm import JsonSchema
from formalm.errors import LanguageError
from tests.support.processes import run_python

DRAFTS = {
    4: "http://json-schema.org/draft-04/schema",
    6: "http://json-schema.org/draft-06/schema",
    7: "http://json-schema.org/draft-07/schema",
    2019: "https://json-schema.org/draft/2019-09/schema",
    2020: "https://json-schema.org/draft/2020-12/schema",
}
INSTANCES = ['{"type": "string"}', '{"type": 7}', '{"items": {"minLength": -1}}', "[]", "true"]


def other_scheme(uri: str) -> str:
    scheme, rest = uri.split("://")
    return f"{'https' if scheme == 'http' else 'http'}://{rest}"


def outcome(schema: Any) -> JsonSchema | None:
    """The schema if it is read, whether it has instances or not."""
    language = JsonSchema(schema)
    try:
        language.is_viable("")
    except LanguageError as error:
        if "no instance" not in error.message:
            return None
    return language


def notes(schema: Any) -> dict[str, str]:
    return {note.place: note.message for note in JsonSchema(schema).notes}


@pytest.mark.parametrize("own", [None, *DRAFTS])
@pytest.mark.parametrize("other", DRAFTS)
def test_every_draft_may_refer_to_every_meta_schema(own: int | None, other: int) -> None:
    validator = jsonschema_rs.validator_for({"$schema": DRAFTS[other], "$ref": DRAFTS[other]})
    start = {} if own is None else {"$schema": DRAFTS[own]}
    for uri, mark in product((DRAFTS[other], other_scheme(DRAFTS[other])), ("", "#")):
        schema = JsonSchema({**start, "properties": {"a": {"$ref": uri + mark}}})
        for instance in INSTANCES:
            expected = validator.is_valid(json.loads(instance))
            assert schema.matches(f'{{"a":{instance}}}') == expected, (uri, instance)
        assert bool(schema.notes) == (uri != DRAFTS[other])


def test_parts_of_meta_schemas_may_be_referred_to() -> None:
    part = "http://json-schema.org/draft-07/schema#/definitions/simpleTypes"
    assert JsonSchema({"$ref": part}).matches('"array"')
    vocabulary = JsonSchema({"$ref": "https://json-schema.org/draft/2019-09/meta/core"})
    assert vocabulary.matches('{"$id": "a"}')
    assert not vocabulary.matches('{"$id": 1}')
    newest = JsonSchema({"$ref": "https://json-schema.org/schema"})
    assert newest.matches('{"prefixItems": [true]}')
    assert newest.notes
    for absent in ("http://json-schema.org/draft-05/schema", "http://json-schema.org/other"):
        with pytest.raises(LanguageError, match="not among the given resources"):
            JsonSchema({"$ref": absent}).is_viable("")


DESCRIBING = {
    **dict.fromkeys(["title", "description", "id"], "a"),
    "$comment": "a",
    "contentMediaType": "a",
    "contentEncoding": "a",
    "examples": [],
    "readOnly": True,
    "writeOnly": True,
    "deprecated": True,
    "contentSchema": {},
}
KEYWORDS = [
    *("type", "properties", "required", "items", "additionalProperties", "enum", "multipleOf"),
    *("maximum", "minimum", "maxLength", "minLength", "pattern", "format", "maxItems", "minItems"),
    *("uniqueItems", "maxContains", "minContains", "maxProperties", "minProperties", "contains"),
    *("dependentRequired", "dependentSchemas", "patternProperties", "propertyNames", "if", "then"),
    *("else", "allOf", "anyOf", "oneOf", "not", "additionalItems", "prefixItems", "$defs"),
    *("unevaluatedProperties", "unevaluatedItems", "definitions", "$vocabulary", "$anchor", "$ref"),
    *("$recursiveRef", "$dynamicRef", "$dynamicAnchor", "exclusiveMaximum", "exclusiveMinimum"),
]
WRONG = [None, True, 1, -1, 1.5, "1", ["a", 1], {"a": 1}, {"a": {"type": 1}}]
#: Values of other drafts, which are read with a note.
ELSEWHERE = {
    "exclusiveMaximum",
    "exclusiveMinimum",
    "$recursiveRef",
}


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("keyword", KEYWORDS)
def test_a_keyword_value_of_a_wrong_type_is_refused_even_without_effect(
    draft: int, keyword: str
) -> None:
    for value, place in product(WRONG, ("root", "below", "unused")):
        inner = {keyword: value}
        parts = {"root": inner, "below": {"properties": {"p": inner}}}
        parts["unused"] = {"definitions": {"p": inner}}
        schema = {"$schema": DRAFTS[draft], **parts[place]}
        if jsonschema_rs.meta.is_valid(schema):
            continue
        if draft == 4 and (value is True or value == {"a": True}):
            continue  # Schemas may be true or false in all drafts.
        if keyword in ELSEWHERE and (isinstance(value, (bool, int, float)) or draft == 2020):
            continue
        if keyword.endswith("nchor") and isinstance(value, str):
            continue  # The letters of a name change no meaning.
        assert outcome(schema) is None, schema


def test_counts_need_no_array_to_be_refused() -> None:
    with pytest.raises(
        LanguageError, match=r"minContains must be a non-negative integer.*#/minContains"
    ):
        JsonSchema({"minContains": "1"}).is_viable("")
    with pytest.raises(LanguageError, match=r"then must be a schema.*\(at #/anyOf/0/then\)"):
        JsonSchema({"anyOf": [{"then": 1}]}).is_viable("")
    with pytest.raises(LanguageError, match=r"\(at #/\$defs/a/\$defs/b/minLength\)"):
        JsonSchema({"$defs": {"a": {"$defs": {"b": {"minLength": "1"}}}}}).is_viable("")
    # A reference of an older draft hides what is beside it.
    seven = {"$schema": DRAFTS[7], "$ref": "#/definitions/a", "definitions": {"a": {}}}
    assert JsonSchema({**seven, "minLength": "1"}).matches("1")


@pytest.mark.parametrize("draft", DRAFTS)
@pytest.mark.parametrize("keyword", DESCRIBING)
def test_annotations_are_ignored_with_a_note(draft: int, keyword: str) -> None:
    for value in (None, 1, [1], {"type": "integer"}, "a", True):
        if type(value) is type(DESCRIBING[keyword]):
            continue
        if keyword == "contentSchema" and isinstance(value, bool):
            continue
        schema = {"$schema": DRAFTS[draft], "items": {keyword: value, "type": "integer"}}
        language = JsonSchema(schema)
        assert language.matches("[1]")
        assert not language.matches('["a"]')
        assert [note.place for note in language.notes] == [f"#/items/{keyword}"]
        assert "is ignored" in language.notes[0].message
    language = JsonSchema({"$schema": DRAFTS[draft], "items": {keyword: {"type": "integer"}}})
    if keyword != "contentSchema":
        assert "listed under properties" in language.notes[0].message
    assert not JsonSchema({"$schema": DRAFTS[draft], keyword: DESCRIBING[keyword]}).notes


PLACE = {"type": "object", "properties": {"place": {"type": "string"}}}


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"name": "a", "schema": PLACE}, "#/schema"),
        ({"name": "a", "strict": True, "schema": {}}, "#/schema"),
        ({"name": "a", "description": "b", "parameters": PLACE}, "#/parameters"),
        ({"name": "a", "inputSchema": PLACE}, "#/inputSchema"),
        ({"name": "a", "input_schema": PLACE}, "#/input_schema"),
        ({"function": {"name": "a", "parameters": PLACE}}, "#/function/parameters"),
        ({"tools": [{"function": {"parameters": PLACE}}]}, "#/tools/0/function/parameters"),
        ({"response_format": {"json_schema": {"schema": PLACE}}}, "json_schema/schema"),
        ({"whatever": {"anyOf": [{"type": "null"}]}}, "#/whatever"),
    ],
)
def test_objects_that_wrap_a_schema_are_noted(schema: Any, place: str) -> None:
    found = JsonSchema(schema).notes
    assert found
    assert place in found[0].message + found[0].place


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        (
            {"type": "json_schema", "json_schema": {"name": "a", "schema": PLACE}},
            "#/json_schema/schema",
        ),
        ({"type": "function", "function": {"parameters": PLACE}}, "#/function/parameters"),
        ({"type": "custom", "format": "a", "x": [PLACE]}, "#/x/0"),
    ],
)
def test_typed_objects_that_wrap_a_schema_are_refused_with_their_location(
    schema: Any, place: str
) -> None:
    with pytest.raises(LanguageError, match="unknown type") as caught:
        JsonSchema(schema).is_viable("")
    assert place in str(caught.value.hint)


@pytest.mark.parametrize(
    "keyword",
    [
        *("x-guidance", "propertyDependencies", "discriminator", "nullable", "divisibleBy"),
        *("x-kubernetes-validations", "optionalProperties", "elements", "formatMinimum"),
        *("regexp", "instanceof", "extends", "disallow", "uniqueItemProperties"),
    ],
)
def test_keywords_of_other_schema_languages_are_noted(keyword: str) -> None:
    for value in ({"a": {"b": True}}, ["a"], "a", True):
        assert list(notes({"items": {keyword: value}})) == [f"#/items/{keyword}"]


def test_annotations_are_silent() -> None:
    silent = {
        "title": "a",
        "x-order": 1,
        "name": "a",
        "url": "b",
        "enumNames": ["a"],
        "default": {"type": 1},
        "examples": [{"type": "string"}],
        "x-tags": ["a"],
        "markdownDescription": "c",
        "version": 2,
        "defaultSnippets": [{"label": "a", "body": {"b": 1}}],
        "xml": {"name": "a"},
    }
    assert not notes(silent)
    # References lead into parts that have no keyword, as in OpenAPI.
    parts = {"schemas": {"A": PLACE}}
    referred = {"$ref": "#/components/schemas/A", "components": parts}
    assert not notes(referred)
    assert list(notes({"components": parts})) == ["#/components"]


SHOWN = """
import sys
from formalm import JsonSchema
from formalm.errors import FormalmError
def show(schema, **options):
    try:
        language = JsonSchema(schema, **options)
        print(language.shortest(), language.notes)
    except FormalmError as error:
        print(str(error))
def shapes(references):
    yield {"properties": {f"p{i}": {"$ref": one} for i, one in enumerate(references)}}
    yield {"anyOf": [{"$ref": one} for one in references]}
    yield {"$defs": {f"p{i}": {"$ref": one} for i, one in enumerate(references)}}
    yield {"$defs": {f"p{i}": {"$id": one, "not": {}} for i, one in enumerate(references)}}
numbers = range(20)
for form in ("http://x.test/{}", "a{}.json", "urn:a:{}", "#/a/{}", "#a{}", "http://[{}", "h t{}"):
    references = [form.format(i) for i in numbers]
    for schema in shapes(references):
        show(schema)
    resources = {f"http://r.test/{i}": {"$ref": one} for i, one in enumerate(references)}
    show({"$ref": "http://r.test/3"}, resources=resources)
    show({"anyOf": [{"$ref": uri} for uri in resources]}, resources=resources)
    show({"anyOf": [{"$ref": f"http://r.test/{i}"} for i in numbers]})
same = {f"http://r.test/{i}": {"$id": "http://d.test/", "const": i} for i in numbers}
show({"$ref": "http://d.test/"}, resources=same)
"""


def test_messages_are_the_same_in_every_process() -> None:
    first, *others = [run_python(SHOWN).check().stdout for _ in range(4)]
    assert [one for one in others if one != first] == []
    assert "http://x.test/0 is not among the given resources (at #/properties/p0/$ref)" in first


def test_two_resources_of_one_identifier_are_refused() -> None:
    same = {f"http://r.test/{i}": {"$id": "http://d.test/", "const": i} for i in range(2)}
    with pytest.raises(LanguageError, match=r"two resources have the identifier http://d\.test/"):
        JsonSchema({"$ref": "http://d.test/"}, resources=same).is_viable("")
    alike = {uri: {"$id": "http://d.test/", "const": 1} for uri in same}
    assert JsonSchema({"$ref": "http://d.test/"}, resources=alike).matches("1")
