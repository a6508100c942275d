"""Easily misread syntax of Lark, EBNF and GBNF."""

from typing import Literal

import lark
import pytest

from formalm import Grammar, LanguageError


@pytest.mark.parametrize(
    ("text", "members", "others"),
    [
        ("bit ::= [01]\nbyte ::= bit bit", ["0", "1"], ["", "00"]),
        ("n ::= [0-9]+ e [0-9]+\ne ::= [eE]\nsign ::= [+-]", ["1e2"], ["12"]),
        ("s ::= 'x' | [ab]\ny ::= 'y'", ["x", "a", "b"], [""]),
        ("[1] a ::= b [01]\n[2] b ::= 'y' [34]\n[3] c ::= 'z'", ["y30", "y41"], ["y", "y0"]),
        ("[1] a ::= 'x' b\n[ 2 ] b ::= 'y'", ["xy"], ["xy "]),
        ("[1-2] a ::= 'x' b\n[2'] b ::= 'y'", ["xy"], ["xy2"]),
        ("[1] a ::= (b [01])\n[4a] b ::= 'y'", ["y0"], ["y"]),
    ],
)
def test_counts_and_character_classes_are_distinguished(
    text: str, members: list[str], others: list[str]
) -> None:
    grammar = Grammar(text, syntax="ebnf")
    assert all(grammar.matches(one) for one in members)
    assert not any(grammar.matches(one) for one in others)


@pytest.mark.parametrize(
    "text", ["[", "[a-z]+", "a [ = 'x' ;", "[1", "[]", "[1] [2] [", "a [1] = 'x' ;"]
)
def test_brackets_without_counts_are_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="line 1"):
        Grammar(text, syntax="ebnf")


def test_a_hash_sign_without_a_number_is_refused() -> None:
    with pytest.raises(LanguageError, match="starts a character code"):
        Grammar("a ::= 'x' # b\nb ::= 'y'", syntax="ebnf")
    assert Grammar("a ::= '#' [#] #x23", syntax="ebnf").matches("###")


def test_gbnf_literals_mean_what_its_reference_parser_reads() -> None:
    assert Grammar('root ::= "a\nb"', syntax="gbnf").matches("a\nb")
    assert Grammar(r'root ::= [a\-c] "\-"', syntax="gbnf").matches("--")
    with pytest.raises(LanguageError, match="no closing quote"):
        Grammar('root ::= "a\nb', syntax="gbnf")


def test_line_ends_mean_what_the_reference_parser_reads() -> None:
    grouped = Grammar('root ::= ("a"\n*\n"b"\n{2}) "c"', syntax="gbnf")
    assert grouped.matches("aabbc")
    assert grouped.matches("bbc")
    assert not grouped.matches("abc")
    old = Grammar('root ::= a # one\ra ::= "x"\r', syntax="gbnf")
    assert old.matches("x")
    with pytest.raises(LanguageError, match="line 2: expected a rule name"):
        Grammar('root ::= "a"\n* "b"', syntax="gbnf")


@pytest.mark.parametrize("text", ["[]", "[^]", '"a" [] "b"'])
@pytest.mark.parametrize("syntax", ["gbnf", "ebnf"])
def test_classes_without_characters_are_refused(syntax: Literal["gbnf", "ebnf"], text: str) -> None:
    with pytest.raises(LanguageError, match="line 1: the character class is empty"):
        Grammar(f"root ::= {text}", syntax=syntax)


@pytest.mark.parametrize("number", ["<[12]>", "<[12-15]>", "<[12,15]>", "<[^7]>"])
@pytest.mark.parametrize(("syntax", "sign"), [("lark", ":"), ("gbnf", "::=")])
def test_numbers_of_tokens_are_refused(
    syntax: Literal["lark", "gbnf"], sign: str, number: str
) -> None:
    with pytest.raises(LanguageError, match="line 2: token ids are not supported"):
        Grammar(f"\nroot{sign} {number}", syntax=syntax, start="root")
    assert not Grammar(f"root{sign} <[pad]>", syntax=syntax, start="root").is_empty()


def test_any_token_is_refused() -> None:
    with pytest.raises(LanguageError, match=r"any token\) is not supported"):
        Grammar("start: <[*]>")


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ('start: "a"~2 ..3', ["aa", "aaa"]),
        ('start: "a"~2.. \\\n3 "b"', ["aab", "aaab"]),
        ('start .2: "a"', ["a"]),
        ('start: A\nA . 2: "a"', ["a"]),
        ('start: x {"a"}\nx {y}: y', ["a"]),
        ("start: INT\n%import common .INT", ["1"]),
        ("start: D\n%import common. \\\n INT -> D", ["1"]),
        ("start: INT\n%import common (INT)", ["1"]),
    ],
)
def test_lark_whitespace_is_allowed_where_lark_allows_it(text: str, members: list[str]) -> None:
    grammar, parser = Grammar(text), lark.Lark(text, parser="lalr")
    for one in members:
        assert parser.parse(one).data == "start"
        assert grammar.matches(one)


@pytest.mark.parametrize("text", ["%import common.\n", "%import commonINT", "%import .common.INT"])
def test_paths_that_do_not_exist_are_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="cannot be imported"):
        Grammar(f"start: INT\n{text}")


def test_lark_lines_continue_after_a_backslash() -> None:
    text = 'start: "a" \\\n  "b"\\  \n | "c" \\\r\n "d" \\\n\n%ignore \\\n " "\nX \\\n : "x"\n'
    grammar = Grammar(text)
    assert grammar.matches("ab")
    assert grammar.matches("c d")
    assert not grammar.matches("a")
    assert lark.Lark(text.replace("\r", ""), parser="lalr").parse("a b").data == "start"
    with pytest.raises(LanguageError, match="line 1"):
        Grammar('start: "a" \\ "b"')
    with pytest.raises(LanguageError, match="line 1"):
        Grammar('start: "a" \\')


@pytest.mark.parametrize(
    ("syntax", "text", "message"),
    [
        ("lark", '%llguidance {}\nstart: "a"', "options of llguidance"),
        ("ebnf", "a ::= { 'x' }", "belongs to the EBNF that uses"),
        ("ebnf", "a ::= 'x'\n@terminals\nb ::= 'y'", "annotations that start with @"),
        ("gbnf", "root ::= +", "expected a name, a string, a character class or a bracket"),
        ("gbnf", 'root ::= !"a"', "expected a name, a string, a character class or a bracket"),
        (
            "ebnf",
            "a ::= [a-c] - [b] - [c]",
            "expected a name, a string, a character class or a bracket",
        ),
    ],
)
def test_syntax_of_other_notations_is_refused_with_a_reason(
    syntax: Literal["lark", "gbnf", "ebnf"], text: str, message: str
) -> None:
    with pytest.raises(LanguageError, match=message):
        Grammar(text, syntax=syntax)
