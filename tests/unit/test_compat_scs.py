"""Parsers written for the readme of SCS, unchanged, and its example layout."""

from __future__ import annotations

import json
import re
from typing import Any, ClassVar

import pytest

from formalm import ArgumentError, Constraint, LanguageError, TypeScript, Vocabulary, generate
from formalm.compat.scs import IncrementalParser, ParseFailure, TokenGroup, example_layout
from formalm.models.canary import canary


class OneOfParser(IncrementalParser):
    """The readme's "One Of", with `append` and `copy` alone."""

    def __init__(self, options, text=""):
        self.options = options
        self.text = text

    def append(self, chars: str) -> None:
        self.text += chars
        if not any(option.startswith(self.text) for option in self.options):
            raise ParseFailure

    def copy(self):
        return type(self)(self.options, self.text)


class ForcedOneOf(OneOfParser):
    """The same with "Forcing Specific Tokens"."""

    def get_next(self) -> list[str]:
        return [o[len(self.text) :] for o in self.options if o.startswith(self.text)]


class Digits(TokenGroup):
    calls: ClassVar[list[str]] = []

    @staticmethod
    def filter(token: str) -> bool:
        Digits.calls.append(token)
        return token.isdigit()


class Letters(TokenGroup):
    @staticmethod
    def filter(token: str) -> bool:
        return any(character.isalpha() for character in token)


class NumberParser(IncrementalParser):
    """Digits up to a semicolon, with both kinds of groups."""

    appended: ClassVar[list[str]] = []

    def __init__(self):
        self.done = False

    def append(self, chars: str) -> None:
        self.appended.append(chars)
        for character in chars:
            if self.done or not (character.isdigit() or character == ";"):
                raise ParseFailure
            self.done = character == ";"

    def copy(self):
        made = NumberParser()
        made.done = self.done
        return made

    def valid_token_group(self):
        return None if self.done else Digits

    def invalid_token_group(self):
        return Letters


OPTIONS = ["Option A", "Option B"]
TOKENS = ["O", "Opt", "option", "Option ", "ion A", "ion ", "A", "B", "AB", "Option C", "1", "12"]
TOKENS += [";", "1;", ";;", "a1", "x", *"ption", " "]
VOCABULARY = Vocabulary.from_tokens(
    [*(token.encode() for token in TOKENS), None], end_token_ids=[len(TOKENS)]
)


def by_the_readme(parser: IncrementalParser) -> set[str]:
    """For each token, whether ParseFailure is raised when appending it to a copy."""
    allowed = set()
    for token in TOKENS:
        copy = parser.copy()
        try:
            copy.append(token)
        except ParseFailure:
            continue
        allowed.add(token)
    return allowed


@pytest.mark.parametrize(
    "parser",
    [OneOfParser(OPTIONS), ForcedOneOf(OPTIONS), ForcedOneOf(["O", "Opt"]), NumberParser()],
    ids=["one of", "forced", "one begins another", "groups"],
)
def test_masks_are_what_the_readme_describes(parser: IncrementalParser) -> None:
    waiting = [(Constraint(parser, VOCABULARY).matcher(), parser.copy())]
    ended = 0
    for _ in range(15):
        if not waiting:
            break
        matcher, mine = waiting.pop(0)
        allowed = {TOKENS[i] for i in matcher.allowed_token_ids().tolist() if i < len(TOKENS)}
        assert allowed == by_the_readme(mine), matcher.text
        ended += matcher.is_accepting
        assert allowed or matcher.is_accepting
        for token in sorted(allowed):
            following, copy = matcher.fork(), mine.copy()
            following.advance(TOKENS.index(token))
            copy.append(token)
            waiting.append((following, copy))
    assert ended


def test_a_text_ends_where_nothing_follows() -> None:
    for parser in (OneOfParser(OPTIONS), ForcedOneOf(OPTIONS)):
        assert parser.matches("Option A")
        assert not parser.matches("Option ")
        assert not parser.is_viable("Option AB")
    # The empty string in get_next: the text may end or continue.
    both = ForcedOneOf(["a", "ab"])
    assert both.matches("a")
    assert both.matches("ab")
    assert not both.matches("")
    # Only a character beyond ASCII follows.
    assert not OneOfParser(["né"]).matches("n")
    assert NumberParser().matches("12;")
    assert not NumberParser().matches("12")


def test_other_exceptions_count_only_for_tokens() -> None:
    """Whether a text may end is asked with characters that no token need have."""

    class Integer(NumberParser):
        def append(self, chars: str) -> None:
            for character in chars:
                if character != ";":
                    int(character)  # a ValueError for others, such as ²
            super().append(chars)

        def copy(self):
            made = Integer()
            made.done = self.done
            return made

    assert Integer().matches("12;")
    assert not Integer().matches("12")


def test_a_text_that_may_also_continue_says_where_it_ends() -> None:
    class Digit(NumberParser):
        def copy(self):
            return Digit()

        @property
        def is_accepting(self):
            return True

    assert Digit().matches("12")
    assert not Digit().is_viable("x")


