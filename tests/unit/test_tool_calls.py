"""Calls of tools in the formats of several chats, read back by a parser of the test's own."""

import json
import pickle
from random import Random
from typing import Any

import pytest

from formalm import (
    ArgumentError,
    CallFormat,
    Choice,
    Constraint,
    JsonSchema,
    LanguageError,
    PythonType,
    ToolCalls,
    TypeScript,
    Vocabulary,
)
from formalm.languages import Call

FORMATS = {
    "tagged": CallFormat(
        '\n{"name": "{name}", "arguments": {arguments}}\n', "<tool_call>", "</tool_call>"
    ),
    "listed": CallFormat(
        '{"name": "{name}", "arguments": {arguments}}', "[TOOL_CALLS][", "]", separator=", "
    ),
    "sections": CallFormat(
        "<|call|>functions.{name}:0<|arguments|>{arguments}<|/call|>",
        "<|calls|>",
        "<|/calls|>",
        separator="\n",
    ),
    "bare": CallFormat('{"name": "{name}", "parameters": {arguments}}'),
    "function": CallFormat("<function={name}>{arguments}</function>"),
}
TOOLS = {
    "weather": TypeScript("{ city: string, days?: integer }"),
    "weather.now": JsonSchema({"type": "object", "additionalProperties": False}),
    "time": JsonSchema(
        {
            "type": "object",
            "properties": {"zone": {"enum": ["UTC", "</tool_call>"]}},
            "required": ["zone"],
            "additionalProperties": False,
        }
    ),
}
PIECES = [
    "<tool_call>", "</tool_call>", "[TOOL_CALLS]", '[{"', '{"name"', '": "', '", "', "<|call|>",
    "<|calls|>", "<function=", "weather", "time", ">{", '{"city": "', '"zone', "</think>",
    "<think>", "think", "}}", '"}', " I", " will", "\n{", "}\n</", "functions.", "é", '"}]', "[T",
]  # fmt: skip
VOCABULARY = Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(128)] + [text.encode() for text in PIECES] + [None],
    end_token_ids=[128 + len(PIECES)],
)


def calls_in(text: str, format: CallFormat) -> list[tuple[str, Any]]:
    """The calls of a text by cutting it up; assertions tell whether it is as it has to be."""
    decode = json.JSONDecoder().raw_decode
    before, rest = format.call.split("{name}")
    between, behind = rest.split("{arguments}")
    found = []
    while (format.begin or before) in text:
        _, _, text = text.partition(format.begin or before)
        if not format.begin:
            text = before + text
        while True:
            assert text.startswith(before)
            name, _, text = text.removeprefix(before).partition(between)
            assert name in TOOLS
            arguments, end = decode(text.lstrip(" \t\r\n"))
            end += len(text) - len(text.lstrip(" \t\r\n"))
            assert text[end:].startswith(behind)
            text = text[end + len(behind) :]
            found.append((name, arguments))
            if format.separator is None or not text.startswith(format.separator):
                break
            text = text.removeprefix(format.separator)
        assert text.startswith(format.end)
        text = text.removeprefix(format.end)
    return found


def checked_arguments(name: str, arguments: Any) -> bool:
    """Whether arguments are what the tool takes, written out once more."""
    if name == "weather":
        days = arguments.get("days", 1)
        known = set(arguments) <= {"city", "days"} and isinstance(arguments["city"], str)
        return known and type(days) is int
    if name == "time":
        return set(arguments) == {"zone"} and arguments["zone"] in ("UTC", "</tool_call>")
    return bool(arguments == {})


def walked(language: ToolCalls, random: Random) -> str:
    """A text of random allowed tokens, brought to an end by the shortest way after a while."""
    matcher = Constraint(language, VOCABULARY).matcher()
    eager = random.random()
    for _ in range(60):
        allowed = matcher.allowed_token_ids().tolist()
        assert allowed, matcher.text
        long = [token_id for token_id in allowed if token_id >= 128]
        token_id = random.choice(long if long and random.random() < eager else allowed)
        if token_id in VOCABULARY.end_token_ids:
            return matcher.text.decode()
        matcher.advance(token_id)
    whole = language.shortest(matcher.text)
    assert whole is not None
    return whole.decode()


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("counts", [(0, None), (1, 1), (2, 3)])
def test_random_walks_end_in_texts_with_valid_calls(
    name: str, counts: tuple[int, int | None]
) -> None:
    format = FORMATS[name]
    language = ToolCalls(TOOLS, format, minimum=counts[0], maximum=counts[1])
    random = Random(f"{name} {counts}")
    total = 0
    for _ in range(12):
        text = walked(language, random)
        assert language.matches(text)
        found = calls_in(text, format)
        assert all(checked_arguments(*call) for call in found), text
        assert language.value(text) == found
        assert counts[0] <= len(found) <= (100 if counts[1] is None else counts[1])
        total += len(found)
    assert total or counts[0] == 0


def test_walks_without_free_text_are_calls_from_the_start() -> None:
    language = ToolCalls(TOOLS, FORMATS["tagged"], minimum=1, maximum=2, free=False)
    random = Random(5)
    for _ in range(10):
        text = walked(language, random)
        assert text.startswith("<tool_call>")
        assert text.endswith("</tool_call>")
        assert 1 <= len(calls_in(text, FORMATS["tagged"])) <= 2


