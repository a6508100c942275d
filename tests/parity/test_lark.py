"""``lexing="first"`` against Lark: its contextual lexer, and its lexer with exact contexts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from random import Random
from typing import Any, Literal

import lark
import pytest
from lark.common import LexerConf
from lark.lexer import BasicLexer, LexerState
from lark.utils import TextSlice

from formalm import ArgumentError, Grammar, LanguageError, LimitError
from tests.parity.lark_parsers import made, without_conflicts

CASES = 60
#: Those that are looked at with the slow tests, so many at a time.
MORE, AT_A_TIME = 5_000, 100

#: Texts and patterns that overlap in every way there is, over three letters.
PIECES = [
    '"a"',
    '"ab"',
    '"b"i',
    '"ba"',
    '"aba"i',
    "/a+/",
    "/[ab]+/",
    "/[ab]+/i",
    "/a*?b/",
    "/a|ab/",
    "/(a|ab)(c|bc)?/",
    "/b|c/",
    "/a?(ab)?b/",
    "/b{1,2}?a/",
    '"c"',
    '"a" /b+/',
    '("b" | "ba" | "bab")',
    '"a"~1..2',
]
IGNORED = ["/c+/", '"c"', "/ca?/", "/b/", "/[ab]/"]


def letters(body: str, names: list[str]) -> str:
    """Return a rule's body with a letter in place of each terminal."""
    return re.sub(r"T\d+", lambda found: f'"{chr(65 + names.index(found[0]))}"', body)


class Case:
    """A random grammar as Lark text, with the sequences of terminals that its rules allow."""

    def __init__(self, seed: int, pieces: Sequence[str] = tuple(PIECES)) -> None:
        random = Random(seed)
        names = [f"T{at}" for at in range(random.randint(1, 5))]
        rules = ["start", "left", "right"][: random.randint(1, 3)]
        lines = []
        for rule in rules:
            alternatives = []
            for _ in range(random.randint(1, 3)):
                symbols = [
                    random.choice([*names, *names, *rules]) for _ in range(random.randint(0, 3))
                ]
                alternatives.append(
                    " ".join(one + random.choice(["", "", "", "?"]) for one in symbols)
                )
            lines.append((rule, " | ".join(alternatives)))
        text = [f"{rule}: {body}" for rule, body in lines]
        for name, piece in zip(names, random.sample(pieces, len(names)), strict=True):
            text.append(f"{name}{random.choice(['', '', '', '.1', '.2'])}: {piece}")
        if random.random() < 0.5:
            text.append(f"%ignore {random.choice(IGNORED)}")
        spare = [name for name in names if not any(name in body for _, body in lines)]
        if spare:
            text.append(f"%ignore {random.choice(spare)}")
        self.text = "\n".join(text)
        self.names = names
        self.sequences = Grammar(
            "\n".join(f"{rule}: {letters(body, names)}" for rule, body in lines), lexing="any"
        )


class Reader:
    """Lark's own lexer, given at each place the terminals that a sentence allows there."""

    def __init__(self, case: Case, parser: lark.Lark) -> None:
        self.case = case
        self.terminals = {one.name: one for one in parser.terminals}
        self.ignored = list(parser.ignore_tokens)
        self.lexers: dict[frozenset[str], BasicLexer] = {}

    def letter(self, name: str) -> str:
        return chr(65 + self.case.names.index(name))

    def context(self, read: str) -> frozenset[str]:
        allowed = (
            n for n in self.case.names if self.case.sequences.is_viable(read + self.letter(n))
        )
        return frozenset([*allowed, *self.ignored])

    def lexer(self, context: frozenset[str]) -> BasicLexer:
        if context not in self.lexers:
            known = [self.terminals[name] for name in sorted(context) if name in self.terminals]
            conf = LexerConf(known, re, ignore=[n for n in self.ignored if n in self.terminals])
            conf.skip_validation = True
            self.lexers[context] = BasicLexer(conf)
        return self.lexers[context]

    def accepts(self, text: str) -> bool:
        read = ""
        state = LexerState(TextSlice.cast_from(text))
        while True:
            # The lexer skips what is ignored and reads on in the same context.
            context = self.context(read)
            if not context:
                return state.line_ctr.char_pos == len(text) and self.case.sequences.matches(read)
            try:
                token = self.lexer(context).next_token(state)
            except EOFError:
                return self.case.sequences.matches(read)
            except lark.exceptions.UnexpectedInput:
                return False
            if token.type not in self.case.names:
                return False
            read += self.letter(token.type)
            if not self.case.sequences.is_viable(read):
                return False


