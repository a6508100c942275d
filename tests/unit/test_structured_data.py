"""Schemas, types, structures and tools as data: there and back, by JSON and TOML, and mistakes."""

import json
from decimal import Decimal

import pytest

from formalm import (
    ArgumentError,
    CallFormat,
    JsonSchema,
    Language,
    LanguageError,
    PythonType,
    Query,
    Regex,
    Section,
    StringLiteral,
    Structure,
    ToolCalls,
    TypeScript,
)
from formalm.languages import from_data, to_data

POINT = {"type": "object", "properties": {"x": {"multipleOf": Decimal("0.10")}}}
FORMAT = CallFormat("{name}({arguments})", "<call>", "</call>", separator=", ")
LANGUAGES = [
    JsonSchema(POINT),
    JsonSchema(
        True,
        property_order="any",
        max_whitespace=0,
        escapes="ascii",
        formats=False,
        approximate=True,
    ),
    JsonSchema({"$ref": "https://a.b/c"}, resources={"https://a.b/c": {"type": "null"}}),
    TypeScript(
        "interface A { a?: B }\ninterface B { b: A[] }", root="B", closed=False, max_whitespace=2
    ),
    JsonSchema(True, indent=2, separators=(", ", ":"), number_format="any"),
    JsonSchema(True, indent="\t"),
    JsonSchema(True, formats=["uuid", "date"], additional_properties=False, max_depth=3),
    TypeScript("'a' | 'b'"),
    Structure([Section("<a>", Regex("[0-9]+"), "</a>"), Section("{", JsonSchema(POINT))]),
    Structure(
        [Section("<a>", StringLiteral("x"))],
        minimum=1,
        maximum=3,
        free=False,
        reasoning=("<think>", "</think>"),
        opened=True,
    ),
    ToolCalls({"find": JsonSchema(POINT), "now": StringLiteral("{}")}, FORMAT),
    ToolCalls({"find": JsonSchema(POINT), "now": StringLiteral("{}")}, FORMAT, required="now"),
    ToolCalls({"f": TypeScript("{}")}, CallFormat("<f={name}>{arguments}"), minimum=1, maximum=2),
    StringLiteral("a") | JsonSchema(POINT) + Regex("b*"),
]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: repr(one)[:30])
def test_data_goes_there_and_back(language: Language) -> None:
    data = to_data(language)
    assert from_data(json.loads(json.dumps(data))) == language
    assert to_data(from_data(data)) == data
    query = Query(language)
    assert Query.from_toml(query.to_toml()) == query


def test_a_schema_may_be_a_table() -> None:
    written = {"kind": "json_schema", "schema": {"enum": ["a", "b"]}, "max_whitespace": 0}
    assert from_data(written) == JsonSchema({"enum": ["a", "b"]}, max_whitespace=0)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ({"kind": "json_schema"}, "must have the key 'schema'"),
        ({"kind": "json_schema", "schema": 1}, "language.schema"),
        ({"kind": "json_schema", "schema": {}, "blank": 1}, "'blank'"),
        ({"kind": "json_schema", "schema": {}, "max_whitespace": True}, "language.max_whitespace"),
        (
            {"kind": "json_schema", "schema": {}, "max_whitespace": -1},
            "max_whitespace must be an integer",
        ),
        ({"kind": "json_schema", "schema": {}, "property_order": "best"}, "property_order must be"),
        ({"kind": "json_schema", "schema": {}, "resources": [{"uri": "a"}]}, "resources"),
        ({"kind": "typescript", "text": "1", "closed": "no"}, "language.closed"),
        ({"kind": "typescript", "text": "1", "resources": []}, "'resources'"),
        ({"kind": "structure", "sections": [{"trigger": "a"}]}, "sections[0]"),
        ({"kind": "structure", "sections": []}, "at least one Section"),
        ({"kind": "tool_calls", "tools": []}, "must have the key 'format'"),
        ({"kind": "tool_calls", "tools": [], "format": {"call": "x"}}, "call must have"),
    ],
)
def test_mistakes_are_named(data: object, told: str) -> None:
    with pytest.raises((ArgumentError, LanguageError)) as caught:
        from_data(data)
    assert told in str(caught.value)


def test_tools_have_names_of_their_own() -> None:
    data = to_data(next(one for one in LANGUAGES if isinstance(one, ToolCalls)))
    data["tools"][1]["name"] = "find"
    with pytest.raises(ArgumentError, match="other tools"):
        from_data(data)


def test_code_has_no_form() -> None:
    pytest.importorskip("pydantic")
    with pytest.raises(ArgumentError, match="must have a form as data"):
        to_data(PythonType(int))
    described = JsonSchema(PythonType(int).schema)
    assert from_data(to_data(described)) == described
