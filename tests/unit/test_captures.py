"""Named groups: captures, values, and languages made of patterns."""

import json
import operator
import random
import re
from functools import reduce
from itertools import product

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Language,
    LanguageError,
    LimitError,
    Regex,
    StringLiteral,
    TableModel,
    TokenError,
    Vocabulary,
    generate,
)
from formalm.languages import Captures

DATE = Regex("(?P<year>[0-9]{4})(-(?P<month>[0-9]{2}))?")
WORD = Regex("(?P<word>[a-z]+)")


def captures(language: Language, text: str | bytes) -> Captures:
    found = language.captures(text)
    assert found is not None
    return found


def test_groups_by_number_and_by_name() -> None:
    found = captures(DATE, "1984-12")
    assert found.text == "1984-12"
    assert found.groups() == ("1984", "-12", "12")
    assert found.groupdict() == {"year": "1984", "month": "12"}
    assert (found[0], found[1], found["month"]) == ("1984-12", "1984", "12")
    assert (found.span(), found.span(2), found.span("month")) == ((0, 7), (4, 7), (5, 7))
    assert found == captures(DATE, "1984-12") != captures(DATE, "1984")
    assert hash(found) == hash(captures(DATE, "1984-12"))
    assert "1984" in repr(found)


def test_groups_that_took_no_part() -> None:
    found = captures(DATE, "1984")
    assert found.groups() == ("1984", None, None)
    assert found.groups("") == ("1984", "", "")
    assert found.groupdict("?") == {"year": "1984", "month": "?"}
    assert found["month"] is None
    assert found.span("month") is None


@pytest.mark.parametrize("group", ["day", 4, -1, None, True, 1.0, ("year",)])
def test_there_is_no_such_group(group: object) -> None:
    with pytest.raises(ArgumentError, match="group must be the number or name"):
        captures(DATE, "1984")[group]  # type: ignore[index]


def test_captures_are_immutable() -> None:
    with pytest.raises(AttributeError):
        captures(DATE, "1984").text = ""  # type: ignore[misc]


def test_spans_count_characters_of_a_text_and_bytes_of_bytes() -> None:
    language = Regex("(é+)(b)")
    assert captures(language, "ééb").spans == ((0, 2), (2, 3))
    assert captures(language, "ééb".encode()).spans == ((0, 4), (4, 5))
    assert captures(language, "ééb").groups() == captures(language, "ééb".encode()).groups()


@pytest.mark.parametrize("text", ["", "198", "1984-1", "\ud800", b"\xff"])
def test_strings_outside_the_language_have_no_captures(text: str | bytes) -> None:
    assert DATE.captures(text) is None


def test_languages_without_groups() -> None:
    for language in (StringLiteral("a"), Choice(["a", "b"]), Regex("a"), ~WORD, Regex("A") - DATE):
        assert language.groups == ()
    assert captures(Choice(["a"]), "a").groups() == ()
    assert Choice(["a"]).captures("b") is None


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        (DATE | WORD, "abc", {"year": None, "month": None, "word": "abc"}),
        (StringLiteral("abc") | WORD, "abc", {"word": None}),
        (DATE + StringLiteral(" ") + WORD, "1984 x", {"year": "1984", "month": None, "word": "x"}),
        (Regex("(?P<x>a*?)") + Regex("(?P<y>a*)b"), "aab", {"x": "aa", "y": ""}),
        ((WORD + StringLiteral(" ")).star(), "ab cd ", {"word": "cd"}),
        ((WORD + StringLiteral(" ")).star(), "", {"word": None}),
        (WORD * 2, "abcd", {"word": "d"}),
        (Regex("(?P<sign>-)").optional() + Regex("(?P<n>[0-9]+)"), "7", {"sign": None, "n": "7"}),
        (Regex("(?P<x>.)b") & Regex("a(?P<y>.)"), "ab", {"x": "a", "y": "b"}),
        (WORD - Regex("(?P<no>no)"), "yes", {"word": "yes"}),
        # A name used again stands for the last part that was matched.
        (DATE + StringLiteral("/") + DATE, "1984-12/1985", {"year": "1985", "month": None}),
        (DATE + (StringLiteral("/") + DATE).optional(), "1984-12", {"year": "1984", "month": "12"}),
        (Regex("(?P<x>a)") | Regex("(?P<x>b)"), "a", {"x": "a"}),
        # A part sees its own piece only.
        (Regex(r"(?P<x>a+)$") + Regex(r"^(?P<y>\bb)"), "aab", {"x": "aa", "y": "b"}),
    ],
    ids=repr,
)
def test_combinations(language: Language, text: str, expected: dict[str, str | None]) -> None:
    assert language.value(text) == expected
    names = [group.name for group in language.groups if group.name is not None]
    assert list(expected) == list(dict.fromkeys(names))


