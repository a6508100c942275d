"""Whitespace of schemas: exactly that of :func:`json.dumps`, or up to a maximum in each gap."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formalm import ArgumentError, Constraint, JsonSchema, LimitError, Vocabulary
from tests.support.mask_walks import compare_masks

sys.path.append(str(Path(__file__).parent))
from test_schema_laws import SCHEMAS, VALUES, compiled, judge

LAYOUTS: list[dict[str, Any]] = [
    {"indent": 0},
    {"indent": 2},
    {"indent": "\t"},
    {"indent": " \n"},
    {"indent": ""},
    {"separators": (", ", ": ")},
    {"separators": (",", ":")},
    {"separators": (",", "\t : ")},
    {"indent": 1, "separators": (", ", ":")},
]


def written(value: object, layout: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, **layout)


def alternatives(text: str) -> Iterator[str]:
    """Texts that differ from one in a blank, between its parts or not."""
    for at in range(len(text) + 1):
        for blank in " \n\t":
            yield text[:at] + blank + text[at:]
        if text[at : at + 1] in (" ", "\n", "\t"):
            yield text[:at] + text[at + 1 :]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@given(value=VALUES, data=st.data())
@settings(max_examples=25, deadline=None)
def test_a_layout_is_that_of_json_dumps(
    layout: dict[str, Any], value: object, data: st.DataObject
) -> None:
    language = JsonSchema({"const": value}, **layout)
    text = written(value, layout)
    if isinstance(value, dict | list):
        assert language.matches(text), text
    for at in range(len(text)):
        assert language.is_viable(text[:at]), (text, at)
    others = list(alternatives(text))
    for other in data.draw(st.lists(st.sampled_from(others), max_size=5)):
        try:
            parsed = json.loads(other)
        except ValueError:
            parsed = None
        assert language.matches(other) == (parsed == value and other == text), other


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
@given(schema=SCHEMAS, value=VALUES, seed=st.integers(0, 9))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_instances_are_those_of_the_schema(
    layout: dict[str, Any], schema: Any, value: Any, seed: int
) -> None:
    plain = compiled(schema, "any")
    if plain is None or plain.is_empty():
        return
    language = plain.varied(**layout)
    try:
        valid = judge(schema, value)
        if valid is not None and not isinstance(value, float):
            assert plain.matches(written(value, {"separators": (",", ":")})) == valid
            assert language.matches(written(value, layout)) == valid
        for drawn in language.sample(2, seed=seed, random_bytes=30):
            text = drawn.decode() if isinstance(drawn, bytes) else drawn
            assert plain.accepts(text), text
            assert laid_out(text, layout), text
        short = language.shortest()
    except LimitError:
        return
    assert short is not None
    assert laid_out(short.decode(), layout)
    if all(note.effect == "exact" for note in plain.notes):
        # Without blanks it is no longer than the shortest text without any.
        compact = plain.varied(max_whitespace=0).shortest()
        assert compact is not None
        assert len(stripped(short.decode()).encode()) >= len(compact)


def stripped(text: str) -> str:
    """A text without blanks between its parts."""
    decoder, parts, inside = json.JSONDecoder(), [], 0
    while inside < len(text):
        if text[inside] == '"':
            _, end = decoder.raw_decode(text, inside)
            parts.append(text[inside:end])
            inside = end
        else:
            parts.append(text[inside].strip(" \n\t\r"))
            inside += 1
    return "".join(parts)


def laid_out(text: str, layout: dict[str, Any]) -> bool:
    """Whether the blanks of a text are those that json.dumps puts there."""
    tokens: dict[str, str] = {}

    def number(spelled: str) -> str:
        return tokens.setdefault(spelled, f"number{len(tokens)}")

    value = json.loads(text, parse_int=number, parse_float=number)
    again = written(value, layout)
    for spelled, token in tokens.items():
        again = again.replace(f'"{token}"', spelled)
    # Strings may be spelled with escapes that json.dumps does not choose.
    strings = [json.dumps(one, ensure_ascii=False) for one in strings_of(text)]
    normal = text
    for raw, plain in zip(raw_strings(text), strings, strict=True):
        normal = normal.replace(raw, plain, 1) if raw != plain else normal
    return again == normal


def raw_strings(text: str) -> list[str]:
    decoder, found, at = json.JSONDecoder(), [], 0
    while (at := text.find('"', at)) >= 0:
        _, end = decoder.raw_decode(text, at)
        found.append(text[at:end])
        at = end
    return found


def strings_of(text: str) -> list[str]:
    return [json.loads(raw) for raw in raw_strings(text)]


SMALL = [
    {"type": "array", "items": {"const": 1}, "maxItems": 2},
    {"type": "object", "properties": {"a": {"type": "array", "maxItems": 1, "items": False}}},
    {"type": "object", "maxProperties": 0},
    {"anyOf": [{"const": {"a": [[]]}}, {"const": []}, {"const": {"a": {}}}, {"const": [{}]}]},
]


@pytest.mark.parametrize("schema", SMALL, ids=str)
@pytest.mark.parametrize(
    "layout", [{"indent": 1}, {"indent": 0, "separators": (", ", " :")}], ids=str
)
def test_every_short_text_is_judged_as_json_dumps_judges(
    schema: dict[str, Any], layout: dict[str, Any]
) -> None:
    closed = {**schema, "additionalProperties": False} if "properties" in schema else schema
    language = JsonSchema(closed, **layout)
    members = set()
    values: list[Any] = [[], {}, [1], [1, 1], {"a": []}, {"a": [[]]}, {"a": {}}, [{}]]
    for value in values:
        text = written(value, layout)
        if judge(closed, value):
            members.add(text)
    # `1` is written in endless other ways.
    machine = language.automaton()
    found, open_texts = set(), [b""]
    while open_texts:
        text = open_texts.pop()
        for byte in b' \n,:[]{}"a1':
            longer = text + bytes([byte])
            if len(longer) <= 20 and b"11" not in longer and machine.is_viable(longer):
                open_texts.append(longer)
                if machine.matches(longer):
                    found.add(longer.decode())
    assert found == members


@pytest.mark.parametrize("layout", [{"indent": 2}, {"separators": (", ", ": ")}], ids=str)
def test_masks_of_layouts_are_as_defined(layout: dict[str, Any]) -> None:
    tokens = ["{", "}", "[", "]", "\n", "\n  ", "\n    ", "  ", " ", ",", ",\n", ", ", ": ", ":"]
    tokens += ['"', '"a', '"a":', '": [', "[]", "{}", "]\n", "}\n}", "1", "12", "a", '{\n  "', "],"]
    vocabulary = Vocabulary.from_tokens(
        [one.encode() for one in [*tokens, "<end>"]], end_token_ids=[len(tokens)]
    )
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}, "b": {"$ref": "#"}},
        "additionalProperties": False,
    }
    language = JsonSchema(schema, **layout)
    constraint = Constraint(language, vocabulary)
    for seed in range(4):
        compare_masks(constraint.matcher(), 40, Random(seed).choice)


def test_levels_are_counted_in_recursion() -> None:
    language = JsonSchema({"properties": {"a": {"$ref": "#"}}, "type": "object"}, indent=3)
    value: Any = {}
    for _ in range(12):
        value = {"a": value}
    text = json.dumps(value, indent=3)
    assert language.matches(text)
    cut = text[: text.rindex("{") + 1]
    assert (
        language.shortest(cut) == text[len(cut) :].encode()
        or language.shortest(cut) == text.encode()
    )


def test_max_whitespace_with_a_layout_is_refused() -> None:
    for layout in ({"indent": 2}, {"separators": (",", ":")}):
        with pytest.raises(ArgumentError, match="already fixes all whitespace"):
            JsonSchema(True, max_whitespace=1, **layout)  # type: ignore[arg-type]
    for wrong in (-1, 1.5, True, "--", " " * 33, [2]):
        with pytest.raises(ArgumentError):
            JsonSchema(True, indent=wrong)  # type: ignore[arg-type]
    for separators in ("", (",",), (",", "="), (" ,", ":"), (",", ":x"), (1, 2)):
        with pytest.raises(ArgumentError):
            JsonSchema(True, separators=separators)  # type: ignore[arg-type]


def test_layouts_are_options_like_others() -> None:
    import pickle

    language = JsonSchema({"type": "array"}, indent="\t", separators=(", ", ": "))
    again = pickle.loads(pickle.dumps(language))  # noqa: S301
    assert again == language
    assert again.matches("[\n\t1, \n\t2\n]")
    assert language.varied(max_whitespace=0).matches("[1,2]")
    assert not language.varied(max_whitespace=0).matches("[\n\t1]")
    assert language.varied(indent=1).matches("[\n 1, \n 2\n]")
    assert JsonSchema(True, max_whitespace=3).varied(indent=0).matches("[\n1\n]")
    assert language.accepts("[ 1,2]")
    assert "indent='\\t'" in repr(language)
    vocabulary = Vocabulary.from_tokens([b"[", b"1", b"]"])
    matcher = Constraint(language, vocabulary).matcher()
    matcher.advance(0)
    assert matcher.explain(1).places == ("indent",)


def test_deep_indentation_is_a_gap_like_any_other() -> None:
    language = JsonSchema(True, indent=32)
    for depth in (1, 20, 200):
        value: Any = 0
        for _ in range(depth):
            value = [value]
        assert language.matches(json.dumps(value, indent=32))


def test_no_whitespace_is_allowed_that_nothing_can_follow() -> None:
    none = JsonSchema({"type": "object", "maxProperties": 0}, indent=1)
    assert none.matches("{}")
    assert not none.is_viable("{\n")
    empty = JsonSchema({"type": "array", "items": False}, indent=1)
    assert empty.matches("[]")
    assert not empty.is_viable("[\n")
    two = JsonSchema({"type": "array", "minItems": 2, "items": {"const": ""}}, indent=1)
    assert two.is_viable('[\n ""')
    assert not two.is_viable('[\n ""\n')
    assert two.shortest() == b'[\n "",\n ""\n]'
    names = {"a": {"const": 1}, "b": {"const": ""}}
    owed = JsonSchema({"type": "object", "required": ["a", "b"], "properties": names}, indent=0)
    assert owed.shortest() == b'{\n"a": 1,\n"b": ""\n}'
    assert not owed.is_viable('{\n"a": 1\n')


def test_shortest_texts_are_shortest_among_all() -> None:
    schema = {"type": "array", "items": {"enum": ["", None]}, "minItems": 1, "maxItems": 2}
    for layout in LAYOUTS:
        language = JsonSchema(schema, **layout)
        texts = [
            written(list(items), layout)
            for count in (1, 2)
            for items in itertools.product(["", None], repeat=count)
        ]
        shortest = language.shortest()
        assert shortest is not None
        assert shortest.decode() == min(texts, key=lambda one: (len(one), one))