def texts(length: int) -> list[str]:
    return ["".join(t) for n in range(length + 1) for t in product("abc", repeat=n)]


@pytest.mark.parametrize("seed", range(CASES))
def test_first_is_larks_order_of_terminals(seed: int) -> None:
    check(seed)


#: Most grammars of a hundred on which the search for members may give up.
UNDECIDED = 10


@pytest.mark.slow
@pytest.mark.parametrize("first", range(CASES, MORE, AT_A_TIME))
def test_first_is_larks_order_of_many_terminals(first: int) -> None:
    decided = [check(seed) for seed in range(first, first + AT_A_TIME)]
    assert decided.count(False) <= UNDECIDED


#: Patterns that see what stands behind the lexeme, beside some that do not.
AHEAD = [
    *PIECES[::2],
    "/a(?=b)/",
    "/a(?!b)/",
    r"/[ab]+\b/",
    "/a*b(?=a|c)/",
    "/[ab]+?(?=c)/",
    "/(a|ab)(?!c)/",
    "/b(?=$)/",
    "/a$/",
    r"/b(?!.*a)/",
    "/[ab](?=[ab]{2})/",
    "/(?:b(?!bb))+/",
    '/a(?=bc)/ "b"',
]


@pytest.mark.parametrize("seed", range(CASES))
def test_first_looks_ahead_as_lark_does(seed: int) -> None:
    check(seed, AHEAD)


def check(seed: int, pieces: Sequence[str] = tuple(PIECES)) -> bool:
    """Compare the machine of a random grammar with the reader that Lark's lexer makes.

    False if the search for members gave up; it never guesses.
    """
    try:
        case = Case(seed, pieces)
        case.sequences.automaton()
    except LanguageError:
        return True
    parser = made(case.text, parser="earley", lexer="basic")
    if parser is None:
        return True
    reader = Reader(case, parser)
    all_texts = texts(5)
    members = [text for text in all_texts if reader.accepts(text)]
    try:
        machine = Grammar(case.text, lexing="first")
        machine.automaton()
    except LanguageError:
        assert not members, (case.text, members[:3])
        return True
    except LimitError:
        return False
    contextual = without_conflicts(case.text)
    alive = {text[:end] for text in members for end in range(len(text) + 1)}
    for text in all_texts:
        try:
            matches, viable = machine.matches(text), machine.is_viable(text)
        except LimitError:
            return False
        assert matches == (text in members), (case.text, text)
        assert viable or text not in alive, (case.text, text)
        if viable and len(text) <= 3:
            try:
                whole = machine.shortest(text)
            except LimitError:
                continue
            assert whole is not None
            assert reader.accepts(whole.decode()), (case.text, text, whole)
        if contextual is not None and not matches:
            with pytest.raises(lark.exceptions.UnexpectedInput):
                contextual.parse(text)
    return True


def both(text: str) -> tuple[lark.Lark, Grammar]:
    return lark.Lark(text, parser="lalr", lexer="contextual"), Grammar(text, lexing="first")


def read(parser: lark.Lark, text: str) -> bool:
    try:
        parser.parse(text)
    except lark.exceptions.UnexpectedInput:
        return False
    return True


