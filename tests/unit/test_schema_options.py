"""Options of schemas: checked whenever they are others than before, kept as they were written."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from formalm import ArgumentError, Constraint, JsonSchema, LanguageError, StringLiteral, Vocabulary

TEXT = '{"type": "string", "format": "date"}'


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ({"max_whitespace": 1}, {"max_whitespace": True}),
        ({"max_whitespace": 0}, {"max_whitespace": False}),
        ({"indent": 1}, {"indent": True}),
        ({"max_depth": 1}, {"max_depth": True}),
        ({"max_depth": 2}, {"max_depth": 2.0}),
        ({"approximate": True}, {"approximate": 1}),
        ({"additional_properties": False}, {"additional_properties": 0}),
        ({"formats": True}, {"formats": 1}),
        ({"formats": ["date"]}, {"formats": ["day"]}),
        ({"property_order": "any"}, {"property_order": b"any"}),
        ({"separators": (",", ":")}, {"separators": [",", 1]}),
    ],
)
def test_values_equal_to_accepted_options_are_type_checked(
    good: dict[str, Any], bad: dict[str, Any]
) -> None:
    for _ in range(2):
        JsonSchema(TEXT, **good)
        with pytest.raises(ArgumentError):
            JsonSchema(TEXT, **bad)


def test_options_are_kept_with_lists_and_without() -> None:
    names = ["time", "date", "date"]
    schema = JsonSchema(TEXT, formats=names, separators=[", ", ": "])  # type: ignore[arg-type]
    same = JsonSchema(TEXT, formats=("date", "time"), separators=(", ", ": "))
    names.append("uuid")
    assert schema == same
    assert hash(schema) == hash(same)
    assert schema.options["formats"] == ("date", "time")
    assert pickle.loads(pickle.dumps(schema)) == copy.deepcopy(schema) == schema  # noqa: S301
    assert schema != JsonSchema(TEXT, formats=("date",), separators=(", ", ": "))


def test_resources_are_kept() -> None:
    schema = JsonSchema({"$ref": "https://a.example/b"}, resources={"https://a.example/b": True})
    again = pickle.loads(pickle.dumps(schema))  # noqa: S301
    assert again.resources == {"https://a.example/b": "true"}
    assert again == schema
    assert again.matches("7")


def test_mistakes_are_reported_when_the_automaton_is_built() -> None:
    for text in ('{"$ref": "#/nowhere"}', '{"type": "text"}', '{"required": ["a"], "not": {}}'):
        schema = JsonSchema(text)
        with pytest.raises(LanguageError):
            schema.automaton()
    with pytest.raises(LanguageError):
        JsonSchema('{"type": "null",}')


def test_a_matcher_has_no_other_attributes() -> None:
    matcher = Constraint(StringLiteral("ab"), Vocabulary.from_tokens([b"a", b"b"])).matcher()
    matcher.advance(0)
    assert matcher.allows(1)
    assert not matcher.allows(0)
    with pytest.raises(AttributeError, match="'Matcher' object has no attribute 'nothing'"):
        matcher.nothing  # noqa: B018
