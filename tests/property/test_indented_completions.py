"""Shortest completions where lines and levels matter, against all texts in order."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st

from formalm import Grammar, LimitError
from formalm.grammars import PYTHON
from formalm.languages import Indentation

LINES = r"""
    _NEWLINE: /(\n[ \t]*(#[^\n]*)?)+/
    %declare _INDENT _DEDENT
    %ignore " "
"""
BLOCK = "_NEWLINE _INDENT item+ _DEDENT"
# What must follow a block, may follow it, or begins inside of one.
RULES = [
    f'item: "x" _NEWLINE | "t" {BLOCK} "e" {BLOCK}',
    f'item: "x" _NEWLINE | "t" {BLOCK} ("e" _NEWLINE)? "f" _NEWLINE',
    f'item: "x" _NEWLINE | "t" {BLOCK} tail\ntail: | "e" tail | "f" _NEWLINE tail "e" _NEWLINE',
    f'item: "x" _NEWLINE | "(" "x"* ")" _NEWLINE | "t" {BLOCK} ("e" {BLOCK})+',
    'item: "x" _NEWLINE | body "e" body\nbody: "t" _NEWLINE _INDENT item body? _DEDENT',
    f'item: "xx" _NEWLINE | "t" {BLOCK} last\nlast: "f" _NEWLINE | "e" {BLOCK}',
]
BYTES = b"\t\n #()eftx"
# Texts of one length that are looked at.
MOST = 2_000


def grammar(rules: str, style: str) -> Grammar:
    opening, closing = (("(",), (")",)) if '"("' in rules else ((), ())
    indentation = Indentation(opening=opening, closing=closing, rules=style, tab=4)
    return Grammar(f"start: item+\n{rules}\n{LINES}", indentation=indentation)


GRAMMARS = [grammar(rules, style) for rules in RULES for style in ("python", "lark")]


def viable(language: Grammar, texts: list[bytes]) -> list[bytes]:
    """Those of some texts that some member begins with; none of a case that is not decided."""
    try:
        return [text for text in texts if language.is_viable(text)]
    except LimitError:
        reject()


def nearest(language: Grammar, begun: bytes) -> bytes | None:
    """The smallest of the shortest members that go on from a text; None if there are too many."""
    level = [begun]
    while len(level) < MOST:
        for text in level:
            if language.matches(text):
                return text
        level = viable(language, [text + bytes([byte]) for text in level for byte in BYTES])
    return None


@given(st.sampled_from(GRAMMARS), st.lists(st.integers(0, 99), max_size=14))
@settings(deadline=None)
def test_the_completion_is_the_first_in_order_of_all_strings(
    language: Grammar, choices: list[int]
) -> None:
    text = b""
    for choice in choices:
        nexts = viable(language, [text + bytes([byte]) for byte in BYTES])
        text = nexts[choice % len(nexts)]
    whole = language.shortest(text)
    assert whole is not None
    assert whole.startswith(text)
    assert language.matches(whole)
    wanted = nearest(language, text)
    assume(wanted is not None)
    assert whole == wanted


@pytest.mark.parametrize("tab", [1, 3, 4, 8])
@pytest.mark.parametrize("unit", [1, 2, 3, 4, 8])
def test_levels_are_closed_however_tabs_are_counted(unit: int, tab: int) -> None:
    rules = f'item: "x" _NEWLINE | "t" {BLOCK} "e" {BLOCK}'
    for style in ("lark", "python"):
        indentation = Indentation(opening=(), closing=(), rules=style, tab=tab)
        language = Grammar(f"start: item\n{rules}\n{LINES}", indentation=indentation)
        for depth in (1, 2, 5, 8, 12):
            lines = [" " * unit * level + "t\n" for level in range(depth)]
            begun = "".join(lines) + " " * unit * depth + "x"
            whole = language.shortest(begun)
            assert whole is not None
            assert whole.startswith(begun.encode())
            assert language.matches(whole)


@pytest.mark.parametrize(
    "begun", ["t\n\t\t  \tt", "t\n \t\t (xx", "t\n \tt\n \t \tx\n \te\n \t\t\tt"]
)
def test_blocks_that_must_come_at_a_column_are_found(begun: str) -> None:
    # Each of these needs more blocks behind it, at columns that tabs and blanks must lead to.
    assert grammar(RULES[3], "python").is_viable(begun)
    assert not grammar(RULES[3], "python").is_viable(begun + "e")


@pytest.mark.parametrize(
    ("begun", "rest"),
    [
        ("try:\n    try:\n        x", "\n    except:0\nexcept:0"),
        ("class A:\n    def f(self):\n        try:\n            x", "\n       \texcept:0"),
        ("if a:\n    try:\n        x = [", "]\n    except:0"),
        ("while a:\n try:\n  if b:\n   x", "\n except:0"),
        ("# note", ""),
        ("if a:\n    b\n  ", ""),
        (
            "try:\n  try:\n    try:\n      try:\n        try:\n          x",
            "\n       \texcept:0\n      except:0\n    except:0\n  except:0\nexcept:0",
        ),
    ],
)
def test_blocks_that_must_continue_are_closed_quickly(begun: str, rest: str) -> None:
    assert PYTHON.shortest(begun) == (begun + rest).encode()
