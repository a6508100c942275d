"""Languages as values: built, combined, compared, pickled, refused."""

import pickle
import re

import pytest

from formalm import ArgumentError, Choice, Language, LanguageError, Regex, StringLiteral
from formalm.languages import Region, as_language

AB = Regex("[ab]+")

EXPRESSIONS = [
    AB,
    Regex("A", re.I | re.X),
    Regex("a", dialect="ecma"),
    StringLiteral("é"),
    StringLiteral(b"\xff"),
    Choice(["yes", "no"]),
    AB | StringLiteral("c"),
    AB & Regex("a+"),
    AB - StringLiteral("a"),
    ~AB,
    AB + StringLiteral("c") + AB,
    AB * 3,
    AB * (2, None),
    AB.star(),
    AB.plus(),
    AB.optional(),
    AB.edits(2),
    AB.edits(1, alphabet="ab", operations=["insert"], region=Region(after=StringLiteral("a"))),
    Regex("a(?P<x>b)").edits(1, alphabet=Regex("[a-z]"), region="x"),
    AB.rewrite({"a": "b", "b": ["x", ""]}),
    AB.rewrite({"a": Regex("c+")}, optional=True),
    AB.reverse(),
]


@pytest.mark.parametrize("language", EXPRESSIONS, ids=repr)
def test_a_language_is_a_value(language: Language) -> None:
    again = pickle.loads(pickle.dumps(language))  # noqa: S301
    assert again == language
    assert hash(again) == hash(language)
    assert repr(again) == repr(language)
    names = {
        "Regex": Regex,
        "StringLiteral": StringLiteral,
        "Choice": Choice,
        "re": re,
        "Region": Region,
    }
    assert eval(repr(language), names) == language  # noqa: S307


def test_different_descriptions_differ() -> None:
    assert len(set(EXPRESSIONS)) == len(EXPRESSIONS)
    assert Regex("a") != StringLiteral("a")


@pytest.mark.parametrize(
    ("language", "members", "others"),
    [
        (AB | StringLiteral("c"), ["a", "bab", "c"], ["", "ac"]),
        (AB & Regex("a+"), ["a", "aa"], ["b", "ab", ""]),
        (AB - StringLiteral("a"), ["aa", "b"], ["a", ""]),
        (~AB, ["", "c", "é", "abc"], ["a", "ab"]),
        (~~AB, ["ab"], ["", "c"]),
        (AB + StringLiteral("c"), ["ac", "bbc"], ["c", "a"]),
        (StringLiteral("ab") * 2, ["abab"], ["ab", "ababab", ""]),
        (2 * StringLiteral("ab"), ["abab"], ["ab"]),
        (StringLiteral("a") * (1, 3), ["a", "aaa"], ["", "aaaa"]),
        (StringLiteral("a") * (2, None), ["aa", "aaaaa"], ["a"]),
        (StringLiteral("a").star(), ["", "aaa"], ["b"]),
        (StringLiteral("a").plus(), ["a", "aaa"], [""]),
        (StringLiteral("a").optional(), ["", "a"], ["aa"]),
        (["x", "y"] | StringLiteral("z"), ["x", "y", "z"], ["xy"]),
        (["x", "y"] + StringLiteral("z"), ["xz", "yz"], ["z"]),  # noqa: RUF005
        (["x", "y"] - StringLiteral("y"), ["x"], ["y"]),
        (["x", "y"] & StringLiteral("y"), ["y"], ["x"]),
    ],
)
def test_algebra(language: Language, members: list[str], others: list[str]) -> None:
    assert [text for text in members if not language.matches(text)] == []
    assert [text for text in others if language.matches(text)] == []


def test_viable_means_some_member_starts_so() -> None:
    language = Regex("abc") | Regex("a[0-9]")
    assert [t for t in ["", "a", "ab", "abc", "a1", "b", "abcd"] if language.is_viable(t)] == [
        "", "a", "ab", "abc", "a1",
    ]  # fmt: skip
    assert (language - StringLiteral("abc")).is_viable("ab") is False
    assert language.shortest() == b"a0"
    assert language.shortest("ab") == b"abc"
    assert language.shortest("x") is None


def test_text_is_utf8() -> None:
    euro = Regex("[€]")
    assert euro.matches("€")
    assert euro.matches("€".encode())
    assert euro.is_viable("€".encode()[:2])
    assert not euro.matches("\ud800")
    assert not (~euro).matches(b"\xff")
    assert StringLiteral(b"\xff").matches(b"\xff")


def test_groups_are_kept() -> None:
    groups = Regex(r"(a)(?P<second>b)").groups
    assert [(group.number, group.name) for group in groups] == [(1, None), (2, "second")]


def test_flags() -> None:
    assert Regex("a.", re.I | re.S).matches("A\n")
    assert Regex("a # comment", re.X).matches("a")
    assert Regex(r"\w", re.U).matches("é")
    assert not Regex(r"\w", re.A).matches("é")
    assert Regex("a", re.I).flags == re.I


def test_a_pattern_is_refused_where_it_is_wrong() -> None:
    with pytest.raises(LanguageError) as caught:
        Regex("ab(c")
    assert caught.value.source == "ab(c"
    assert caught.value.span is not None
    assert "^" in str(caught.value)


@pytest.mark.parametrize(
    "build",
    [
        lambda: AB | "a",
        lambda: "a" + AB,
        lambda: AB & 3,
        lambda: as_language("a"),
        lambda: as_language(None),
        lambda: Choice([]),
        lambda: Choice("ab"),
        lambda: Choice(["a", 1]),
        lambda: StringLiteral(3),
        lambda: StringLiteral("\ud800"),
        lambda: Regex(b"a"),
        lambda: bool(AB),
        lambda: AB * 1_000_000,
    ],
)
def test_objects_that_are_not_languages_are_refused(build) -> None:
    with pytest.raises(LanguageError):
        build()


def test_a_bare_string_is_refused_with_both_readings() -> None:
    with pytest.raises(LanguageError) as caught:
        as_language("a|b")
    assert "StringLiteral" in str(caught.value)
    assert "Regex" in str(caught.value)


@pytest.mark.parametrize(
    "build",
    [
        lambda: Regex("a", re.L),
        lambda: Regex("a", re.A | re.U),
        lambda: Regex("a", "i"),
        lambda: Regex("a", dialect="perl"),
        lambda: AB * -1,
        lambda: AB * 1.5,
        lambda: AB * (3, 2),
        lambda: AB * (1, 2, 3),
        lambda: AB.matches(3),
        lambda: AB.automaton(state_limit=0),
    ],
)
def test_wrong_arguments(build) -> None:
    with pytest.raises(ArgumentError):
        build()


def test_the_empty_language_is_refused_when_compiled() -> None:
    nothing = Regex("a") & Regex("b")
    with pytest.raises(LanguageError):
        nothing.automaton()
