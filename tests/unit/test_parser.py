"""Parsers as languages: what they are asked, and what is kept of them."""

from __future__ import annotations

from typing import Any

import pytest

from formalm import (
    Choice,
    Constraint,
    LimitError,
    ParseFailure,
    Parser,
    TokenError,
)
from tests.support.parsers import VOCABULARY, Counting, Reading, allowed


def test_a_parser_is_a_language() -> None:
    language = Reading("ab", 2)
    for text, member, viable in [
        ("abab", True, True),
        (b"", True, True),
        ("aba", False, True),
        ("abc", False, False),
        (b"a\xe2", False, False),
        ("\ud800", False, False),
    ]:
        assert (language.matches(text), language.is_viable(text)) == (member, viable)
    assert language.value("ab") == "ab"
    assert not language.is_empty()
    assert repr(language) == "<Reading>"
    # Longer than what is walked at a time for other languages.
    assert language.matches("ab" * 500)


def test_tokens_that_end_inside_a_character_need_bytes() -> None:
    assert allowed(Reading("a€")) == [0, 6, 8]

    class Bytewise(Parser):
        def __init__(self, read: bytes = b"") -> None:
            self.read = read

        def append_bytes(self, data: bytes) -> None:
            self.read += data
            if not b"\xe2\x82\xac".startswith(self.read):
                raise ParseFailure

        def copy(self) -> Bytewise:
            return Bytewise(self.read)

        @property
        def is_accepting(self) -> bool:
            return len(self.read) == 3

    assert allowed(Bytewise()) == [4, 6]
    matcher = Constraint(Bytewise(), VOCABULARY).matcher()
    matcher.advance(4)
    assert matcher.allowed_token_ids().tolist() == [5]
    matcher.advance(5)
    assert (matcher.is_accepting, matcher.is_finished) == (True, True)


def test_forced_strings_are_not_appended_before_their_end() -> None:
    class Forced(Counting):
        def next_strings(self) -> list[str]:
            return [] if self.read else ["abab€", "c", "cc"]

    Counting.calls = 0
    matcher = Constraint(Forced("abc€"), VOCABULARY).matcher()
    assert matcher.is_accepting
    assert matcher.allowed_token_ids().tolist() == [0, 2, 3, 7, 8]
    matcher.advance(2)
    assert not matcher.is_accepting
    matcher.advance(2)
    # The token that ends inside the character is not allowed.
    assert matcher.allowed_token_ids().tolist() == [6]
    assert Counting.calls == 0
    assert matcher.forced_bytes() == "€".encode()
    matcher.advance(6)
    assert (Counting.calls, matcher.is_accepting) == (1, True)
    with pytest.raises(TokenError, match="only its first 3 bytes"):
        Constraint(Forced("abc"), VOCABULARY).matcher().advance_bytes(b"abac")


def test_token_groups_are_queried_once() -> None:
    asked: list[str] = []

    def only_a(text: str) -> bool:
        asked.append(text)
        return set(text) == {"a"}

    class Grouped(Counting):
        def allowed_groups(self) -> list[Any]:
            return [only_a]

        def forbidden_groups(self) -> list[Any]:
            return [Choice(["ab", "aba"])]

    Counting.calls = 0
    matcher = Constraint(Grouped("abc"), VOCABULARY).matcher()
    # "ab" is forbidden although it would not be refused, "b" is appended.
    assert matcher.allowed_token_ids().tolist() == [0, 1, 7, 8]
    assert Counting.calls == 3  # "b", "c" and the euro sign
    assert asked == ["a", "b", "ab", "aba", "€", "c"]
    with pytest.raises(TokenError):
        matcher.advance(2)
    matcher.advance(0)
    assert matcher.allowed_token_ids().tolist() == [0, 1, 7, 8]
    assert len(asked) == 6


def test_equal_states_are_one() -> None:
    class Even(Reading):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Even) and len(self.read) % 2 == len(other.read) % 2

        def __hash__(self) -> int:
            return len(self.read) % 2

    matcher = Constraint(Even("ab", 2), VOCABULARY).matcher()
    first = matcher.state_key
    matcher.advance_many([0, 1, 2])
    assert matcher.state_key == first
    matcher.advance(0)
    assert matcher.state_key != first


def test_an_input_has_one_state_however_it_is_tokenized() -> None:
    constraint = Constraint(Reading(), VOCABULARY)
    whole, parts = constraint.matcher(), constraint.matcher()
    whole.advance(3)
    parts.advance_many([0, 1, 0])
    assert whole.state_key == parts.state_key


def test_evicted_parsers_are_rebuilt() -> None:
    constraint = Constraint(Reading(), VOCABULARY)
    matcher = constraint.matcher()
    marks = []
    for number in range(20_000):
        matcher.advance(number % 2)
        if number % 1000 == 999:
            marks.append(matcher.fork())
    for number, mark in enumerate(marks, start=1):
        assert len(mark.text) == number * 1000
        mark.advance(2)
        assert mark.mask().tolist() == constraint.matcher().mask().tolist()


def test_inputs_that_are_only_queried_are_not_cached() -> None:
    language = Reading()
    machine = language.automaton()
    for number in range(1000):
        text = f"{number:b}".replace("0", "a").replace("1", "b")
        assert language.matches(text) and language.is_viable(text)  # noqa: PT018
    assert machine.state_count == 1


def test_states_are_limited() -> None:
    matcher = Constraint(Reading(), VOCABULARY, state_limit=10).matcher()
    with pytest.raises(LimitError, match="__eq__") as caught:
        matcher.advance_many([0] * 20)
    assert (caught.value.what, caught.value.needed, caught.value.allowed) == ("states", 11, 10)