def test_reasoning_is_free_and_no_call() -> None:
    tagged = FORMATS["tagged"]
    language = ToolCalls(TOOLS, tagged, minimum=1, reasoning=("<think>", "</think>"), opened=True)
    call = '<tool_call>\n{"name": "time", "arguments": {"zone": "</tool_call>"}}\n</tool_call>'
    text = f"A <tool_call> or not?</think>{call}<think><tool_call></think>So.{call}"
    assert language.value(text) == [Call("time", {"zone": "</tool_call>"})] * 2
    kinds = [piece.kind for piece in language.pieces(text)]
    assert kinds == ["reasoning", "section", "reasoning", "free", "section"]
    assert not language.matches("A <tool_call> or not?</think> No.")
    assert not language.is_viable("</think><tool_call>x")


def test_arguments_are_of_types_and_functions() -> None:
    def book(seats: int, window: bool = False) -> None:
        """Not called."""

    format = FORMATS["function"]
    language = ToolCalls([book], format)
    text = 'Well.<function=book>{"seats": 2}</function>'
    assert language.value(text) == [Call("book", {"seats": 2})]
    assert language.tools == {"book": PythonType(book)}
    assert not language.matches('<function=book>{"seats": "2"}</function>')
    assert ToolCalls({"say": Choice(["yes", "no"])}, format).value(
        "<function=say>no</function>"
    ) == [Call("say", "no")]


def test_many_tools_are_one_language() -> None:
    tools = {f"tool_{number}": TOOLS["time"] for number in range(300)}
    language = ToolCalls(tools, FORMATS["listed"], maximum=2)
    call = '{"name": "tool_%d", "arguments": {"zone": "UTC"}}'
    text = f"[TOOL_CALLS][{call % 7}, {call % 299}] Done."
    assert [one.name for one in language.value(text)] == ["tool_7", "tool_299"]  # type: ignore[attr-defined]
    assert not language.matches(f"[TOOL_CALLS][{call % 300}]")
    assert not language.is_viable(f"[TOOL_CALLS][{call % 1}, {call % 2}, ")
    assert not language.is_viable(f"[TOOL_CALLS][{call % 1}] [TOOL_CALLS][")


def test_copies_are_equal() -> None:
    for format in FORMATS.values():
        language = ToolCalls(TOOLS, format, maximum=3)
        again = pickle.loads(pickle.dumps(language))  # noqa: S301
        assert again == language
        assert again != ToolCalls(TOOLS, format, maximum=2)
        assert repr(language).startswith("ToolCalls({'weather': TypeScript(")
        assert repr(language).endswith(", maximum=3)")


def test_formats_that_do_not_show_their_parts_are_refused() -> None:
    for call in ("{arguments}{name}", "{name}", "", "{name}{name}({arguments})"):
        with pytest.raises(LanguageError):
            CallFormat(call, "<")
    with pytest.raises(LanguageError, match="where calls begin"):
        CallFormat("{name}({arguments})")
    for call in ("{name}{arguments}", "{name}x{arguments}"):
        with pytest.raises(LanguageError, match="where the name ends"):
            CallFormat(call, "<")
    with pytest.raises(LanguageError, match="empty"):
        CallFormat("{name}({arguments})", "<", separator="")


def test_objects_that_are_not_tools_are_refused() -> None:
    format = FORMATS["function"]
    for tools in ({}, [], "time", 3, [int, 3], [test_copies_are_equal.__name__]):
        with pytest.raises(ArgumentError):
            ToolCalls(tools, format)  # type: ignore[arg-type]
    for name in ("", "a b", 'a"', 3):
        with pytest.raises(LanguageError, match="name"):
            ToolCalls({name: TOOLS["time"]}, format)  # type: ignore[dict-item]
    with pytest.raises(ArgumentError):
        ToolCalls(TOOLS, "{name}({arguments})")  # type: ignore[arg-type]
    with pytest.raises(LanguageError, match="empty"):
        ToolCalls({"none": Choice(["a"]) & Choice(["b"])}, format)


@pytest.mark.parametrize("name", ["tagged", "listed", "sections", "function"])
@pytest.mark.parametrize("counts", [(0, None), (0, 1), (2, None), (1, 3), (3, 3)])
def test_a_required_tool_is_always_called(name: str, counts: tuple[int, int | None]) -> None:
    from itertools import product

    zone = '{"zone": "UTC"}'
    format = FORMATS[name]
    tools = {"one": TOOLS["time"], "two": TOOLS["time"]}
    minimum, maximum = counts
    free = ToolCalls(tools, format, minimum=minimum, maximum=maximum)
    needed = ToolCalls(tools, format, minimum=minimum, maximum=maximum, required="two")
    for count in range(5):
        for called in product(["one", "two"], repeat=count):
            calls = [
                format.call.replace("{name}", one).replace("{arguments}", zone) for one in called
            ]
            if format.separator is None:
                text = "".join(f"{format.begin}{call}{format.end}" for call in calls)
            else:
                text = format.begin + format.separator.join(calls) + format.end if calls else ""
            assert needed.matches(text) == (free.matches(text) and "two" in called), text
            if needed.matches(text):
                assert [call.name for call in needed.value(text)] == list(called)
    assert pickle.loads(pickle.dumps(needed)) == needed  # noqa: S301
    assert needed != free
    assert "required='two'" in repr(needed)


def test_a_required_tool_is_one_that_may_be_called() -> None:
    for wrong in ({"required": "three"}, {"required": 1}, {"required": "time", "maximum": 0}):
        with pytest.raises(ArgumentError):
            ToolCalls(TOOLS, FORMATS["tagged"], **wrong)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="32"):
        ToolCalls(TOOLS, FORMATS["tagged"], minimum=100, required="time")
