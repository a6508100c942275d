"""Indentation against Lark's Indenter and Python's own parser."""

from __future__ import annotations

import ast
import io
import os
import tokenize
import warnings
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import ClassVar

import lark
import pytest
from lark.indenter import Indenter, PythonIndenter

from formalm import ArgumentError, Grammar
from formalm.grammars import PYTHON

TREE = r"""
    start: (_NL | item)*
    item: NAME [group] (_NL | ":" _NL _INDENT item+ _DEDENT)
    group: "(" NAME* ")"
    NAME: /[ab]/
    _NL: /(\r?\n[\t ]*)+/
    %declare _INDENT _DEDENT
    %ignore " "
"""


class Tree(Indenter):
    """Indentation of the grammar above."""

    NL_type = "_NL"
    OPEN_PAREN_types: ClassVar = ["LPAR", "LSQB"]
    CLOSE_PAREN_types: ClassVar = ["RPAR", "RSQB"]
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 4


def test_indenter_is_read_as_lark_does() -> None:
    parser = lark.Lark(TREE, parser="lalr", postlex=Tree())
    grammar = Grammar.from_lark(parser)
    random = Random(1)
    pieces = [
        "a",
        "b",
        ":",
        "\n",
        "\n  ",
        "\n    ",
        "\n\t",
        "\n \t",
        "(",
        ")",
        " ",
        "a:\n    ",
        "\n\n",
    ]
    accepted = 0
    for _ in range(4000):
        text = "".join(random.choice(pieces) for _ in range(random.randint(1, 9)))
        try:
            parser.parse(text)
            member = True
        except (lark.exceptions.LarkError, AssertionError, IndexError):
            member = False
        assert grammar.matches(text) == member, text
        if member:
            accepted += 1
            assert all(grammar.is_viable(text[:at]) for at in range(len(text)))
    assert accepted > 200


def test_terminals_look_ahead_beyond_their_lexemes_with_indentation() -> None:
    text = r"""
        start: _NL? line+
        line: (word | STRING | KEY)+ (_NL | ":" _NL _INDENT line+ _DEDENT)
        word: NAME | "(" word* ")"
        NAME: /a(?!b)/
        KEY: /k(?=:|a)/
        STRING: /"(?!"").*?"/
        _NL: /(\r?\n[\t ]*)+/
        %declare _INDENT _DEDENT
        %ignore " "
    """
    parser = lark.Lark(text, parser="lalr", postlex=Tree())
    grammar = Grammar.from_lark(parser)

    def takes(text: str) -> bool:
        try:
            parser.parse(text)
        except (lark.exceptions.LarkError, AssertionError, IndexError):
            return False
        return True

    random = Random(2)
    pieces = ["a", "b", "k", '"', '""', ":", "\n", "\n  ", "\n    ", "(", ")", " ", "a\n", "k:\n  "]
    accepted = viable = 0
    for _ in range(12_000):
        text = "".join(random.choice(pieces) for _ in range(random.randint(1, 8)))
        assert grammar.matches(text) == takes(text), text
        if takes(text):
            accepted += 1
            assert all(grammar.is_viable(text[:at]) for at in range(len(text))), text
        elif grammar.is_viable(text):
            viable += 1
            assert takes(grammar.shortest(text).decode()), text
    assert accepted > 200
    assert viable > 200


