"""``Regex.matches`` against Python's ``re.fullmatch``."""

from __future__ import annotations

import random
import re
import sys
import warnings
from itertools import product
from typing import Any

import pytest

from formalm import LanguageError, LimitError, Regex
from tests.parity.regex_cases import flag_bits, load

DATA = load()
TEXTS = ["", *("".join(letters) for n in range(1, 5) for letters in product("ab", repeat=n))]
TEXTS += ["é", "aé", "éa", "a\n", "\n", "ab\n", "a b", " ", "aa bb", "abé", "a\na", "ababab"]


def ours(pattern: str, flags: int = 0, dialect: str = "python") -> Regex | None:
    """The language, or nothing where it has no member."""
    language = Regex(pattern, flags, dialect=dialect)
    try:
        language.automaton()
    except LanguageError:
        return None
    return language


@pytest.mark.parametrize("case", DATA["case"], ids=lambda case: case["name"])
def test_a_case(case: dict[str, Any]) -> None:
    flags = flag_bits(case["flags"])
    language = ours(case["pattern"], flags, case["dialect"])
    theirs = None
    if case["dialect"] == "python" and sys.version_info >= (3, 11):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = re.compile(case["pattern"], flags)
    for texts, expected in ((case["matches"], True), (case["rejects"], False)):
        for text in texts:
            assert (language is not None and language.matches(text)) is expected, text
            if theirs is not None:
                assert (theirs.fullmatch(text) is not None) is expected, text


@pytest.mark.parametrize("case", DATA["error"], ids=lambda case: case["pattern"][:30])
def test_a_refusal(case: dict[str, Any]) -> None:
    flags = flag_bits(case.get("flags", ""))
    with pytest.raises((LanguageError, LimitError)) as refused:
        Regex(case["pattern"], flags, dialect=case["dialect"])
    if isinstance(refused.value, LanguageError):
        assert case["message_contains"] in str(refused.value)
        assert refused.value.span == tuple(case["span"])


def sequence(draw: random.Random, depth: int) -> str:
    atoms = [
        "a",
        "b",
        "(?:ab)",
        "[ab]",
        ".",
        "é",
        r"\w",
        "[^a]",
        r"(?:\b)",
        r"(?:^)",
        "(?:$)",
        r"\s",
    ]
    behinds = ["a", "ab", "a(?=b)", r"\bab", "(?<!b)a", "^a", "a|b", "ab|ba"]
    counts = ["", "", "", "*", "+", "?", "*?", "+?", "*+", "++", "{2}", "{1,2}", "{,2}", "{0,2}+"]
    parts = []
    for _ in range(draw.randint(1, 3)):
        if depth == 0 or draw.random() < 0.5:
            part = draw.choice(atoms)
        elif draw.random() < 0.2:
            part = draw.choice(["(?<=", "(?<!"]) + draw.choice(behinds) + ")"
        else:
            inner = [sequence(draw, depth - 1) for _ in range(draw.randint(1, 2))]
            part = draw.choice(["(?:", "(", "(?>", "(?=", "(?!"]) + "|".join(inner) + ")"
        parts.append(part + draw.choice(counts))
    return "".join(parts)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="re has atomic groups from 3.11 on")
@pytest.mark.parametrize("seed", range(8))
def test_random_patterns(seed: int) -> None:
    draw = random.Random(seed)
    compared = limited = 0
    while compared < 60:
        pattern = sequence(draw, draw.choice([1, 1, 2]))
        if len(pattern) > 45:
            continue
        try:
            theirs = re.compile(pattern)
        except re.error:
            continue
        try:
            language = ours(pattern)
        except LimitError:  # atomic groups in loops can need unboundedly many conditions
            limited += 1
            assert limited < 3, pattern
            continue
        for text in TEXTS:
            try:
                expected = theirs.fullmatch(text) is not None
            except SystemError:  # a known fault of re with captures in possessive groups
                continue
            found = language is not None and language.matches(text)
            assert found is expected, (pattern, text)
        compared += 1
