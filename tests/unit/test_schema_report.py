"""The report about every path of a schema."""

import json

import pytest

from formalm import Constraint, JsonSchema, LanguageError, PythonType, StringLiteral, Vocabulary
from formalm.languages.json_schema.schema_check import check_schema

VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(128)])
FLAG = {"properties": {"on": {"type": "boolean"}}, "type": "object", "additionalProperties": False}
PAIR = {"prefixItems": [FLAG, FLAG], "contains": {"const": {}}, "uniqueItems": True}
FLAGS = {"anyOf": [{"type": "null"}, {"type": "array", **PAIR}]}


def subschemas(schema: object, place: str) -> set[str]:
    """Places of subschemas, by a reader of the keywords used here."""
    found = {place}
    if isinstance(schema, dict):
        for key, value in schema.items():
            here = f"{place}/{key}"
            if key in ("properties", "$defs"):
                for name, inner in value.items():
                    found |= subschemas(inner, f"{here}/{name}")
            elif key in ("allOf", "anyOf"):
                for number, inner in enumerate(value):
                    found |= subschemas(inner, f"{here}/{number}")
            elif key in ("items", "not", "additionalProperties"):
                found |= subschemas(value, here)
    return found


def test_every_path_is_reported() -> None:
    schema = {
        "properties": {"a": {"$ref": "#/$defs/one"}, "b": {"not": {"type": "null"}}},
        "additionalProperties": {"items": {}},
        "anyOf": [True, {"minimum": 1}],
        "$defs": {"one": {"type": "string"}},
    }
    report = Constraint(JsonSchema(schema), VOCABULARY).report
    assert {path.place for path in report.paths} == subschemas(schema, "#")
    assert all(path.status == path.effect == "exact" for path in report.paths)
    assert all(path.reasons == () for path in report.paths)
    assert str(report) == f"exact\n{len(report.paths)} paths of schemas are exact"
    assert "paths" not in repr(report)


def test_unreachable_paths_are_not_reported() -> None:
    schema = {"$defs": {"one": {"type": "string"}, "two": {}}, "items": {"$ref": "#/$defs/one"}}
    places = [path.place for path in JsonSchema(schema).paths]
    assert places == ["#", "#/$defs/one", "#/items"]


def test_inexact_keywords_are_reported_with_a_reason() -> None:
    language = JsonSchema(FLAGS, approximate=True)
    inexact = [path for path in language.paths if path.status != "exact"]
    assert [(path.place, path.status, path.effect) for path in inexact] == [
        ("#/anyOf/1", "approximate", "dead ends")
    ]
    assert inexact[0].reasons == tuple(
        note.message for note in language.notes if note.effect == "dead ends"
    )
    report = Constraint(StringLiteral("x") + language, VOCABULARY).report
    assert report.paths == language.paths
    assert "1 path of a schema is approximate" in str(report)


def test_checks_report_refused_keywords() -> None:
    found = check_schema(JsonSchema(FLAGS))
    assert [path.place for path in found.paths if path.status == "refused"] == ["#/anyOf/1"]
    taken = check_schema(JsonSchema(FLAGS, approximate=True))
    assert not any(path.status == "refused" for path in taken.paths)
    assert len(taken.paths) == len(found.paths) == 10


def test_validators_written_in_python_are_reported_at_the_root() -> None:
    from typing import Annotated

    from pydantic import AfterValidator

    language = PythonType(Annotated[int, AfterValidator(lambda value: value)])
    effects = {path.place: path.effect for path in language.paths}
    assert effects["#"] == "more"


def test_large_schemas_are_counted_in_text() -> None:
    schema = {"properties": {f"name{number}": {"type": "null"} for number in range(3000)}}
    report = Constraint(JsonSchema(json.dumps(schema)), VOCABULARY).report
    assert len(report.paths) == 3001
    assert str(report).count("\n") == 1


def test_alternatives_with_a_member_without_end_are_exact() -> None:
    """Which alternative an item is of is told by one member, and another one has no end."""

    def item(flag: bool) -> dict[str, object]:
        return {
            "type": "object",
            "properties": {"id": {"type": "string"}, "flag": {"const": flag}},
            "required": ["id", "flag"],
            "additionalProperties": False,
        }

    items = {"oneOf": [item(True), item(False)]}
    language = JsonSchema({"type": "array", "uniqueItems": True, "items": items}, max_whitespace=0)
    first, second = '{"id":"a","flag":true}', '{"id":"a","flag":false}'
    assert language.is_viable(f'[{first},{{"id":"a"')
    assert not language.is_viable(f"[{first},{first[:-1]}")
    assert not language.is_viable(f'[{first},{second},{{"id":"a"')
    assert language.shortest(f'[{first},{second},{{"id":"') is not None


@pytest.mark.parametrize(
    ("schema", "hint"),
    [
        (
            {"type": "string", "minLength": 2, "maxLength": 1, "title": "t", "pattern": "a"},
            "all of #/type, #/minLength and #/maxLength",
        ),
        (
            {"properties": {"a": False, "b": {"minimum": 1}}, "required": ["a"], "type": "object"},
            "all of #/properties/a, #/required and #/type",
        ),
        (
            {"allOf": [{"$ref": "#/$defs/a"}, {"type": "null"}], "$defs": {"a": {"const": 1}}},
            "all of #/allOf/0/$ref and #/allOf/1/type",
        ),
        ({"not": {"maximum": 1, "title": "t"}, "const": 1}, "all of #/not and #/const"),
        ({"not": {}, "type": "string"}, "#/not"),
        (False, "#"),
    ],
)
def test_contradictory_keywords_are_named(schema: dict[str, object] | bool, hint: str) -> None:
    with pytest.raises(LanguageError, match="no instance") as caught:
        JsonSchema(schema).automaton()
    assert caught.value.hint == f"no value satisfies {hint}"


@pytest.mark.parametrize("depth", [0, 150], ids=["flat", "deep"])
def test_repeated_names_are_noted_and_the_last_value_counts(depth: int) -> None:
    inner = '{"type": "string", "enum": ["a", {"k": 1, "k": 2}], "type": "object"}'
    text = '{"items": ' * depth + inner + "}" * depth
    place = "#" + "/items" * depth
    language = JsonSchema(text)
    notes = {
        note.place: note.message for note in language.notes if "more than once" in note.message
    }
    assert set(notes) == {f"{place}/type", f"{place}/enum/1/k"}
    assert all("the last value counts" in message for message in notes.values())
    if not depth:
        assert language.matches('{"k": 2}')
        assert not language.matches('"a"')
