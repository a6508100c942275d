"""Mistakes in grammars, endless expansion, and byte order marks."""

import re
from time import thread_time
from typing import Any

import pytest

from formalm import ArgumentError, Grammar, LanguageError, LimitError, Regex, grammars
from formalm.languages import Indentation

LINES = 'start: "a" _NEWLINE _INDENT _DEDENT\n_NEWLINE: /\\n+/\n%declare _INDENT _DEDENT'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start: A\nA: /a*/", "line 2: the terminal A matches the empty string"),
        ('\nbegin: "a"', r'line 2: the grammar has no start rule start.*\n.*\n.*\n.*start="begin"'),
        ('A: "a"', "no start rule start, nor any other"),
        ('start: "b"\n  | /a\n b/', "line 2: the pattern continues past the end of its line"),
        ("start: /a\n b", "line 1: the pattern has no closing slash"),
        ('start: "a"\n%ascii', "line 2: %ascii must precede all definitions"),
        ("%ascii\nstart: /a/u", "line 2: the flag u"),
        ("%trees\nstart: /a/", "line 1: expected keep_all_tokens or no_placeholders"),
        ("%trees keep_all\nstart: /a/", "line 1: expected keep_all_tokens or no_placeholders"),
    ],
)
def test_refusals_show_a_line(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as caught:
        Grammar(text).automaton()
    assert caught.match(message)


@pytest.mark.parametrize("languages", [None, 5, "A", [1], ["Ab"], [("A", 5)], {"A": "a"}])
def test_languages_of_another_type_are_refused(languages: Any) -> None:
    with pytest.raises(ArgumentError, match="languages must"):
        Grammar("%declare A\nstart: A", languages=languages)


def test_languages_may_be_given_as_pairs() -> None:
    pairs: Any = [("A", Regex("a"))]
    assert Grammar("%declare A\nstart: A", languages=pairs).matches("a")


def test_lines_need_ordered_lexemes() -> None:
    with pytest.raises(LanguageError, match='indentation requires lexing="longest"'):
        Grammar(LINES, lexing="any", indentation=Indentation(opening=(), closing=())).automaton()


def test_patterns_of_several_lines_have_the_verbose_flag() -> None:
    assert Grammar("start: /a   # one\n  b+  # many\n/x").matches("abb")


@pytest.mark.parametrize(
    ("text", "syntax"),
    [('start: "a"', "lark"), ('root ::= "a"', "gbnf"), ('a = "a";', "ebnf"), ("a ::= 'a'", "ebnf")],
)
def test_a_byte_order_mark_is_no_part_of_the_text(text: str, syntax: str) -> None:
    assert Grammar("\ufeff" + text, syntax=syntax).matches("a")
    with pytest.raises(LanguageError, match="line 2"):
        Grammar(f"\ufeff{text}\n{text[:-1]}", syntax=syntax)


def test_letters_may_be_those_of_ascii_only() -> None:
    text = 'start: "sk"i A /[k]/i\nA: /\\w/'
    for member, ascii_only in (
        ("SKxK", True),
        ("ſKxk", False),
        ("skéK", False),
        ("skx\u212a", False),
    ):
        assert Grammar(text).matches(member)
        assert Grammar(f"%ascii\n{text}").matches(member) == ascii_only


@pytest.mark.parametrize(
    "text",
    [
        't{x}: t{u{x}}\nu{x}: x x\nstart: t{"a"}',
        't{x}: "b" | t{u{x}}\nu{x}: x\nstart: t{"a"}',
        't{x}: "b" | t{u{x, x}}\nu{x, y}: x y\nstart: t{"a"}',
        't{x}: "b" | t{(x x x x x x x x)}\nstart: t{"a"}',
        "t{x}: " + "x " * 2000 + "\nstart: t{(" + '"a" ' * 2000 + ")}",
    ],
)
def test_templates_without_end_are_a_limit(text: str) -> None:
    start = thread_time()
    with pytest.raises(LimitError, match="terms"):
        Grammar(text)
    assert thread_time() - start < 2


@pytest.mark.parametrize(
    "text",
    [
        'start: start* | "b"',
        'start: start start | "b"',
        'start: start start | "b" "a" |',
        'start: "b" start "b" | "b"',
        'start: "(" start ")" start |',
    ],
)
def test_an_empty_intersection_is_detected(text: str) -> None:
    both = Grammar(text) & Regex("(?s).*c")
    start = thread_time()
    with pytest.raises(LanguageError, match="no string is a member"):
        both.matches("")
    assert thread_time() - start < 1


#: A member is a text of `one` that is none of `other`, which cannot be told in general.
WITHIN = """
start: one "c" "c" | other "cc" never | "b"
one: "a" one "b" | "a" "b"
other: "a" other "b" | {last}
never: W odd W
odd: B | W odd W
B: /[ab]/
W: /[ab]{{2}}/
"""


def test_undecided_rule_inclusion_is_not_an_error() -> None:
    within = Grammar(WITHIN.format(last='"a" "b"'))
    start = thread_time()
    with pytest.raises(LimitError, match="parse configurations"):
        within.is_viable("a")
    assert thread_time() - start < 1
    assert not within.matches("abcc")
    beyond = Grammar(WITHIN.format(last='"a" "a" "b" "b"'))
    assert beyond.shortest("a") == b"abcc"
    assert beyond.is_viable("a")
    assert not beyond.matches("aabbcc")


def test_many_parses_are_counted_in_bounded_time() -> None:
    text = (
        'start: right T0+ | right\nleft: T0 T1 | | left+\nright: left? T0 T0\nT1.2: "c"\nT0: /cbc/'
    )
    start = thread_time()
    with pytest.raises(LanguageError, match="empty"):
        Grammar(text, lexing="first").automaton()
    assert thread_time() - start < 1
    nested = Grammar('start: "a" start "a" | "b" start "b" | "c" start "c" |')
    counted = nested & Regex("((a|b|c){97})*")
    assert counted.shortest("abc") == b"abc" + b"a" * 188 + b"cba"
    assert thread_time() - start < 2


def messages(grammar: Grammar) -> list[str]:
    return [note.message for note in grammar.notes]


def test_rules_that_the_start_rule_does_not_use_are_noted() -> None:
    given = {"p": Grammar('start: "q"'), "WORD": Regex("w+")}
    text = '%declare p WORD\nstart: "x"\nA: "y" B\nB: "b"\ntwice{one}: one one'
    assert messages(Grammar(text, languages=given)) == [
        "the language p is unreachable from the start rule",
        "the terminal WORD is unreachable from the start rule",
        "the terminal A is unreachable from the start rule",
        "the terminal B is unreachable from the start rule",
        "the template twice is unreachable from the start rule",
    ]
    useless = '%declare p\nstart: "x"\nspare: p'
    assert messages(Grammar(useless, languages={"p": given["p"]})) == [
        "the language p is unreachable from the start rule",
        "the rule spare is unreachable from the start rule",
    ]
    span = Grammar(useless, languages={"p": given["p"]}).notes[0].span
    assert span is not None
    assert useless[slice(*span)] == "p"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("A: B", "B is not a defined terminal"),
        ("A: B C\nC: A", "B is not a defined terminal"),
        ('A: "a" C\nC: A', "a terminal refers to itself"),
        ("A: B & /b/", "B is not defined"),
        ("twice{one}: one other", "other is not defined"),
        ("twice{one}: one [OTHER]", "OTHER is not defined"),
        ("twice{one}: one twice{one, one}", "arguments of twice must be 1, got 2"),
        ("twice{one}: pair{one}\npair{a, b}: a b", "arguments of pair must be 2, got 1"),
    ],
)
def test_mistakes_in_unused_rules_are_refused(line: str, message: str) -> None:
    with pytest.raises(LanguageError, match=message) as caught:
        Grammar(f'start: "x"\n{line}')
    assert "line 2" in str(caught.value) or "line 3" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "syntax", "hint"),
    [
        ('start: "a" WS', "lark", "write %import common.WS"),
        ('start: "a"\n%ignore WS', "lark", "write %import common.WS"),
        ('start: A\nA: "a" | INT', "lark", "write %import common.INT"),
        ("start: select", "lark", 'put quotes around a keyword: "select"'),
        ("root ::= select", "gbnf", 'put quotes around a keyword: "select"'),
        ('start: "a" MINE', "lark", None),
        ("root ::= WS", "gbnf", None),
    ],
)
def test_undefined_names_have_hints(text: str, syntax: str, hint: str | None) -> None:
    with pytest.raises(LanguageError, match="defined") as caught:
        Grammar(text, syntax=syntax)
    assert hint in caught.value.hint if hint else caught.value.hint is None


