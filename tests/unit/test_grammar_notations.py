"""What is easily read as something else in EBNF and GBNF."""

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
def test_numbers_and_classes_are_told_apart(
    text: str, members: list[str], others: list[str]
) -> None:
    grammar = Grammar(text, syntax="ebnf")
    assert all(grammar.matches(one) for one in members)
    assert not any(grammar.matches(one) for one in others)


@pytest.mark.parametrize(
    "text", ["[", "[a-z]+", "a [ = 'x' ;", "[1", "[]", "[1] [2] [", "a [1] = 'x' ;"]
)
def test_brackets_that_number_nothing_are_refused(text: str) -> None:
    with pytest.raises(LanguageError, match="line 1"):
        Grammar(text, syntax="ebnf")


def test_a_sign_of_numbers_alone_is_refused() -> None:
    with pytest.raises(LanguageError, match="begins the number of a character"):
        Grammar("a ::= 'x' # b\nb ::= 'y'", syntax="ebnf")
    assert Grammar("a ::= '#' [#] #x23", syntax="ebnf").matches("###")


def test_texts_of_gbnf_are_those_of_its_author() -> None:
    assert Grammar('root ::= "a\nb"', syntax="gbnf").matches("a\nb")
    assert Grammar(r'root ::= [a\-c] "\-"', syntax="gbnf").matches("--")
    with pytest.raises(LanguageError, match="no closing quote"):
        Grammar('root ::= "a\nb', syntax="gbnf")