@pytest.mark.parametrize(
    "count", [15, pytest.param(400, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_larks_own_python_is_read_as_lark_does(count: int) -> None:
    parser = lark.Lark.open_from_package(
        "lark",
        "python.lark",
        ["grammars"],
        parser="lalr",
        start="file_input",
        postlex=PythonIndenter(),
    )
    grammar, random = Grammar.from_lark(parser), Random(count)
    small = [one for one in library() if 300 < one.stat().st_size < 6000]
    for path in random.sample(small, min(count, len(small))):
        whole = path.read_text("utf-8", errors="replace").rstrip() + "\n"
        at = random.randrange(len(whole))
        for text in (whole, whole[:at] + random.choice("()[]{}:=,.'\"\\ \n#@1*") + whole[at:]):
            try:
                parser.parse(text)
                member = True
            except (lark.exceptions.LarkError, AssertionError):
                member = False
            assert grammar.matches(text) == member, text


def test_an_indenter_that_is_another_program_is_refused() -> None:
    class Odd(Tree):
        def handle_NL(self, token: lark.Token) -> Iterator[lark.Token]:
            yield token

    parser = lark.Lark(TREE, parser="lalr", postlex=Odd())
    with pytest.raises(ArgumentError, match="code changes"):
        Grammar.from_lark(parser)


def is_python(text: str) -> bool:
    """Whether Python's own parser takes a text."""
    return refusal(text) is None


def refusal(text: str) -> str | None:
    """Return why Python's own parser refuses a text."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError) as error:
            return str(error)
    return None


PIECES = [
    *["x", "pass", "if x:"] * 6,
    "else:",
    "while y: z",
    "(",
    ")",
    "f(a,",
    "# note",
    "class A:",
]
PIECES += ['"""', "'s'", "x = 1;", "def f(): return", "@d", "try:", "finally:", "\\", "=", "+", "]"]
BLANKS = ["", "", "  ", "    ", "\t", " \t", "\f", "        ", "  \f ", "\t\t"]
BREAKS = ["\n", "\n", "\n", "\r\n", "\n\n", "\r", "\n  \n", "\n# c\n", "\n      # c\n", "\\\n"]


@pytest.mark.parametrize(
    "count", [400, pytest.param(20_000, marks=[pytest.mark.slow, pytest.mark.timeout(1200)])]
)
def test_lines_of_python_are_what_python_reads(count: int) -> None:
    random = Random(count)
    accepted = 0
    for _ in range(count):
        indents = random.choices(BLANKS, k=2)
        lines = (
            random.choice([*indents, ""])
            + " ".join(random.choices(PIECES, k=random.choice([1, 1, 1, 1, 1, 2])))
            + random.choice(BREAKS)
            for _ in range(random.randint(1, 6))
        )
        text = "".join(lines)
        if not is_odd(text):
            assert PYTHON.matches(text) == is_python(text), text
            accepted += is_python(text)
    assert accepted > count // 25


def is_odd(text: str) -> bool:
    """Whether a text joins lines where Python does it by rules of its own: at the very end, and in
    front of the first word of a line.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    joined = [line for line in lines if line.endswith("\\")]
    return any(not line[:-1].strip() for line in joined) or (bool(joined) and not lines[-1].strip())


@cache
def library() -> list[Path]:
    """Return the modules of the standard library."""
    folder = Path(os.__file__).parent
    return [one for one in sorted(folder.rglob("*.py")) if "site-packages" not in one.parts]


def source(path: Path) -> str | None:
    """Return the text of a module that Python reads."""
    try:
        with tokenize.open(path) as file:
            text = file.read()
    except (SyntaxError, UnicodeDecodeError):
        return None
    return text if is_python(text) else None


@pytest.mark.parametrize(
    "step", [199, pytest.param(1, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_modules_of_the_library_are_members(step: int) -> None:
    texts = [text for text in map(source, library()[::step]) if text is not None]
    members = sum(map(PYTHON.matches, texts))
    assert members >= 0.995 * len(texts)
    assert len(texts) > 1500 // step


def mutated(text: str, random: Random) -> str:
    """Return a text with a lexeme or a character left out, doubled or changed."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    spans = [
        (starts[one.start[0] - 1] + one.start[1], starts[one.end[0] - 1] + one.end[1])
        for one in tokenize.generate_tokens(io.StringIO(text).readline)
        if one.string and one.end[0] <= len(lines)
    ]
    (start, end), (first, last) = random.choice(spans), random.choice(spans)
    at = random.randrange(len(text))
    return random.choice(
        [
            text[:start] + text[end:],
            text[:start] + text[start:end] * 2 + text[end:],
            text[:start] + text[first:last] + text[end:],
            text[:at] + random.choice("()[]{}:=,.'\"\\ \n\t#@!x1*-") + text[at:],
            text[:at] + text[at + 1 :],
        ]
    )


#: What Python refuses once it reads what is in strings, and names of characters.
WITHIN_STRINGS = ("f-string", "unicode error", "unknown Unicode character name")


@pytest.mark.parametrize(
    "count", [30, pytest.param(1000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_mutated_modules_have_the_same_verdict(count: int) -> None:
    random = Random(count)
    small = [one for one in library() if 300 < one.stat().st_size < 6000]
    rejected = 0
    while rejected < count:
        text = source(random.choice(small))
        if text is None or not text.strip():
            continue
        text = mutated(text, random)
        if is_odd(text):
            continue
        why = refusal(text)
        within = why is not None and any(one in why for one in WITHIN_STRINGS)
        assert within or PYTHON.matches(text) == (why is None)
        rejected += why is not None and not within


def test_words_are_read_whole() -> None:
    for text in ("f(x int.y)", "x inner", "a isnot b", "x = 1 orb"):
        assert not is_python(text)
        assert not PYTHON.matches(text), text
    for text in ("x = 1if y else 2", "x = [0xfor y in z]"):
        assert is_python(text) == PYTHON.matches(text), text
