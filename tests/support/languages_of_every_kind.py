"""Languages of every kind of machine, each with requests that never repeat.

A request is a member with names, items and numbers of its own, so that a constraint which keeps
what it has read grows with every one of them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from benches.fresh_requests import (
    distinct_numbers,
    distinct_strings,
    dumped,
    integer,
    prefixed_record,
    record,
    word,
)
from formalm import (
    CallFormat,
    Choice,
    Grammar,
    JsonSchema,
    Language,
    ParseFailure,
    Parser,
    Regex,
    Section,
    Structure,
    ToolCalls,
    TypeScript,
)
from formalm.languages import Indentation

__all__ = ["BY_NAME", "CASES", "KINDS", "Kind"]

JSON = """
start: value
?value: object | array | STRING | NUMBER | "true" | "false" | "null"
object: "{" [pair ("," pair)*] "}"
pair: STRING ":" value
array: "[" [value ("," value)*] "]"
STRING: /"[a-z]*"/
NUMBER: /-?(0|[1-9][0-9]*)/
"""
BLOCKS = """
start: line+
?line: simple | block
simple: NAME _NEWLINE
block: NAME ":" _NEWLINE _INDENT line+ _DEDENT
NAME: /[a-z]+/
_NEWLINE: /\\n[ ]*/
%declare _INDENT _DEDENT
"""
INDENTATION = Indentation(opening=(), closing=())


@dataclass(frozen=True)
class Kind:
    """A language and how requests for it are drawn.

    Attributes
    ----------
    name
        A sentence's subject.
    make
        The language, made anew.
    draw
        A member.
    is_exact
        Whether canonical tokens are known of it: not of Python parsers.
    """

    name: str
    make: Callable[[], Language]
    draw: Callable[[random.Random], str]
    is_exact: bool = True


class Letters(Parser):
    """Any text of small letters, commas and digits; parsers of equal texts differ."""

    def __init__(self, read: str = "") -> None:
        self.read = read

    def append(self, text: str) -> None:
        if not all(one.islower() or one.isdigit() or one == "," for one in text):
            raise ParseFailure
        self.read += text

    def copy(self) -> Letters:
        return type(self)(self.read)

    @property
    def is_accepting(self) -> bool:
        return len(self.read) % 2 == 0


class Lengths(Letters):
    """The same; parsers are equal if they go on alike."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Lengths) and len(self.read) % 2 == len(other.read) % 2

    def __hash__(self) -> int:
        return hash(len(self.read) % 2)


def nested(draw: random.Random, depth: int = 3) -> str:
    if depth == 0 or draw.random() < 0.3:
        return dumped(draw.choice([integer(draw), word(draw), True, None]))
    parts = [nested(draw, depth - 1) for _ in range(draw.randint(0, 3))]
    if draw.random() < 0.5:
        return "[" + ",".join(parts) + "]"
    return "{" + ",".join(f'"{word(draw)}":{part}' for part in parts) + "}"


def block(draw: random.Random, level: int = 0) -> str:
    lines = []
    for _ in range(draw.randint(1, 2)):
        name = " " * level + word(draw)
        if level < 6 and draw.random() < 0.4:
            lines.append(f"{name}:\n{block(draw, level + draw.randint(1, 2))}")
        else:
            lines.append(f"{name}\n")
    return "".join(lines)


def even(draw: random.Random) -> str:
    text = f"{word(draw)},{word(draw)}"
    return text if len(text) % 2 == 0 else f"{text}a"


def shuffled(draw: random.Random) -> str:
    names = [*"abcd", word(draw)]
    draw.shuffle(names)
    return dumped({name: integer(draw) for name in names})


def schema(**keywords: object) -> Callable[[], Language]:
    return lambda: JsonSchema(keywords)


OPEN = {"type": "object"}
CALLS = CallFormat("{name}({arguments})", "<call>", "</call>")
KINDS = [
    Kind("a regex", lambda: Regex("[a-h]{2,9}(-[0-9]+)*"), lambda draw: f"{word(draw)}-7"),
    Kind(
        "a choice", lambda: Choice(["yes", "no", "maybe"]), lambda draw: draw.choice(["yes", "no"])
    ),
    Kind(
        "a regex with look-around",
        lambda: Regex(r"(?!bad)[a-h]+(?<!e)\b,?"),
        lambda draw: f"h{word(draw)}a",
    ),
    Kind("edits", lambda: Regex("[a-h]{8}").edits(1), lambda draw: f"xab{word(draw)[:3]}gha"),
    Kind("an open object", schema(type="object"), record),
    Kind(
        "an object with typed extra properties",
        schema(type="object", additionalProperties={"type": "integer"}),
        record,
    ),
    Kind(
        "an object with property patterns",
        schema(type="object", patternProperties={"^x": {"type": "integer"}}),
        prefixed_record,
    ),
    Kind(
        "distinct strings",
        schema(type="array", items={"type": "string"}, uniqueItems=True),
        distinct_strings,
    ),
    Kind(
        "distinct numbers",
        schema(type="array", items={"type": "integer"}, uniqueItems=True),
        distinct_numbers,
    ),
    Kind(
        "properties in any order",
        lambda: JsonSchema({"type": "object", "required": list("abcd")}, property_order="any"),
        shuffled,
    ),
    Kind("a dictionary", lambda: TypeScript("{ [name: string]: number }"), record),
    Kind("a JSON grammar", lambda: Grammar(JSON), nested),
    Kind(
        "a schema in a grammar",
        lambda: Grammar('start: "x" object\nobject: %json {"type": "object"}'),
        lambda draw: f"x{record(draw)}",
    ),
    Kind("an indented grammar", lambda: Grammar(BLOCKS, indentation=INDENTATION), block),
    Kind(
        "a grammar beside a regex",
        lambda: Grammar(JSON) & Regex(r"[^t]*"),
        lambda draw: nested(draw).replace("true", "null"),
    ),
    Kind(
        "a structure with open arguments",
        lambda: Structure([Section("<a>", JsonSchema(OPEN), "</a>")]),
        lambda draw: f"so: <a>{record(draw)}</a> then",
    ),
    Kind(
        "tool calls",
        lambda: ToolCalls({"find": JsonSchema(OPEN), "count": JsonSchema(OPEN)}, CALLS),
        lambda draw: f"well <call>find({record(draw)})</call>",
    ),
    Kind(
        "a regex before a schema",
        lambda: Regex("[a-h]+: ") + JsonSchema(OPEN),
        lambda draw: f"{word(draw)}: {record(draw)}",
    ),
    Kind("a Python parser", Letters, even, is_exact=False),
    Kind(
        "a Python parser that compares",
        Lengths,
        even,
        is_exact=False,
    ),
]
BY_NAME = {kind.name: kind for kind in KINDS}
#: Each kind with each tokenization that is known of it.
CASES = [
    pytest.param(kind, tokenization, id=f"{kind.name}, {tokenization}")
    for kind in KINDS
    for tokenization in ("all", "canonical")
    if tokenization == "all" or kind.is_exact
]
