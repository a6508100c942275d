"""Keywords that identify a schema, its draft and its parts are noted or refused, never ignored."""

import pytest

from formalm import JsonSchema, LanguageError, PythonType

DRAFT4 = "http://json-schema.org/draft-04/schema#"
DRAFT7 = "http://json-schema.org/draft-07/schema#"
DRAFT2019 = "https://json-schema.org/draft/2019-09/schema"


def told(schema: dict[str, object], **options: object) -> list[tuple[str, str]]:
    notes = JsonSchema(schema, **options).notes  # type: ignore[arg-type]
    return [(note.place, note.message) for note in notes]


@pytest.mark.parametrize("uri", ["https://a.example/meta", "other.json", ""])
def test_an_unknown_draft_is_reported(uri: str) -> None:
    message = f'"{uri}" names an unknown draft and is read as draft 2020-12'
    assert told({"$schema": uri, "type": "null"}) == [("#/$schema", message)]
    inner = {"$schema": DRAFT7, "properties": {"a": {"$schema": uri}}}
    message = f'"{uri}" names an unknown draft and is read as draft 7'
    assert told(inner) == [("#/properties/a/$schema", message)]


def test_a_metaschema_that_was_passed_is_known() -> None:
    uri = "https://a.example/meta"
    core = {"https://json-schema.org/draft/2020-12/vocab/core": True}
    meta = {"$id": uri, "$schema": "https://json-schema.org/draft/2020-12/schema"}
    resources = {uri: {**meta, "$vocabulary": core}}
    # The vocabulary of assertions is none of its own.
    schema = JsonSchema({"$schema": uri, "minimum": 3}, resources=resources)
    assert schema.matches("1")
    assert schema.notes == ()


@pytest.mark.parametrize(
    ("uri", "draft"),
    [
        ("http://json-schema.org/draft-03/schema#", "4"),
        ("http://json-schema.org/draft-04/hyper-schema#", "4"),
        ("http://json-schema.org/draft-06/hyper-schema", "6"),
        ("https://json-schema.org/draft-07", "7"),
        ("http://json-schema.org/draft-07/schema#/", "7"),
        ("https://json-schema.org/draft/2019-09/hyper-schema", "2019-09"),
        ("https://json-schema.org/draft/2020-12", "2020-12"),
    ],
)
def test_similar_uris_name_a_draft(uri: str, draft: str) -> None:
    schema = {"$schema": uri, "type": "integer"}
    assert told(schema) == [("#/$schema", f'"{uri}" is read as draft {draft}')]
    assert JsonSchema(schema).matches("1.0") == (draft != "4")  # integers are so written there


def test_drafts_that_are_known_need_no_word() -> None:
    for uri in (DRAFT4, DRAFT7, DRAFT2019, DRAFT7.rstrip("#"), "http://json-schema.org/schema#"):
        assert told({"$schema": uri}) == []


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({"$schema": 5}, "#/$schema"),
        ({"$id": 5}, "#/$id"),
        ({"$anchor": None}, "#/$anchor"),
        ({"$dynamicAnchor": True}, "#/$dynamicAnchor"),
        ({"$defs": []}, "#/$defs"),
        ({"definitions": 3}, "#/definitions"),
        ({"items": {"$vocabulary": "core"}}, "#/items/$vocabulary"),
        ({"$schema": DRAFT2019, "$recursiveAnchor": "#"}, "#/$recursiveAnchor"),
    ],
)
def test_wrong_types_are_refused(schema: dict[str, object], place: str) -> None:
    with pytest.raises(LanguageError) as refused:
        JsonSchema(schema).automaton()
    assert f"(at {place})" in str(refused.value)


def test_keywords_of_other_drafts_are_noted() -> None:
    uri = "https://a.example/b"
    assert told({"$schema": DRAFT4, "$id": uri}) == [("#/$id", "$id has no effect in draft 4")]
    assert told({"$schema": DRAFT4, "$id": uri, "id": uri}) == []
    assert told({"$schema": DRAFT7, "$dynamicAnchor": 5}) == [
        ("#/$dynamicAnchor", "$dynamicAnchor has no effect in draft 7")
    ]
    # It names a schema in draft 4 alone, and only describes one of another type.
    ignored = [("#/id", "id must be a string and is ignored")]
    assert told({"id": 5}) == told({"$schema": DRAFT4, "id": 5}) == ignored


@pytest.mark.parametrize("edge", ["Minimum", "Maximum"])
def test_boolean_bounds_of_draft_4_are_noted(edge: str) -> None:
    keyword, bound = f"exclusive{edge}", edge.lower()
    place = f"#/{keyword}"
    for truth in (True, False):
        schema: dict[str, object] = {keyword: truth, bound: 3}
        assert told(schema) == [(place, f"{keyword} is read as in draft 4")]
        assert JsonSchema(schema).matches("3") is not truth
        assert told({"$schema": DRAFT4, **schema}) == []
        alone = {"$schema": DRAFT4, keyword: truth}
        assert told(alone) == [(place, f"{keyword} has no effect without {bound}")]
    number = {"$schema": DRAFT4, keyword: 3}
    assert told(number) == [(place, f"{keyword} is read as in draft 6 and later")]
    assert not JsonSchema(number).matches("3")
    assert told({keyword: 3}) == told({"$schema": DRAFT7, keyword: 3, bound: 3}) == []


def test_a_recursive_reference_has_a_location() -> None:
    for more, place in (({}, "#"), ({"$id": "https://a.example/b"}, "https://a.example/b#")):
        schema = {"$schema": DRAFT2019, **more, "$recursiveRef": "#"}
        with pytest.raises(LanguageError, match=rf"\(at {place}\)"):
            JsonSchema(schema).automaton()


def test_schemas_made_here_need_no_word() -> None:
    assert PythonType(int).notes == ()
