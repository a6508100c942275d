"""Python lines joined by a backslash, against Python's own parser, over all short strings."""

from __future__ import annotations

import ast
import warnings
from itertools import product

import pytest

from formalm import Constraint, Vocabulary
from formalm.grammars import PYTHON

#: Pieces that small modules are put together from, so many at a time.
ALPHABETS = [
    (("\\", "\n", " ", "#c", "x", "if x:"), 5),
    (("\\\n", " ", "\n", "x", "if x:", "  ", "#c\n"), 5),
    (("\\", "\n", " ", "\t", "x", "class r:", "#c"), 5),
    (("\\", "\r", "\n", " ", "x", "if x:", "#"), 5),
    (("\\", "\f", " ", "\n", "x", "if x:"), 5),
    (("(", ")", "\\\n", "\n", " ", "x", ",", "#c\n"), 5),
    (("\\\n", '""', "\n", " ", "class r:", ";", "x"), 5),
    (("x\\\r\n", "\\\r\n", "\n", "  ", "\r", "if x:"), 5),
    (("\\\n", "@", "x", "\n", "def f():", " ", "else:", "if x:"), 5),
]


def is_module(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ast.parse(text)
        except (SyntaxError, ValueError):
            return False
    return True


@pytest.mark.parametrize(
    ("text", "valid"),
    [
        ("\\\n\n", True),
        ("x\n\\\n\n", True),
        ("\\\n#c\n", True),
        ('class r:\n\\\n ""', True),
        ("\\\n x\n", False),
        ("if x:\n  y\n  \\\nz", True),
        ("if x:\n  y\n  \\\n\t  z", True),
        ("if x:\n  y\n \\\n  z", False),
        ("\\\n", False),
        ("x\\\n", False),
        ("x \\\n ", True),
        ("if x:\n  y\n  \\\n", False),
        ("if x:\n  y\n  \\\n ", True),
    ],
)
def test_a_backslash_in_the_indentation_joins_lines(text: str, valid: bool) -> None:
    assert is_module(text) is valid
    assert PYTHON.matches(text) is valid


@pytest.mark.parametrize(("alphabet", "most"), ALPHABETS)
def test_all_short_modules_are_those_of_python(alphabet: tuple[str, ...], most: int) -> None:
    for count in range(most + 1):
        for parts in product(alphabet, repeat=count):
            text = "".join(parts)
            assert PYTHON.matches(text) == is_module(text), text


@pytest.mark.slow
@pytest.mark.parametrize(("alphabet", "most"), ALPHABETS)
def test_all_longer_modules_are_those_of_python(alphabet: tuple[str, ...], most: int) -> None:
    for parts in product(alphabet, repeat=most + 1):
        text = "".join(parts)
        assert PYTHON.matches(text) == is_module(text), text


@pytest.mark.parametrize(
    "alphabet", [("\\", "\n", " ", "if x:", "x", "#c"), ("\\", "\r", "\n", " ", "if x:x")]
)
def test_every_viable_prefix_can_be_completed(alphabet: tuple[str, ...]) -> None:
    for count in range(5):
        for parts in product(alphabet, repeat=count):
            text = "".join(parts)
            if not PYTHON.is_viable(text):
                continue
            whole = PYTHON.shortest(text).decode()
            assert whole.startswith(text)
            assert is_module(whole), whole


def test_masks_know_joined_lines() -> None:
    tokens = [b"\\\n", b"\\", b"\n", b" ", b"x", b"if x:", b"\\\n x", b"  \\\n y", b"#c"]
    constraint = Constraint(PYTHON, Vocabulary.from_tokens(tokens))
    for ids in product(range(len(tokens)), repeat=3):
        matcher = constraint.matcher()
        for token_id in ids:
            if not matcher.mask()[token_id]:
                text = matcher.text + tokens[token_id]
                assert not PYTHON.is_viable(text), text
                break
            matcher.advance(token_id)
        else:
            assert matcher.is_accepting == is_module(matcher.text.decode())
