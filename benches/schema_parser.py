"""A parser in Python for JSON after a schema in the manner of TypeScript.

It says beforehand what must follow and which tokens are allowed anyway, and its states compare by
value: all that makes a parser quick.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from formalm import ParseFailure, Parser

Frame = tuple[str, int, str]
Begun = list[tuple[str, tuple[Frame, ...]]]

STRING: Frame = ("string", 0, "")
NUMBER: Frame = ("number", 0, "")

# From each place inside a number to the next.
DIGITS = "123456789"
NUMBERS: list[dict[str, int]] = [
    {"-": 1, "0": 2, **dict.fromkeys(DIGITS, 3)},
    {"0": 2, **dict.fromkeys(DIGITS, 3)},
    {".": 4, "e": 6, "E": 6},
    {".": 4, "e": 6, "E": 6, "0": 3, **dict.fromkeys(DIGITS, 3)},
    {"0": 5, **dict.fromkeys(DIGITS, 5)},
    {"e": 6, "E": 6, "0": 5, **dict.fromkeys(DIGITS, 5)},
    {"+": 7, "-": 7, "0": 8, **dict.fromkeys(DIGITS, 8)},
    {"0": 8, **dict.fromkeys(DIGITS, 8)},
    {"0": 8, **dict.fromkeys(DIGITS, 8)},
]
WHOLE_NUMBERS = {2, 3, 5, 8}
HEXADECIMAL = set("0123456789abcdefABCDEF")


class Schema:
    """What a schema text says, as texts that must follow: one list for each place.

    A place has texts with the frames to read behind each: ``("choice", place, text read of it)``, a
    string, a number, or the numbers of a list.
    """

    def __init__(self, text: str) -> None:
        self.places: list[Begun] = []
        parts = iter(re.findall(r"[A-Za-z_]\w*|\S", text))
        self.first = self._place(self._begin(self._type(next(parts), parts)))

    def _place(self, options: Begun) -> int:
        self.places.append(options)
        return len(self.places) - 1

    def _type(self, part: str, parts: Iterator[str]) -> Any:
        if part == "[":
            next(parts)
            return ["array", self._type(next(parts), parts)]
        if part != "{":
            assert part in ("string", "number"), part
            return part
        fields = []
        part = next(parts)
        while part != "}":
            name, optional = part, False
            if next(parts) == "?":
                optional = next(parts) == ":"
            fields.append((name, self._type(next(parts), parts), optional))
            part = next(parts)
            if part == ",":
                part = next(parts)
        return ["object", fields]

    def _begin(self, kind: Any) -> Begun:
        """The texts that a value begins with, and what is read behind them."""
        if kind == "string":
            return [('"', (STRING,))]
        if kind == "number":
            return [("", (NUMBER,))]
        if kind[0] == "array":
            after = self._place([])
            frame = ("choice", after, "")
            item = self._begin(kind[1])
            self.places[after] = [("]", ()), *_behind(", ", item, frame)]
            if kind[1] == "number":
                return [("[", (("numbers", after, ""),))]
            return [("[]", ()), *_behind("[", item, frame)]
        return [("{" + text, frames) for text, frames in self._members(kind[1], "")]

    def _members(self, fields: list[Any], comma: str) -> Begun:
        """What may stand before the rest of the members of an object."""
        options: Begun = []
        for number, (name, kind, optional) in enumerate(fields):
            rest = self._place([])
            self.places[rest] = self._members(fields[number + 1 :], ", ")
            start = f'{comma}"{name}": '
            options += _behind(start, self._begin(kind), ("choice", rest, ""))
            if not optional:
                return options
        return [*options, ("}", ())]


def _behind(text: str, options: Begun, frame: Frame) -> Begun:
    return [(text + rest, (frame, *frames)) for rest, frames in options]


class SchemaParser(Parser):
    """JSON of a schema: a stack of frames, of which the last one reads the next character."""

    def __init__(self, schema: Schema | str, stack: tuple[Frame, ...] | None = None) -> None:
        self.schema = Schema(schema) if isinstance(schema, str) else schema
        self.stack = self._pushed((), self.schema.first) if stack is None else stack

    def copy(self) -> SchemaParser:
        """Another parser in the same state."""
        return type(self)(self.schema, self.stack)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, SchemaParser)
            and self.stack == other.stack
            and self.schema is other.schema
        )

    def __hash__(self) -> int:
        return hash(self.stack)

    @property
    def is_accepting(self) -> bool:
        """Whether everything that was begun is finished."""
        stack = self.stack
        at_number = len(stack) == 1 and stack[0][0] == "number"
        return not stack or (at_number and stack[0][1] in WHOLE_NUMBERS)

    def next_strings(self) -> list[str]:
        """The texts of the place, as far as they are not read."""
        if not self.stack or self.stack[-1][0] != "choice":
            return []
        _, place, read = self.stack[-1]
        texts = [text for text, _ in self.schema.places[place]]
        return [text[len(read) :] for text in texts if text.startswith(read)]

    def allowed_groups(self) -> list[Any]:
        """Inside a string, all tokens that cannot end it."""
        return [_stays] if self.stack and self.stack[-1] == STRING else []

    def forbidden_groups(self) -> list[Any]:
        """Inside a string, tokens with characters that JSON escapes."""
        return [_has_control] if self.stack and self.stack[-1][0] == "string" else []

    def append(self, text: str) -> None:
        """Read on."""
        for character in text:
            if not self.stack:
                raise ParseFailure
            getattr(self, "_" + self.stack[-1][0])(character)

    def _pushed(self, stack: tuple[Frame, ...], place: int) -> tuple[Frame, ...]:
        """The stack in front of a place; a place of one empty text is behind it at once."""
        options = self.schema.places[place]
        if len(options) == 1 and not options[0][0]:
            return stack + options[0][1]
        return (*stack, ("choice", place, ""))

    def _choice(self, character: str) -> None:
        _, place, read = self.stack[-1]
        read += character
        fitting = [one for one in self.schema.places[place] if one[0].startswith(read)]
        if not fitting:
            raise ParseFailure
        text, frames = fitting[0]
        behind = frames if text == read else (("choice", place, read),)
        self.stack = self.stack[:-1] + behind

    def _numbers(self, character: str) -> None:
        """Behind the bracket that opens an array of numbers."""
        _, after, _ = self.stack[-1]
        self.stack = self.stack[:-1]
        if character != "]":
            self.stack += (("choice", after, ""), NUMBER)
            self._number(character)

    def _number(self, character: str) -> None:
        state = self.stack[-1][1]
        following = NUMBERS[state].get(character)
        if following is not None:
            self.stack = (*self.stack[:-1], ("number", following, ""))
        elif state in WHOLE_NUMBERS:
            self.stack = self.stack[:-1]
            self.append(character)
        else:
            raise ParseFailure

    def _string(self, character: str) -> None:
        """A mode of 1 is behind a backslash, one of 2 and more counts hexadecimal digits."""
        mode = self.stack[-1][1]
        if mode == 0:
            if character == '"':
                self.stack = self.stack[:-1]
                return
            if character < " ":
                raise ParseFailure
            following = int(character == "\\")
        elif mode == 1:
            if character not in '"\\/bfnrtu':
                raise ParseFailure
            following = 2 if character == "u" else 0
        elif character in HEXADECIMAL:
            following = (mode + 1) % 6
        else:
            raise ParseFailure
        if following != mode:
            self.stack = (*self.stack[:-1], ("string", following, ""))


def _has_control(text: str) -> bool:
    return any(character < " " for character in text)


def _stays(text: str) -> bool:
    return not ('"' in text or "\\" in text or _has_control(text))


ARTICLE = """
{
    output: string,
    array_output: []number,
    optional_output?: number,
    nested_schema: []{
        inner_output: string
    }
}
"""