def test_what_a_pattern_ignores_stays_ignored_although_a_text_matches_it() -> None:
    parser, grammar = both('start: NAME "if"?\nNAME: /[A-Z]+/\nBLANK: /[a-z ]+/\n%ignore BLANK')
    for text, member in [("A", True), ("Aif", True), ("A if", True)]:
        assert read(parser, text) is grammar.matches(text) is member


def test_a_pattern_becomes_a_text_that_is_ignored_and_fails() -> None:
    parser, grammar = both('start: NAME+\nNAME: /[a-z]+/\nSKIP: "skip"\n%ignore SKIP\n%ignore " "')
    for text, member in [("skipped", True), ("a skip", False), ("a ski", True)]:
        assert read(parser, text) is grammar.matches(text) is member


def test_the_first_lexeme_is_not_the_longest() -> None:
    text = "start: (INT | HEX | NAME)+\nINT: /0|[1-9][0-9]*/\nHEX: /0x[0-9a-f]{2}/\nNAME: /[a-z]+/"
    parser, grammar = both(text)
    for member in ["0xff", "0x", "12", "0xffx"]:
        assert read(parser, member) is grammar.matches(member)
    only = "start: INT+\nINT: /0|01/"
    parser, grammar = both(only)
    assert not read(parser, "01")
    assert not grammar.matches("01")
    assert Grammar(only).matches("01")


def test_the_first_lexeme_is_refused_for_other_syntaxes() -> None:
    with pytest.raises(LanguageError, match='requires syntax="lark"'):
        Grammar('root ::= "a"', syntax="gbnf", lexing="first")


def test_a_parser_of_lark_is_a_grammar() -> None:
    text = 'sum: NUMBER ("+" NUMBER)*\nNUMBER: /[0-9]+/\n%ignore " "'
    grammar = Grammar.from_lark(lark.Lark(text, parser="lalr", start="sum"))
    assert grammar == Grammar(text, lexing="first", start="sum")
    assert grammar.matches("1 + 2")
    every = lark.Lark(text, parser="earley", lexer="dynamic_complete", start="sum")
    assert Grammar.from_lark(every).lexing == "any"
    assert Grammar.from_lark(every, lexing="longest").lexing == "longest"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"parser": "earley"}, "dynamic"),
        ({"parser": "lalr", "lexer": "basic"}, "basic"),
        ({"parser": "lalr", "g_regex_flags": re.IGNORECASE}, "g_regex_flags"),
        ({"parser": "lalr", "lexer_callbacks": {"A": str}}, "lexer_callbacks"),
        ({"parser": "lalr", "start": ["start", "other"]}, "one start rule, got 2"),
    ],
)
def test_a_parser_with_more_than_its_text_is_refused(options: dict[str, Any], message: str) -> None:
    parser = lark.Lark('start: A\nother: A\nA: "a"', **options)
    with pytest.raises(ArgumentError, match=message):
        Grammar.from_lark(parser)
    with pytest.raises(ArgumentError, match=r"must be a lark\.Lark"):
        Grammar.from_lark('start: "a"')


@pytest.mark.parametrize("lexing", ["any", "longest", "first"])
def test_inner_texts_of_common_are_larks(lexing: Literal["any", "longest", "first"]) -> None:
    text = """
    start: PLAIN | QUOTED
    PLAIN: "<" _STRING_INNER ">"
    QUOTED: "'" _STRING_ESC_INNER "'"
    %import common._STRING_INNER
    %import common._STRING_ESC_INNER
    """
    grammar = Grammar(text, lexing=lexing)
    oracle = lark.Lark(text, parser="lalr", lexer="contextual")
    for letters in product("'\\<>a", repeat=5):
        for one in ("".join(letters[:3]), "".join(letters)):
            try:
                oracle.parse(one)
            except lark.exceptions.LarkError:
                continue
            assert grammar.matches(one), one
    assert not grammar.matches("'a\\'")
    assert not grammar.matches("<a\n>")
