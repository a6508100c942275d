"""Parsers within the rules of a grammar: their texts."""

from __future__ import annotations

from itertools import product

import pytest

from formalm import Constraint, Grammar, Regex, Vocabulary
from tests.support.parsers import Bytes, Equal, Letters, Nested

READINGS = ("longest", "first", "any")


def nested(text: str, least: int = 1) -> bool:
    half = len(text) // 2
    return text == "a" * half + "b" * half and half >= least


def words(letters: str, most: int) -> list[str]:
    return ["".join(word) for size in range(most + 1) for word in product(letters, repeat=size)]


@pytest.mark.parametrize("lexing", READINGS)
@pytest.mark.parametrize("kind", [Nested, Equal, Bytes])
def test_a_parser_can_be_used_in_a_rule(lexing: str, kind: type[Nested]) -> None:
    grammar = Grammar(
        '%declare n\nstart: "(" n ")" | n "," n', languages={"n": kind()}, lexing=lexing
    )

    def is_member(text: str) -> bool:
        first, comma, second = text.partition(",")
        if text[:1] == "(" and text[-1:] == ")" and len(text) > 1:
            return nested(text[1:-1])
        return bool(comma) and nested(first) and nested(second)

    members = [word for word in words("ab(),", 6) if is_member(word)]
    assert len(members) == 3
    for word in words("ab(),", 6):
        assert grammar.matches(word) == is_member(word), word
    assert grammar.is_viable("(aa")
    assert not grammar.is_viable("(b")
    assert not grammar.is_viable("ab)")
    assert not grammar.is_viable("(aab)b")
    tree = grammar.parse("aabb,ab")
    assert [one.text for one in tree.find("n")] == ["aabb", "ab"]


@pytest.mark.parametrize("lexing", READINGS)
@pytest.mark.parametrize("least", [0, 1])
def test_all_possible_ends_are_followed(lexing: str, least: int) -> None:
    """Where a parser ends is ambiguous, and it may be empty."""
    parts = [("ab", least, 2), ("b", 1, 1), ("bc", least, 3)]
    one, two = Letters(*parts[0]), Letters(*parts[2])
    grammar = Grammar(
        '%declare one two\nstart: one "b" two', languages={"one": one, "two": two}, lexing=lexing
    )

    def ways(text: str, at: int) -> int:
        if at == len(parts):
            return int(not text)
        letters, fewest, most = parts[at]
        found = 0
        for size in range(fewest, min(most, len(text)) + 1):
            if set(text[:size]) <= set(letters):
                found += ways(text[size:], at + 1)
        return found

    members = 0
    for word in words("abc", 6):
        count = ways(word, 0)
        assert grammar.matches(word) == bool(count), word
        if count:
            members += 1
            assert grammar.parse(word).ways == count, word
    assert members > 20
    # Viable is what has not been refused.
    begins = {word[:size] for word in words("abc", 6) if ways(word, 0) for size in range(len(word))}
    assert all(grammar.is_viable(one) for one in begins)


@pytest.mark.parametrize("lexing", READINGS)
def test_unsupported_parsers_are_refused_at_once(lexing: str) -> None:
    never = Letters("", 1, 5)
    grammar = Grammar(
        '%declare never\nstart: "a" never | "b" never?',
        languages={"never": never},
        lexing=lexing,
    )
    assert [word for word in words("ab", 3) if grammar.matches(word)] == ["b"]
    assert [word for word in words("ab", 3) if grammar.is_viable(word)] == ["", "a", "b"]


def test_forbidden_words_are_forbidden_inside_sublanguages() -> None:
    text = "%declare tail\nstart: WORD tail\nWORD: /[a-z]+/"
    tail = Letters("abc!", 1, 9)
    longest = Grammar(text, languages={"tail": tail})
    free = Grammar(text, languages={"tail": tail}, lexing="any")
    assert longest.matches("ab!c")
    assert not longest.matches("abc")
    assert free.matches("abc")
    assert longest.parse("ab!c").ways == 1
    assert free.parse("ab!c").ways == 2


@pytest.mark.parametrize(("first", "second", "least"), [("b+", "ba", 1), ("a+", "ab", 0)])
def test_a_completion_search_after_a_parser_terminates(first: str, second: str, least: int) -> None:
    """The second alternative has no member, and texts that begin it go on without an end."""
    letter = first[0]
    text = f'%declare p\nstart: p? | A start+ B\nA: /{first}/\nB: "{second}"'
    regular, asked = (
        Grammar(text, languages={"p": one}, lexing="first")
        for one in (Regex(f"{letter}{{{least},3}}"), Letters(letter, least, 3))
    )
    for word in words("abc", 5):
        assert asked.matches(word) == regular.matches(word), word
        # What is not refused may be a dead end, and never the other way round.
        assert asked.is_viable(word) >= regular.is_viable(word), word
    assert not asked.is_viable("c")
    # Masks tell what is not refused in the same way, in whatever order they are asked.
    tokens = [word.encode() for word in words("abc", 2) if word]
    vocabulary = Vocabulary.from_tokens(tokens)
    constraint = Constraint(asked, vocabulary)
    for word in ["b", "a", "bb", "aa", ""]:
        matcher = constraint.matcher()
        if not asked.is_viable(word):
            continue
        matcher.advance_bytes(word.encode())
        mask = matcher.mask()
        assert mask.tolist() == [asked.is_viable(word.encode() + token) for token in tokens]