@pytest.mark.parametrize(
    ("text", "syntax"),
    [
        ('a = b - d; b = "y"|"z"|"zz"; d = "zz";', "ebnf"),
        ('a = {b} - d; b = "y"; d = "yy";', "ebnf"),
        ('A ::= b - d\nb ::= e | "z"\ne ::= "y"\nd ::= "z"', "ebnf"),
        ('start: rb ra | start ra "c" | "b"\nra: ra rb\nrb: ', "lark"),
    ],
)
def test_symbols_in_differences_and_dead_alternatives_count_as_used(text: str, syntax: str) -> None:
    assert not [m for m in messages(Grammar(text, syntax=syntax)) if "unreachable" in m]


def test_symbols_that_are_used_anywhere_are_not_noted() -> None:
    given = {"p": Grammar('start: "q"'), "WORD": Regex("w+")}
    text = """
        %declare p WORD
        %import common.WS
        %ignore WS
        start: pair{p} "if" A
        pair{one}: one "," one
        IF: "if"
        A: WORD & B
        B: /[a-z]*/
    """
    assert messages(Grammar(text, languages=given)) == []
    bounded = 'start: short\nshort[max_bytes=3]: A+\nA: "a"'
    assert messages(Grammar(bounded)) == []
    for shipped in (grammars.JSON, grammars.SQL, grammars.PYTHON):
        assert messages(shipped) == []


