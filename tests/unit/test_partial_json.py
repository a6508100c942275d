"""The complete parts of JSON texts under way."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import (
    CallFormat,
    JsonSchema,
    LanguageError,
    LimitError,
    Regex,
    TableModel,
    TokenError,
    ToolCalls,
    TypeScript,
    Vocabulary,
    generate,
    stream,
)
from formalm.languages.json_schema.partial_json import PartialJson

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)
BLANKS = st.sampled_from([None, 0, 2])


def read(text: str) -> object:
    parts = PartialJson()
    parts.feed(text)
    return parts.value


def naive(text: str) -> object:
    """The largest value of the ways to close a beginning, with what is not complete left out."""
    in_string, escaped, opened = False, False, []
    cuts = [(0, "")]
    for at, sign in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif sign == "\\":
                escaped = True
            elif sign == '"':
                in_string = False
        elif sign == '"':
            in_string = True
        elif sign in "{[":
            opened.append("}" if sign == "{" else "]")
        elif sign in "}]":
            opened.pop()
        if not in_string:
            cuts.append((at + 1, "".join(reversed(opened))))
    # A number at the end may go on, so nothing of it counts.
    number = None if in_string else re.search(r"-?[0-9][0-9.eE+-]*\Z", text)
    for end, closing in reversed(cuts):
        if number and end > number.start():
            continue
        for comma in ("", ","):
            body = text[:end].rstrip(" \n")
            try:
                return json.loads(body.removesuffix(comma) + closing)
            except ValueError:
                continue
    return None


@given(VALUES, BLANKS, st.data())
def test_parts_are_those_of_the_closed_text(value: object, blanks: Any, data: Any) -> None:
    text = json.dumps(value, indent=blanks, ensure_ascii=False)
    end = data.draw(st.integers(0, len(text)))
    assert read(text[:end]) == naive(text[:end])


@given(VALUES, BLANKS, st.data())
def test_chunk_boundaries_do_not_change_the_result(value: object, blanks: Any, data: Any) -> None:
    text = json.dumps(value, indent=blanks)
    parts, at = PartialJson(), 0
    while at < len(text):
        end = data.draw(st.integers(at + 1, len(text)))
        parts.feed(text[at:end])
        assert parts.value == read(text[:end])
        at = end
    if not isinstance(value, int | float) or isinstance(value, bool):
        assert parts.value == value


def test_values_are_copies() -> None:
    parts = PartialJson()
    parts.feed('{"a": [1,')
    first: Any = parts.value
    parts.feed("2, 3")
    assert first == {"a": [1]}
    first["a"].append(9)
    assert parts.value == {"a": [1, 2]}


def test_deep_texts() -> None:
    parts = PartialJson()
    parts.feed("[" * 50_000)
    depth, inner = 0, parts.value
    while isinstance(inner, list) and inner:
        depth, inner = depth + 1, inner[0]
    assert depth == 49_999


def test_an_integer_beyond_pythons_digit_limit() -> None:
    with pytest.raises(LimitError):
        read("[" + "1" * 5000 + ",")


def test_a_language_parses_prefixes_of_its_members() -> None:
    language = TypeScript("{ a: string, b: number[] }")
    assert language.partial('{"a": "x", "b": [1, 2') == {"a": "x", "b": [1]}
    assert language.partial(b'{"a": "\xc3') == {}
    assert language.partial("") is None
    with pytest.raises(TokenError):
        language.partial('{"b"')


def model() -> TableModel:
    pieces = [b'{"', b'a":', b"1", b"2", b',"b":"', b"x", b'"}', b"<end>"]
    vocabulary = Vocabulary.from_tokens(pieces, end_token_ids=[7])
    return TableModel(vocabulary, {}, default=[1 / 8] * 8)


def test_streams_show_what_is_complete() -> None:
    language = TypeScript("{ a: 12, b: 'xx' }", max_whitespace=0)
    pieces = stream(model(), None, language, max_tokens=20, seed=0)
    assert pieces.partial is None
    seen = [(piece, pieces.partial) for piece in pieces]
    assert "".join(piece for piece, _ in seen) == '{"a":12,"b":"xx"}'
    values = [value for _, value in seen]
    assert values[0] == values[2] == {}
    assert {"a": 12} in values
    assert values[-1] == pieces.generation.value == {"a": 12, "b": "xx"}


def test_truncated_strings_have_partial_values() -> None:
    language = TypeScript("{ a: 12, b: 'xx' }", max_whitespace=0)
    cut = generate(model(), None, language, max_tokens=5, seed=0)
    with pytest.raises(TokenError, match="which ended with reason 'length'"):
        _ = cut.value
    assert cut.partial == {"a": 12}


def test_other_languages_have_no_parts() -> None:
    pieces = stream(model(), None, Regex("x+"), max_tokens=3, seed=0)
    with pytest.raises(LanguageError, match="partial values are not supported for this language"):
        _ = pieces.partial
    with pytest.raises(LanguageError, match="partial values are not supported for this language"):
        _ = generate(model(), None, max_tokens=3, seed=0).partial


def test_values_that_python_does_not_read_are_limits() -> None:
    digits = JsonSchema({"type": "array"})
    most = sys.get_int_max_str_digits()
    assert digits.value(f"[{'1' * most}]") == [int("1" * most)]
    with pytest.raises(LimitError) as limited:
        digits.value(f"[2, {'1' * (most + 7)}]")
    assert (limited.value.needed, limited.value.allowed) == (most + 7, most)
    assert digits.value("[1e9999]") == [float("inf")]


@given(VALUES, BLANKS, st.booleans(), st.data())
def test_open_strings(value: Any, blanks: Any, is_ascii: bool, data: st.DataObject) -> None:
    text = json.dumps(value, indent=blanks, ensure_ascii=is_ascii)
    parts, places = PartialJson(), sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=3)))
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        parts.feed(text[start:end])
        before = parts.value
        opened = parts.with_open_string()
        assert parts.value == before
        assert opened == naive_open(text[:end]) or opened != opened
    assert parts.with_open_string() == parts.value


def naive_open(text: str) -> object:
    """The value of a beginning whose string is closed after its last whole character."""
    if not _in_string(text):
        return read(text)
    start = max(at for at in range(len(text)) if not _in_string(text[:at]))
    for cut in range(len(text), start, -1):
        try:
            json.loads(text[start:cut] + '"')
        except ValueError:
            continue
        if not _half(text[:cut]):
            return read(text[:cut] + '"')
    raise AssertionError


def _in_string(text: str) -> bool:
    inside = escaped = False
    for sign in text:
        if escaped:
            escaped = False
        elif inside and sign == "\\":
            escaped = True
        elif sign == '"':
            inside = not inside
    return inside


def _half(text: str) -> bool:
    """True if a text ends in a high surrogate."""
    return bool(re.search(r"(?<!\\)(?:\\\\)*\\u[dD][89abAB][0-9a-fA-F]{2}$", text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": "Jane A', {"a": "Jane A"}),
        ('{"a": "x\\', {"a": "x"}),
        ('{"a": "x\\\\', {"a": "x\\"}),
        ('{"a": "x\\u00e', {"a": "x"}),
        ('{"a": "x\\ud83d', {"a": "x"}),
        ('{"a": "x\\ud83d\\', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude0', {"a": "x"}),
        ('{"a": "x\\ud83d\\ude00', {"a": "x😀"}),
        ('{"a": "x\\\\ud83d', {"a": "x\\ud83d"}),
        ('{"na', {}),
        ('{"na"', {}),
        ('["a", "b', ["a", "b"]),
        ('"', ""),
        ("[1", []),
    ],
)
def test_strings_under_way(text: str, value: object) -> None:
    schema = JsonSchema(True, escapes="any")
    assert schema.partial(text, open_strings=True) == value


def test_partial_calls() -> None:
    arguments = JsonSchema(
        {"type": "object", "properties": {"to": {"type": "string"}, "n": {"type": "integer"}}}
    )
    shape = CallFormat('{"name": "{name}", "arguments": {arguments}}', "<call>", "</call>")
    listed = CallFormat("{name}({arguments})", "[", "]", separator=", ")
    for tools, text in (
        (
            ToolCalls({"send": arguments, "sender": arguments, "yes": Regex("[a-z]+")}, shape),
            'Well. <call>{"name": "send", "arguments": {"to": "A\\n", "n": 12}}</call> and'
            ' <call>{"name": "sender", "arguments": {"n": 3}}</call>'
            '<call>{"name": "yes", "arguments": abc}</call>.',
        ),
        (
            ToolCalls({"send": arguments, "sender": arguments, "yes": Regex("[a-z]+")}, listed),
            'Well. [send({"to": "A\\n", "n": 12}), sender({"n": 3}), yes(abc)] So.',
        ),
    ):
        whole = tools.value(text)
        assert tools.partial(text) == whole
        seen: list[Any] = []
        for end in range(len(text) + 1):
            found = tools.partial(text[:end])
            # Calls appear in order, never change their names, and only grow.
            assert [one.name for one in found] == [one.name for one in whole][: len(found)]
            assert len(found) >= len(seen)
            assert found[: max(0, len(found) - 1)] == whole[: max(0, len(found) - 1)]
            seen = found
        assert seen == whole
        cut = text.index("A\\n") + 1
        assert tools.partial(text[:cut])[0].arguments == {}
        assert tools.partial(text[:cut], open_strings=True)[0].arguments == {"to": "A"}
        with pytest.raises(TokenError, match="no member begins"):
            tools.partial(text[: text.index("send")] + "none(")


def test_calls_of_a_stream() -> None:
    shape = CallFormat("{name}({arguments})", "<", ">")
    tools = ToolCalls(
        {"f": TypeScript("{a: true, b: true}")}, shape, minimum=1, maximum=1, free=False
    )
    vocabulary = Vocabulary.from_tokens([b"<f(", b'{"a":', b"true", b',"b":', b"})", b">"])
    model = TableModel(vocabulary, {}, default=[1 / 6] * 6)
    pieces = stream(model, None, tools, max_tokens=9)
    seen = [[(one.name, one.arguments) for one in pieces.partial] for _ in pieces]
    assert seen[:3] == [[("f", None)], [("f", {})], [("f", {"a": True})]]
    assert seen[-1] == [("f", {"a": True, "b": True})]
    assert pieces.generation.partial == pieces.generation.value
