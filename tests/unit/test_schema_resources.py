"""References to resources: which draft they have, and what becomes of those that lead nowhere."""

import pytest

from formalm import ArgumentError, JsonSchema, LanguageError

DRAFT7 = "http://json-schema.org/draft-07/schema#"
DRAFT2019 = "https://json-schema.org/draft/2019-09/schema"


def test_resources_without_a_draft_have_that_of_the_schema() -> None:
    named = {"definitions": {"n": {"$ref": "#here"}, "a": {"$id": "#here", "type": "integer"}}}
    schema = {"$schema": DRAFT7, "$ref": "http://a/b.json#/definitions/n"}
    assert JsonSchema(schema, resources={"http://a/b.json": named}).matches("1")
    # From 2019-09 on, a fragment is no identifier.
    with pytest.raises(LanguageError, match="here"):
        JsonSchema({**schema, "$schema": DRAFT2019}, resources={"http://a/b.json": named}).matches(
            "1"
        )


def test_a_missing_resource_is_refused_where_it_is_referenced() -> None:
    broken = {"$ref": "http://a/none.json#/x"}
    resources = {"http://a/broken.json": broken, "http://a/whole.json": {"const": 1}}
    assert JsonSchema({"$ref": "http://a/whole.json"}, resources=resources).matches("1")
    with pytest.raises(LanguageError, match=r"none\.json is not among .*broken\.json"):
        JsonSchema({"$ref": "http://a/broken.json"}, resources=resources).matches("1")
    unused = {"type": "null", "$defs": {"a/b": broken}}
    with pytest.raises(LanguageError, match=r"none\.json is not among .*#/\$defs/a~1b/\$ref"):
        JsonSchema(unused, resources=resources).matches("null")


@pytest.mark.parametrize("resources", [5, [], "https://a.example", [("https://a.example", {})]])
def test_resources_are_a_dictionary(resources: object) -> None:
    with pytest.raises(ArgumentError, match="resources must map URIs to schemas"):
        JsonSchema({}, resources=resources)  # type: ignore[arg-type]


def test_resource_uris_must_be_strings() -> None:
    with pytest.raises(ArgumentError, match="keys of resources must be URIs, got 5"):
        JsonSchema({}, resources={5: {}})  # type: ignore[dict-item]