@pytest.mark.parametrize(
    ("text", "syntax", "message"),
    [
        ('start: ("a" -> foo) "b"', "lark", "line 1: -> foo is not a valid alias"),
        ('start: "a" -> B', "lark", "line 1: -> B is not a valid alias"),
        ('start: "a" -> x -> y', "lark", "line 1: expected the end of the alternative"),
        ('start: "a" -> x "b"', "lark", "line 1: expected the end of the alternative"),
        ('start: A\nA: "x" -> foo', "lark", "line 2: the terminal A cannot have an alias"),
        (
            'start: t{"a", "b"}\nt{x, x}: x',
            "lark",
            "line 2: the template has two parameters named x",
        ),
        ("A ::= 'x' [WFC: Unique]", "ebnf", "line 1: constraints"),
        ("A ::= 'x' [ vc: Name ] 'y'", "ebnf", "line 1: constraints"),
        ('a = (* one (* two *) "x";', "ebnf", "line 1: the comment is not closed"),
    ],
)
def test_no_part_of_the_grammar_text_is_ignored(text: str, syntax: str, message: str) -> None:
    with pytest.raises(LanguageError, match=re.escape(message)):
        Grammar(text, syntax=syntax)


def test_comments_of_ebnf_contain_comments() -> None:
    assert Grammar('a = (* one (* two *) *) "x";', syntax="ebnf").matches("x")
    assert Grammar("A ::= [vwc]", syntax="ebnf").matches("v")
