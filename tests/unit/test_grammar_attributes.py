"""Attributes of definitions: what is captured, how long texts are, what ends them."""

import pickle
from itertools import product

import pytest

from formalm import Grammar, LanguageError, Regex
from formalm.languages import from_data, to_data

READINGS = ("longest", "any")


def words(letters: str, length: int) -> list[str]:
    return ["".join(word) for size in range(length + 1) for word in product(letters, repeat=size)]


@pytest.mark.parametrize("lexing", READINGS)
@pytest.mark.parametrize("name", ["TEXT", "text"])
@pytest.mark.parametrize("body", ["/[ab]+/", '/a*/ "b"', "/[a-c]+/"])
def test_bounds_are_their_definition(name: str, body: str, lexing: str) -> None:
    inner = Grammar(f"start: X\nX: {body}", lexing="any")
    for stop, most in ((None, 3), ("ab", None), ("cb", 4), ("aa", 3)):
        given = [] if stop is None else [f'stop="{stop}"']
        given += [] if most is None else [f"max_bytes={most}"]
        text = f'start: "<" {name} ">"\n{name}[{", ".join(given)}]: {body}'
        grammar = Grammar(text, lexing=lexing)
        for word in words("abc", 5):
            expected = most is None or len(word) <= most
            if stop is None:
                expected = expected and inner.matches(word)
            else:
                ends = word.endswith(stop) and word.find(stop) == len(word) - len(stop)
                expected = expected and ends and inner.matches(word[: -len(stop)])
            assert grammar.matches(f"<{word}>") == expected, (text, word)


def test_bytes_are_counted_and_not_characters() -> None:
    grammar = Grammar('start: T "!"\nT[max_bytes=5]: /[^!]+/')
    assert [grammar.matches(one + "!") for one in ("aaaaa", "éé", "ééa", "ééé", "😀é", "😀a")] == [
        True,
        True,
        True,
        False,
        False,
        True,
    ]
    assert grammar.is_viable("éé".encode() + b"a")
    assert not grammar.is_viable("éé".encode() + b"\xc3")
    assert grammar.is_viable(b"a" + b"\xf0")
    assert not grammar.is_viable(b"aa\xf0")


@pytest.mark.parametrize("lexing", READINGS)
def test_captures_are_where_rules_and_terminals_are(lexing: str) -> None:
    grammar = Grammar(
        r"""
        start: (pair ";")*
        pair: KEY "=" (_value | "[" list "]")
        list[capture="all"]: KEY ("," KEY)*
        KEY[capture]: /[a-zé]+/
        _value[capture="value", stop="!"]: /[0-9]*/
        """,
        lexing=lexing,
    )
    assert [group.name for group in grammar.groups] == ["all", "KEY", "value"]
    start, end = grammar.groups[0].start, grammar.groups[0].end
    assert grammar.text[start:end] == "list"
    found = grammar.captures("é=12!;b=[c,d];")
    assert found is not None
    assert found.groupdict() == {"all": "c,d", "KEY": "d", "value": "12"}
    assert (found.span("value"), found.span("all")) == ((2, 4), (9, 12))
    as_bytes = grammar.captures("é=12!;".encode())
    assert as_bytes is not None
    assert as_bytes.span("value") == (3, 5)
    empty = grammar.captures("")
    assert empty is not None
    assert empty.groups() == (None, None, None)
    assert grammar.captures("é=") is None
    assert pickle.loads(pickle.dumps(grammar)) == grammar  # noqa: S301
    assert from_data(to_data(grammar)) == grammar


def test_a_name_of_several_rules_is_the_last_of_them() -> None:
    grammar = Grammar('start: one two one?\none[capture="x"]: /1+/\ntwo[capture="x"]: /2+/')
    for text, last in (("12", "2"), ("1211", "11")):
        found = grammar.captures(text)
        assert found is not None
        assert found["x"] == last


@pytest.mark.parametrize("lexing", READINGS)
def test_a_bounded_rule_may_be_empty(lexing: str) -> None:
    short = Grammar('start: "<" text ">"\ntext[max_bytes=2]: /a*/', lexing=lexing)
    assert [short.matches(one) for one in ("<>", "<aa>", "<aaa>")] == [True, True, False]
    ends = Grammar('start: "<" text ">"\ntext[stop="a"]: /[ab]*/', lexing=lexing)
    assert [ends.matches(one) for one in ("<a>", "<bba>", "<>", "<aa>")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_bounded_rule_is_one_lexeme() -> None:
    """Nothing is ignored within it, and it competes as a terminal does."""
    text = 'start: text "b"\ntext[stop="."]: WORD WORD\nWORD: /[a-z]+/\n%ignore " "'
    grammar = Grammar(text)
    assert grammar.matches(" ab. b ")
    assert not grammar.matches("a b. b")
    with pytest.raises(LanguageError, match="language operators refers to itself"):
        Grammar('start: text\ntext[max_bytes=9]: "(" text? ")"')


def test_unknown_attributes_are_refused() -> None:
    refused = {
        "a[capture, capture]: /x/": "line 2: capture is given twice",
        "a[max_bytes=0]: /x/": "max_bytes must be 1 to",
        'a[stop=""]: /x/': "an attribute string must be non-empty",
        'a[stop="x"i]: /x/': "and case-sensitive",
        "a[max_tokens=5]: /x/": "max_tokens is not supported",
        "a[lazy]: /x/": 'lazy is not supported; use stop="string"',
        "a[max_bytes]: /x/": "unknown attribute max_bytes",
        "a[foo=1]: /x/": "unknown attribute foo",
        "a[]: /x/": "expected a name",
        "a{b}[max_bytes=2]: b": "a template cannot have max_bytes",
        'a[stop="."]: /x*?/': "line 2: .* lazy quantifiers",
    }
    for text, message in refused.items():
        start = "a{/x/}" if "{" in text else "a"
        with pytest.raises(LanguageError, match=message):
            Grammar(f"start: {start}\n{text}")
    with pytest.raises(LanguageError, match="does not support"):
        Grammar('start: a\na[stop="."]: /x/', lexing="first")
    with pytest.raises(LanguageError, match="this one has none"):
        Grammar("start: /a/").captures("a")
    assert Grammar("start: /a/").groups == ()


def test_a_bounded_terminal_is_part_of_others() -> None:
    grammar = Grammar('start: A\nA: "[" B "]"\nB[max_bytes=2, stop="."]: C*\nC: "x" | "é"')
    assert [grammar.matches(one) for one in ("[.]", "[x.]", "[xx.]", "[é.]", "[x]")] == [
        True,
        True,
        False,
        False,
        False,
    ]
    given = Grammar(
        'start: A "," A\n%declare L\nA[max_bytes=2]: L', languages={"L": Regex("[0-9]+")}
    )
    assert given.matches("12,3")
    assert not given.matches("123,4")
