"""Adjacent Python words without whitespace, against Python's own parser."""

import io
import tokenize
from itertools import pairwise
from random import Random

import pytest

from formalm.grammars import PYTHON
from tests.parity.test_indenter import WITHIN_STRINGS, is_odd, is_python, library, refusal, source

#: Words, numbers and texts that touch, in statements.
TOUCHING = [
    *("for x inrange(3): pass", "x = a andb", "x = a if b elsec", "from a importb", "a isb"),
    *("import a asb", "raise A fromb", "try:\n  a\nexceptE:\n  b", "a notin b", "a isnot b"),
    *("[a forb in c]", "[a for b in c ifd]", "x = (yieldx)", "from .importa", "from .import a"),
    *("import a assert", "import a async", "async deff(): pass", "lambdax: 1", "lambda:1"),
    *("0or 1", "00or 1", "10or 1", "0xfor x in y", "[0x1for x in y]", "1if 2else 3", "1or1or 2"),
    *("1_000and 2", "0_or 1", "1jif x else y", "1e5in x", "0b1and 1", "0o7or 1", "1if2else 3"),
    *("1.or 2", "1eelse 2", "1not in x", "1notin x", "1is not x", "1isnot x", "0xeelse"),
    *(
        "x if 0xeelse 2",
        "x if 1e5else 2",
        "1iné",
        "1é",
        "1or é",
        "éin b",
        "1_",
        "0x",
        "1.e",
        "0777",
    ),
    *("with 1as b: pass", "with 0x1as b: pass", "raise 1from x", "raise 0xfrom x", "1async"),
    *("[1async for x in y]", "with 1.as b: pass", "with 1jas b: pass", "x = yield 1from x"),
    *("match x:\n  case 1as y: pass", "match x:\n  case 1if y: pass", "matchx:\n  case 1: pass"),
    *(
        'match"a":\n  case"b"if x: pass',
        'if"a": pass',
        'notr"a"',
        'not r"a"',
        '1 in"a"',
        '1 orb"a"',
    ),
    *("''\"a\"", "''''", "'''a'", "'' 'a'", "'''a'''", "''", "''''''", "''''''''", "r'''a'''r''"),
    *(
        "b''b\"\"",
        "b'''b'",
        "f''f'a'",
        "\"\"'a'\"\"'''\n'''",
        "''\\\n'a'",
        "(''#a\n'b')",
        "(''\n'b')",
    ),
    *("''b'a'", "''r'a'", "global x", "globalx", "passx", "pass#a", "a in\\\nb", "x = Nonex"),
]


@pytest.mark.parametrize("text", TOUCHING)
def test_words_that_touch_are_what_python_reads(text: str) -> None:
    assert PYTHON.matches(text + "\n") == is_python(text + "\n")


def joined(text: str, random: Random) -> str:
    """Return a text without the blanks between two lexemes of a line."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    lexemes = list(tokenize.generate_tokens(io.StringIO(text).readline))
    gaps = [
        (starts[one.end[0] - 1] + one.end[1], starts[two.start[0] - 1] + two.start[1])
        for one, two in pairwise(lexemes)
        if one.string.strip() and two.string.strip() and one.end[0] == two.start[0]
    ]
    gaps = [(start, end) for start, end in gaps if start < end]
    start, end = random.choice(gaps)
    return text[:start] + text[end:]


@pytest.mark.parametrize(
    "count", [60, pytest.param(3000, marks=[pytest.mark.slow, pytest.mark.timeout(3600)])]
)
def test_modules_with_joined_words_have_the_same_verdict(count: int) -> None:
    random, rejected = Random(count), 0
    small = [one for one in library() if 300 < one.stat().st_size < 6000]
    for _ in range(count):
        text = source(random.choice(small))
        if text is None or not text.strip() or "=" not in text:
            continue
        text = joined(text, random)
        why = refusal(text)
        if is_odd(text) or (why is not None and any(one in why for one in WITHIN_STRINGS)):
            continue
        assert PYTHON.matches(text) == (why is None)
        rejected += why is not None
    assert rejected > count // 20
