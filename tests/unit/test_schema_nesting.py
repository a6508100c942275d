"""Schemas nested deeply are read, or end in a limit: never in a stack that is full."""

import json
import threading
from collections.abc import Callable

import pytest

from formalm import ArgumentError, JsonSchema, LanguageError, LimitError

#: What a thread has where little is given: that of the main program is eight times as much.
STACK_BYTES = 1 << 20


def in_a_small_stack(work: Callable[[], object]) -> object:
    outcome: list[object] = []

    def run() -> None:
        try:
            outcome.append(work())
        except Exception as error:
            outcome.append(error)

    before = threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return outcome[0]


def shortest(schema: object) -> Callable[[], object]:
    return lambda: JsonSchema(schema, max_whitespace=0).shortest()  # type: ignore[arg-type]


def nested(before: str, inner: str, after: str, levels: int) -> str:
    return before * levels + inner + after * levels


def test_members_may_nest_deeper_than_json_parsers_read() -> None:
    for levels in (63, 64, 150, 190):
        text = nested('{"type":"object","required":["é"],"properties":{"é":', "{}", "}}", levels)
        expected = nested('{"é":', "0", "}", levels).encode()
        assert in_a_small_stack(shortest(text)) == expected
        assert JsonSchema(json.loads(text), max_whitespace=0).shortest() == expected


@pytest.mark.parametrize("levels", [499, 500, 1000, 100_000])
@pytest.mark.parametrize(
    ("before", "inner", "after"),
    [
        ('{"items":', "false", "}"),
        ('{"not":', "false", "}"),
        ('{"allOf":[', "{}", "]}"),
        ('{"type":"array","minItems":1,"items":', "{}", "}"),
        ('{"const":', "1", "}"),
        ("[", "1", "]"),
    ],
)
def test_schemas_nested_too_deeply_exceed_a_limit(
    before: str, inner: str, after: str, levels: int
) -> None:
    text = nested(before, inner, after, levels)
    if before == "[":
        text = f'{{"const":{text}}}'
    found = in_a_small_stack(shortest(text))
    if before == '{"items":' and levels <= 500:
        assert found == b"0"
    else:
        assert isinstance(found, LimitError)
        assert (found.what, found.allowed in (200, 500)) == ("levels of nesting", True)


@pytest.mark.parametrize(
    "applied",
    [
        lambda inner: inner,
        lambda inner: {"allOf": [{}, inner]},
        lambda inner: {"anyOf": [{"type": "null"}, inner]},
        lambda inner: {"oneOf": [{"type": "null"}, inner]},
        lambda inner: {"not": {"not": inner}},
        lambda inner: {"if": {"type": "null"}, "else": inner},
        lambda inner: {"dependentSchemas": {"a": inner}, "unevaluatedProperties": False},
    ],
)
def test_chains_of_references_end_in_a_limit(applied: Callable[[object], object]) -> None:
    """They need no nesting of the text."""

    def chain(links: int) -> object:
        parts = {
            f"d{at}": applied({"$ref": f"#/$defs/d{at + 1}"} if at + 1 < links else {})
            for at in range(links)
        }
        return {"$ref": "#/$defs/d0", "$defs": parts}

    assert isinstance(in_a_small_stack(shortest(chain(60))), bytes)
    for links in (300, 5000):
        found = in_a_small_stack(shortest(chain(links)))
        assert isinstance(found, LimitError)
        assert (found.what, found.allowed) == ("levels of nesting", 200)


def test_the_longest_chain_counts_in_any_order_of_definitions() -> None:
    parts: dict[str, object] = {f"d{at}": {"$ref": f"#/$defs/d{at + 1}"} for at in range(150)}
    parts["d150"] = {"type": "null"}
    below = {"allOf": [{"$ref": "#/$defs/d0"}]}
    for _ in range(60):
        below = {"allOf": [below]}
    for order in ([{"$ref": "#/$defs/d0"}, below], [below, {"$ref": "#/$defs/d0"}]):
        with pytest.raises(LimitError, match="nesting"):
            JsonSchema({"allOf": order, "$defs": parts}).automaton()


def test_mistakes_in_deeply_nested_schemas_have_a_location() -> None:
    text = nested('{"items":', "tru", "}", 200)
    with pytest.raises(LanguageError, match="not valid JSON") as refused:
        JsonSchema(text)
    assert refused.value.span == (text.index("tru"), text.index("tru") + 1)


def test_dictionaries_have_the_same_limit() -> None:
    deep: dict[str, object] = {"const": 1}
    for _ in range(499):
        deep = {"items": deep}
    JsonSchema(deep)
    with pytest.raises(LimitError, match="at least 501 levels of nesting, but the limit is 500"):
        JsonSchema({"items": deep})
    lists: list[object] = []
    for _ in range(600):
        lists = [lists]
    with pytest.raises(LimitError):
        JsonSchema({"const": lists})
    endless: dict[str, object] = {}
    endless["items"] = [endless]
    with pytest.raises(ArgumentError, match="contains itself"):
        JsonSchema(endless)
    twice = {"type": "null"}
    assert JsonSchema({"anyOf": [twice, twice, []]}).schema == (
        '{"anyOf":[{"type":"null"},{"type":"null"},[]]}'
    )