def test_groups_save_calls() -> None:
    Digits.calls.clear()
    constraint = Constraint(NumberParser(), VOCABULARY)
    matcher = constraint.matcher()
    NumberParser.appended.clear()
    matcher.bitmask()
    once = len(Digits.calls)
    assert once <= len(TOKENS) + 1
    asked = set(NumberParser.appended)
    assert not {"12", "Option ", "a1"} & asked
    matcher.advance(TOKENS.index("12"))
    matcher.bitmask()
    assert len(Digits.calls) == once


def test_groups_must_have_a_filter() -> None:
    with pytest.raises(NotImplementedError):
        TokenGroup.filter("a")
    plain = OneOfParser(OPTIONS)
    assert plain.valid_token_group() is None
    assert plain.invalid_token_group() is None
    assert plain.get_next() == []


def test_the_embedded_model_stays_inside() -> None:
    for parser in (OneOfParser(OPTIONS), ForcedOneOf(OPTIONS)):
        found = {generate(canary(), "Input", parser, seed=seed).text for seed in range(3)}
        assert found <= set(OPTIONS)


SCHEMA = """
{
    output: string,
    array_output: []number,
    optional_output?: number,
    nested_schema: []{
        inner_output: string
    }
}
"""
EXAMPLE = """{
    "output": "some text",
    "array_output": [1, 2, 3],
    "nested_schema": [
        {"inner_output": "more text"},
        {"inner_output": "even more text"}
    ]
}"""


def written(value: Any, is_nested: list[bool], level: int = 0) -> str:
    """The layout by hand: `is_nested` says of each level whether it has a line per item."""
    if not isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False)
    parts = list(value.values() if isinstance(value, dict) else value)
    lines = [written(part, is_nested, level + 1) for part in parts]
    if isinstance(value, dict):
        lines = [
            f"{json.dumps(name, ensure_ascii=False)}: {line}"
            for name, line in zip(value, lines, strict=True)
        ]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    if not parts or not is_nested[level]:
        return begin + ", ".join(lines) + end
    inner = "\n" + " " * 4 * (level + 1)
    return begin + inner + f",{inner}".join(lines) + "\n" + " " * 4 * level + end


def read(text: str | bytes) -> Any:
    """The value of a text, its numbers as they are written."""
    return json.loads(text, parse_float="number {}".format, parse_int="number {}".format)


def plain(text: str) -> str:
    return re.sub('"number ([^"]*)"', r"\1", text)


def test_the_readmes_example_is_in_its_layout() -> None:
    layout = example_layout(SCHEMA)
    assert layout.matches(EXAMPLE)
    more = json.loads(EXAMPLE)
    more = {**dict(list(more.items())[:2]), "optional_output": 1.5, "nested_schema": []}
    assert TypeScript(SCHEMA).matches(json.dumps(more))
    inner = '"optional_output": 1.5,\n    "nested_schema": []\n}'
    assert layout.matches(EXAMPLE[: EXAMPLE.index('"nested')] + inner)
    for wrong in (
        json.dumps(json.loads(EXAMPLE)),
        json.dumps(json.loads(EXAMPLE), indent=4),
        EXAMPLE.replace("    ", "  "),
        EXAMPLE.replace("1, 2", "1,2"),
        EXAMPLE.replace('"output"', '"outputs"'),
        EXAMPLE + "\n",
    ):
        assert not layout.matches(wrong)


@pytest.mark.parametrize(
    ("schema", "is_nested"),
    [
        ("[][]number", [True, False]),
        ("{ a?: []{ x: number, y?: boolean }, b?: string }", [True, True, False]),
        ("{ a?: [][]1, b?: string }", [True, True, False]),
        (
            "interface P { name: string, tags?: []string } export default interface T { all: []P }",
            [True, True, True, False],
        ),
        ("{ m: { [name: string]: number }, n: []integer }", [True, False]),
        ("[[]true, 1, { a: null }]", [True, False]),
    ],
    ids=str,
)
def test_members_are_the_values_in_the_layout(schema: str, is_nested: list[bool]) -> None:
    layout, compact = example_layout(schema), TypeScript(schema, separators=(",", ":"))
    for seed in range(25):
        text = layout.automaton().random_member(seed, 40).decode()
        assert TypeScript(schema).matches(plain(json.dumps(read(text), ensure_ascii=False))), text
        assert plain(written(read(text), is_nested)) == text
        value = read(compact.automaton().random_member(seed, 40))
        assert layout.matches(plain(written(value, is_nested))), value


@pytest.mark.parametrize(
    ("schema", "match"),
    [
        ("interface A { a?: A, b: []A }", "recursive"),
        ("{ a: any, b: []string }", "known type"),
        ("{ a: { [name: string]: []number } }", "closed"),
        ("{ a: object }", "type"),
        ("{ a: [string, ...[][]number] }", "fixed length"),
    ],
)
def test_types_without_this_layout_are_refused(schema: str, match: str) -> None:
    with pytest.raises(LanguageError, match=match):
        example_layout(schema)


def test_wrong_arguments() -> None:
    for wrong in (-1, True, "  "):
        with pytest.raises(ArgumentError):
            example_layout(SCHEMA, indent=wrong)
    with pytest.raises(ArgumentError):
        example_layout({"type": "string"})  # type: ignore[arg-type]
    assert example_layout(TypeScript(SCHEMA), indent=2).matches(EXAMPLE.replace("    ", "  "))
