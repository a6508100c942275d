"""Edits, rewriting and reversal, as a user meets them."""

import copy
import sys
from itertools import product

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    LanguageError,
    LimitError,
    Regex,
    StringLiteral,
    Vocabulary,
)
from formalm.languages import Edit, Region, spelling_variants

PRINTABLE = Regex("[ -~]")


def test_members_are_among_the_edited() -> None:
    near = Choice(["kitten", "mitten"]).edits(1)
    assert all(map(near.matches, ["kitten", "bitten", "kittn", "kittten"]))
    assert not near.matches("fitting")
    assert StringLiteral("a").edits(0).matches("a")
    assert not StringLiteral("a").edits(0).matches("b")


def test_characters_are_edited_not_bytes() -> None:
    near = StringLiteral("Zürich").edits(1)
    assert near.matches("Zurich")
    assert near.matches("Z😀rich")
    assert near.matches("Zürich😀")
    assert not near.matches("Zuerich")
    assert not near.matches("Z\xfcrich".encode("latin-1"))


def test_the_alphabet_is_what_may_be_written() -> None:
    near = StringLiteral("né").edits(1, alphabet="ab")
    assert [text for text in ["né", "n", "nb", "né ", "naé", "no"] if near.matches(text)] == [
        "né", "n", "nb", "naé",
    ]  # fmt: skip


def test_operations_are_selected() -> None:
    texts = {"insert": "abc", "delete": "a", "substitute": "ax"}
    for operation in texts:
        near = StringLiteral("ab").edits(1, operations=operation)
        assert [name for name, text in texts.items() if near.matches(text)] == [operation]
    assert not StringLiteral("ab").edits(2, operations=()).matches("a")


def test_a_script_lists_each_edit_and_its_position() -> None:
    script = Regex("[0-9]{4}-[0-9]{2}").edits(3).script("199-1O")
    assert script is not None
    assert script.count == 2
    assert [edit.operation for edit in script.edits] == ["delete", "substitute"]
    assert script.edits[1] == Edit("substitute", 6, 5, "0", "O")
    assert Regex("[0-9]{4}-[0-9]{2}").matches(script.member)
    assert StringLiteral("abc").edits(1).script("xyz") is None
    assert StringLiteral("abc").edits(1).script("\ud800bc") is None
    exact = StringLiteral("abc").edits(1).script("abc")
    assert exact is not None
    assert exact.count == 0


def test_regions() -> None:
    sentence = Regex("The (?P<who>man|woman) was trained in (?P<work>art|science)")
    near = sentence.edits(1, region="work")
    assert near.matches("The man was trained in ark")
    assert not near.matches("The men was trained in art")
    script = near.script("The woman was trained in art.")
    assert script is not None
    assert script.edits == (Edit("insert", 28, 28, "", "."),)
    tail = StringLiteral("to be or not to be").edits(
        1, region=Region(after=Regex(".{9}"), before=StringLiteral("be"))
    )
    assert tail.matches("to be or net to be")
    assert not tail.matches("go be or not to be")
    assert not tail.matches("to be or not to bee")


def test_members_without_the_region_are_not_edited() -> None:
    near = Choice(["ab", "xb"]).edits(1, region=Region(after=StringLiteral("a")))
    assert near.matches("xb")
    assert not near.matches("xc")
    assert near.matches("ac")


def test_rewriting() -> None:
    text = StringLiteral("a big, big dog")
    words = {"big": ["large", "huge"]}
    every = text.rewrite(words)
    assert every.matches("a large, huge dog")
    assert not every.matches("a large, big dog")
    some = text.rewrite(words, optional=True)
    assert some.matches("a large, big dog")
    assert some.matches("a big, big dog")
    assert StringLiteral("abc").rewrite({"b": ""}).matches("ac")
    assert StringLiteral("x2y").rewrite({"2": Regex("[0-9]{2,3}")}).matches("x717y")


def test_rewriting_and_edits_compose() -> None:
    near = StringLiteral("Hello, World").rewrite(spelling_variants.case(), optional=True).edits(1)
    assert near.matches("hELLO World")
    assert not near.matches("hELLO Word")
    both = StringLiteral("it's").rewrite(spelling_variants.punctuation(), optional=True).reverse()
    assert both.matches("s\u2019ti")


def test_case_variants_are_all_that_python_knows() -> None:
    table = spelling_variants.case()
    for letter in map(chr, range(sys.maxunicode + 1)):
        forms = {letter.upper(), letter.lower(), letter.title()} - {letter}
        if forms != set(table.get(letter, [])):
            pytest.fail(f"{letter!r}: {sorted(forms)} against {table.get(letter)}")
    table["a"].append("changed")
    assert "changed" not in spelling_variants.case()["a"]


def test_variants_work_both_ways() -> None:
    spaces = spelling_variants.whitespace()
    assert StringLiteral("a\u00a0b").rewrite(spaces, optional=True).matches("a b")
    for quotes in product("'\u2019", repeat=2):
        text = "{}x{}".format(*quotes)
        quoted = StringLiteral("'x'").rewrite(spelling_variants.punctuation(), optional=True)
        assert quoted.matches(text)


def test_reversal() -> None:
    for language, member in [
        (Regex("ab+c"), "cbba"),
        (Regex(r"(?=a.*z)\w+"), "zya"),
        (Regex(r"a\b.*"), "c- a"),
        (StringLiteral("Zü") + Regex("[0-9]"), "1üZ"),
        (Regex("[ab]+") - StringLiteral("ab"), "ab"),
        (StringLiteral("abc").edits(1, region=Region(after=StringLiteral("a"))), "xba"),
    ]:
        assert language.reverse().matches(member), language
        assert language.reverse().reverse().matches(member[::-1])


def test_edited_languages_constrain() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", b"c", b"\xc3", b"\xa9", None], [6])
    matcher = Constraint(StringLiteral("ab").edits(1), vocabulary).matcher()
    assert matcher.mask().tolist() == [True, True, True, True, True, False, False]
    matcher.advance(3)
    assert matcher.mask().tolist() == [True, True, True, False, False, False, False]


@pytest.mark.parametrize(
    ("build", "error"),
    [
        (lambda: StringLiteral("a").edits(-1), ArgumentError),
        (lambda: StringLiteral("a").edits(True), ArgumentError),
        (lambda: StringLiteral("a").edits(1.0), ArgumentError),
        (lambda: StringLiteral("a").edits(101), LimitError),
        (lambda: StringLiteral("a").edits(1 << 70), LimitError),
        (lambda: Regex("a").edits(1, region="\ud800"), LanguageError),
        (lambda: Regex("a").value(3), ArgumentError),
        (lambda: StringLiteral("a").edits(1, alphabet=3), ArgumentError),
        (lambda: StringLiteral("a").edits(1, alphabet=""), LanguageError),
        (lambda: StringLiteral("a").edits(1, alphabet=Regex("ab")), ArgumentError),
        (lambda: StringLiteral("a").edits(1, alphabet="\ud800"), LanguageError),
        (lambda: StringLiteral("a").edits(1, operations=["swap"]), ArgumentError),
        (lambda: StringLiteral("a").edits(1, operations=3), ArgumentError),
        (lambda: StringLiteral("a").edits(1, region=3), ArgumentError),
        (lambda: StringLiteral("a").edits(1, region="x"), LanguageError),
        (lambda: Regex("a").edits(1, region="x"), LanguageError),
        (lambda: Regex("(?P<x>a)*").edits(1, region="x"), LanguageError),
        (lambda: StringLiteral("a").edits(1, region=Region(after="a")), LanguageError),
        (lambda: StringLiteral(b"\xff").edits(1), LanguageError),
        (lambda: StringLiteral("a").edits(1).script(b"a"), ArgumentError),
        (lambda: StringLiteral("a").rewrite({}), LanguageError),
        (lambda: StringLiteral("a").rewrite({"": "a"}), LanguageError),
        (lambda: StringLiteral("a").rewrite({"a": []}), LanguageError),
        (lambda: StringLiteral("a").rewrite({"a": 3}), LanguageError),
        (lambda: StringLiteral("a").rewrite({3: "a"}), ArgumentError),
        (lambda: StringLiteral("a").rewrite([("a", "b")]), ArgumentError),
        (lambda: StringLiteral("a").rewrite({"a": "b"}, optional=1), ArgumentError),
        (lambda: StringLiteral("a").rewrite({"\ud800": "b"}), LanguageError),
        (lambda: Regex("(?>ab|a)c").reverse(), LanguageError),
        (lambda: StringLiteral("aba").rewrite({"ab": "x", "ba": "y"}).reverse(), LanguageError),
    ],
)
def test_impossible_edits_are_refused(build, error) -> None:
    with pytest.raises(error):
        build()


def test_copies_are_equal() -> None:
    for language in [
        StringLiteral("a").edits(1),
        StringLiteral("a").rewrite({"a": "b"}),
        Regex("a").reverse(),
    ]:
        for again in [copy.copy(language), copy.deepcopy(language)]:
            assert again == language
            assert hash(again) == hash(language)


def test_scripts_of_optional_regions() -> None:
    sentence = Regex("The (?P<who>man )?ran")
    near = sentence.edits(2, region="who")
    for text in ["The mn ran", "The ran", "The man  ran"]:
        script = near.script(text)
        assert script is not None
        assert sentence.matches(script.member)
        assert script.count == {"The mn ran": 1, "The ran": 0, "The man  ran": 1}[text]


def test_a_script_is_bounded_in_memory() -> None:
    with pytest.raises(LimitError) as caught:
        StringLiteral("ab" * 1500).edits(90).script("ba" * 1460)
    assert caught.value.what == "bytes"
    assert caught.value.hint is not None


def test_one_target_is_one_target() -> None:
    assert StringLiteral("a").rewrite({"a": "b"}) == StringLiteral("a").rewrite({"a": ["b"]})
