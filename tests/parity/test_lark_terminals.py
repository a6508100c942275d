"""The priority of terminals, against Lark's contextual lexer."""

from __future__ import annotations

from random import Random

import lark
import pytest

from formalm import Grammar, LanguageError
from formalm.languages import Tree
from tests.parity.lark_parsers import read_by_both, without_conflicts

CASES, AT_A_TIME = 40, 25

IMPORTS = [
    *("DIGIT", "HEXDIGIT", "INT", "SIGNED_INT", "DECIMAL", "FLOAT", "SIGNED_FLOAT", "NUMBER"),
    *("SIGNED_NUMBER", "ESCAPED_STRING", "LCASE_LETTER", "UCASE_LETTER", "LETTER", "WORD"),
    *("CNAME", "WS_INLINE", "WS", "CR", "LF", "NEWLINE", "SH_COMMENT", "CPP_COMMENT"),
    *("SQL_COMMENT", "C_COMMENT"),
]

#: Terminals that read much of the same, some of them as others are written.
BODIES = [
    *('"a"', '"a"i', "/a/", '"1.5"', '"A"', r"/\x41/", r'"\n"', r"/\n/", r'"\x0a"', "/[0-9]/"),
    *('"0".."9"', '"a".."z"', "/[a-z]/", "/[a-z0-9]+/", "/[0-9a-f.]+(e[0-9])?/", "/x{1,30}/"),
    *("/.+?;/", r'/"[a-z]*"?/', r"/(?:[ ]?\n|-)/", r"/[^\n]+/", "/#[^\\n]*/", "/--[^\\n]*/"),
    *(r"/\/\/[^\n]*/", r'"\t".."\r"', r"/[\t-\r]/", r'"\/"', r"/\//", r'"\\"', r'"\-"', "/a/s"),
    *('("a" | "ab")+', '"a" /b/', '"a"~2', '["-"] "1"', "/[a-z]+/i", '"é"', r"/\u00e9/"),
]

SAMPLES = [
    *("1", "12", "1.5", "1e5", "-3", "+2.5", "a", "A", "ab", "Ab_1", '"a"', '"a', "x", "xx", " "),
    *("\n", "\t ", "--a", "//a", "#a\n", "/*a*/", "ab1", "a;", "1.", "e5", ".5", "1.5e-3", "-\n"),
    *("\\/", "/", "\\", "\\-", "-", "\r", "\t", "é", "aa", "-1", "z", "aab"),
]


#: Imports that end where Lark's pattern could go on, if more of a terminal follows.
ENDING = frozenset(["ESCAPED_STRING", "C_COMMENT"])


def random_body(random: Random, names: list[str], depth: int = 2) -> str:
    """A terminal, of others too."""
    draw = random.random() if depth else 0

    def part() -> str:
        return random_body(random, names, depth - 1)

    if draw < 0.5:
        return random.choice([*names, *BODIES])
    if draw < 0.65:
        return f"({part()} | {part()})"
    if draw < 0.8:
        return f"{part()} {part()}"
    if draw < 0.9:
        return f"({part()}){random.choice(['?', '*', '+', '~2', '~1..2'])}"
    return f"[{part()}] {part()}"


def random_grammar(random: Random) -> str:
    """Alternatives of two rules, mostly of one terminal each, which trees call by their numbers."""
    names = [f"N{at}" for at in range(random.randint(0, 3))]
    imports = random.sample(IMPORTS, random.randint(0, 3))
    symbols = [*names, *imports, *random.sample(BODIES, random.randint(1, 4))]
    random.shuffle(symbols)
    rules: dict[str, list[str]] = {"one": [], "two": []}
    for at, symbol in enumerate(symbols):
        rules[random.choice(["one", "one", "two"])].append(f"{symbol} -> r{at}")
    rules = {name: parts for name, parts in rules.items() if parts}
    lines = [f"{name}: {' | '.join(parts)}" for name, parts in rules.items()]
    lines.append(f"start: ({' | '.join(rules)})+")
    for at, name in enumerate(names):
        body = random_body(random, [*names[:at], *(set(imports) - ENDING)])
        lines.append(f"{name}{random.choice(['', '', '.1'])}: {body}")
    lines += [f"%import common.{name}" for name in imports]
    if random.random() < 0.3:
        lines.append(f"%ignore {random.choice([*names, *imports, *BODIES])}")
    random.shuffle(lines)
    return "\n".join(lines)


def larks(parser: lark.Lark, text: str) -> list[str] | None:
    """The alternatives that Lark reads, if it reads the text."""
    try:
        return [one.data for one in parser.parse(text).children if isinstance(one, lark.Tree)]
    except lark.exceptions.UnexpectedInput:
        return None


def ours(grammar: Grammar, text: str) -> list[str] | None:
    try:
        if not grammar.matches(text):
            return None
    except LanguageError:  # It has no members.
        return None
    tree = grammar.parse(text)
    return [one.name for one in tree.children if isinstance(one, Tree)]


@pytest.mark.parametrize("seed", range(CASES))
def test_the_terminals_of_members_are_larks(seed: int) -> None:
    random, members = Random(seed), 0
    for grammar, parser in read_by_both(random, random_grammar, AT_A_TIME):
        for _ in range(30):
            member = "".join(random.choice(SAMPLES) for _ in range(random.randint(1, 3)))
            wanted = larks(parser, member)
            assert ours(grammar, member) == wanted, (grammar.text, member)
            members += wanted is not None
    assert members


def test_alternatives_that_match_more_in_lark_are_noted() -> None:
    for body, told in [
        ('/a|b/ "c"', True),
        ('"c" (/a|b/)', True),
        ('("c" B)+', True),
        ("/(?:a|b)/ /c/", False),
        ('/a|b/i "c"', False),
        ("/a|b/", False),
        ("DECIMAL /c/", False),
        ('/a|b/? "c"', False),
        ('"x" "y" | /a|b/', False),
    ]:
        text = f"start: A\nA: {body}\nB: /a|b/\n%import common.DECIMAL"
        notes = [one.message for one in Grammar(text, lexing="first").notes]
        assert any("in the terminal A, /a|b/ is one part" in one for one in notes) is told, body
        assert not any("one part" in one.message for one in Grammar(text).notes)


def test_an_import_may_be_written_twice() -> None:
    text = 'start: INT "!"\n%import common.INT\n%import common (WS, INT)\n%import common.INT'
    assert without_conflicts(text) is not None
    assert Grammar(text).matches("12!")
    for again in ["%import common.WS -> INT", "INT: /[0-9]+/"]:
        with pytest.raises(LanguageError, match="line 3: INT is defined twice"):
            Grammar(f"start: INT\n%import common.INT\n{again}")


@pytest.mark.parametrize("body", [r"a\/b", r"\.", r"\d", r"\'", r"\\", r"\\n", r"\"", r"\n", r"\ "])
def test_backslashes_in_texts_are_larks(body: str) -> None:
    text = f'start: "{body}" "!"'
    (read,) = [one for one in lark.Lark(text, parser="lalr").terminals if one.name != "BANG"]
    assert Grammar(text).shortest() == f"{read.pattern.value}!".encode()