def divided(parts: list[Language], text: str) -> list[str] | None:
    """The definition: every part in turn takes as much as it can, tried by hand."""
    if not parts:
        return None if text else []
    for end in range(len(text), -1, -1):
        rest = divided(parts[1:], text[end:]) if parts[0].matches(text[:end]) else None
        if rest is not None:
            return [text[:end], *rest]
    return None


@pytest.mark.parametrize("seed", range(20))
def test_a_text_is_divided_by_the_definition(seed: int) -> None:
    draw = random.Random(seed)
    sources = [
        "a*",
        "a?b?",
        "ab|a|b",
        "(?:ab)+?",
        "[ab]{1,2}",
        "b+",
        "a(?=b)b?",
        r"\bb*",
        "(?!ab)[ab]*",
    ]
    parts = [Regex(f"({draw.choice(sources)})") for _ in range(draw.randint(2, 4))]
    row, repeated = reduce(operator.add, parts), parts[0] * len(parts)
    for text in ("".join(letters) for n in range(6) for letters in product("ab", repeat=n)):
        pieces = divided(list(parts), text)
        found = row.captures(text)
        assert (found and list(found.groups())) == pieces, (row, text)
        again = divided([parts[0]] * len(parts), text)
        last = repeated.captures(text)
        assert (last and last[1]) == (again and again[-1]), (repeated, text)


def test_groups_of_combinations_are_numbered_through() -> None:
    both = DATE + WORD
    assert [(group.number, group.name) for group in both.groups] == [
        (1, "year"),
        (2, None),
        (3, "month"),
        (4, "word"),
    ]
    assert captures(both, "1984ab").groups() == ("1984", None, None, "ab")


def test_members_that_are_not_utf8() -> None:
    language = StringLiteral(b"\xff") + WORD
    assert captures(language, b"\xffab").groups() == ("ab",)
    assert language.value(b"\xffab") == {"word": "ab"}
    assert StringLiteral(b"\xff").value(b"\xff") == "\ufffd"


def test_dialects_differ_in_what_an_iteration_forgets() -> None:
    pattern, text = "(z)((a+)?(b+)?(c))*", "zaacbbbcac"
    assert captures(Regex(pattern), text).groups() == ("z", "ac", "a", "bbb", "c")
    ecma = captures(Regex(pattern, dialect="ecma"), text)
    assert ecma.groups() == ("z", "ac", "a", None, "c")


def test_the_value_is_the_text_without_named_groups() -> None:
    assert Regex("(a)b").value("ab") == "ab"
    assert StringLiteral("a").value("a") == "a"


def test_a_text_that_is_no_member_has_no_value() -> None:
    with pytest.raises(TokenError):
        DATE.value("19")


def test_no_text_is_too_long_and_no_pattern_too_heavy() -> None:
    text = "a" * 100_000
    nested = Regex("((a+)+)+(?P<b>b)")
    assert nested.captures(text) is None
    assert nested.value(text + "b") == {"b": "b"}
    with pytest.raises(LimitError) as refused:
        Regex("(?:(?=(.*))a)*").captures(text, step_limit=1_000_000)
    assert (refused.value.what, refused.value.allowed) == ("steps", 1_000_000)
    with pytest.raises(LimitError):
        Regex("(a)").captures("a", step_limit=1)


@pytest.mark.parametrize("limit", [0, -1, 1.5, None, True, 1 << 63])
def test_a_step_limit_is_a_positive_integer(limit: object) -> None:
    with pytest.raises(ArgumentError, match="step_limit"):
        DATE.captures("1984", step_limit=limit)  # type: ignore[arg-type]


def test_wrong_input_is_refused() -> None:
    with pytest.raises(ArgumentError):
        DATE.captures(1984)  # type: ignore[arg-type]
    with pytest.raises(LanguageError):
        (Regex("(a)") & Regex("b")).captures("a")


def test_flags_reach_the_groups() -> None:
    assert captures(Regex("(?P<x>ß)(.)", re.I | re.S), "ẞ\n").groups() == ("ẞ", "\n")


def test_a_generation_has_the_named_groups_as_its_value() -> None:
    vocabulary = Vocabulary.from_tokens([b"9", b":", b"30", b"<end>"], end_token_ids=[3])
    model = TableModel(vocabulary, {}, default=[0.25] * 4)
    time = Regex("(?P<hours>9):(?P<minutes>30)?")
    one = generate(model, None, Constraint(time, vocabulary), temperature=0, max_tokens=9)
    assert one.text == "9:30"
    assert one.value == {"hours": "9", "minutes": "30"}
    assert json.loads(json.dumps(one.value)) == one.value


def test_choices_keep_their_priority_among_patterns() -> None:
    language = Choice(["ab", "c"]) | Choice(["d"]) | Regex("(?P<x>d|e)") | Choice(["e"])
    taken = {text: language.value(text)["x"] for text in ("ab", "c", "d", "e")}
    assert taken == {"ab": None, "c": None, "d": None, "e": "e"}
    joined = Choice(["ab"]) | StringLiteral("") | Choice(["a", "ab"])
    assert list(joined.to_automaton()) == ["", "a", "ab"]
