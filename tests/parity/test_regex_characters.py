"""Which single characters a class matches, against this Python's ``re``, over all of Unicode.

Only characters that this Python's Unicode version knows are compared. Two letters got a capital
in Unicode 16 and fold differently since; they are left out.
"""

from __future__ import annotations

import re
import sys
import unicodedata
import warnings
from collections.abc import Iterator

import pytest

from formalm import LanguageError
from formalm.languages import Regex

CHANGED = "\u019b\u0264"
UNKNOWN = {"Cn", "Cs", "Co"}
KNOWN = [
    character
    for character in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(character) not in UNKNOWN and character not in CHANGED
]
TEXT = "".join(KNOWN)
CLASSES = r"""
    \w \W \d \D \s \S . [\w\s] [^\w\d] [\Wa] [^\Wß] [a-z] [^a-z] [@-`] [^@-`] [\x00-\uffff]
    [K-\U0010ffff] [^K-\U0010ffff] [\u0150-\U00010000] [^\u1f00-\U00010410] [\u0200-\U00010000]
    [\U00010400-\U00010410] [^\U00010400-\U00010410] [\U00010400a] [\U00010428b] \U00010400
    [^\U00010400] a|ß \U00010400|a [\ud800-\udfff] [^\ud800] [\ud000-\ue000] [\u00df-\u00ff]
    [\u0130-\u0131] [\u2126-\u212b] [\u1c80-\u1c88\n] \W|[k] [\ufb00-\ufb06]
""".split()
FORMS = [r"\U%08x", r"[^\U%08x]", r"[\U%08x\n]", r"[\U%08x-\U%08x]"]
pytestmark = pytest.mark.slow


def related(character: str) -> set[str]:
    """Characters that folding might confuse with this one, and its neighbors."""
    found = {character, *"kKsSiIıİſ"}
    for _ in range(2):
        for one in list(found):
            found.update(one.lower() + one.upper() + one.casefold() + one.title())
    found.update(chr(ord(character) + step) for step in (-1, 1) if ord(character) + step > 0)
    return {one for one in found if unicodedata.category(one) not in UNKNOWN} - set(CHANGED)


def cased() -> Iterator[str]:
    """Characters that some case mapping changes or leads to."""
    changing = {c for c in KNOWN if c != c.lower() or c != c.upper()}
    yield from sorted(changing.union(*(related(c) for c in changing)))


@pytest.mark.parametrize("flags", [0, re.I, re.A, re.I | re.A, re.S], ids=str)
@pytest.mark.parametrize("pattern", CLASSES)
def test_a_class_matches_what_re_matches(pattern: str, flags: int) -> None:
    ours = Regex(pattern, flags)
    expected = set(re.compile(pattern, flags).findall(TEXT))
    if not expected:
        with pytest.raises(LanguageError, match="empty"):
            ours.matches("a")
        return
    assert {character for character in KNOWN if ours.matches(character)} == expected


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("flags", [re.I, re.I | re.A], ids=str)
def test_a_letter_matches_what_re_matches(form: str, flags: int) -> None:
    differing = []
    for character in cased():
        pattern = form % ((ord(character),) * form.count("%"))
        ours, theirs = Regex(pattern, flags), re.compile(pattern, flags)
        differing += [
            (pattern, text)
            for text in related(character)
            if ours.matches(text) != bool(theirs.fullmatch(text))
        ]
    re.purge()
    assert differing == []


@pytest.fixture(autouse=True)
def _no_future_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield
