"""Parsers as languages: what they are asked, what goes wrong, and what they cannot tell."""

from __future__ import annotations

import copy
import pickle
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    LanguageError,
    LimitError,
    Limits,
    Literal,
    Matcher,
    ParseFailure,
    Parser,
    ParserError,
    Regex,
    TableModel,
    TokenError,
    Vocabulary,
    fill_bitmasks,
    generate,
    mass,
    new_bitmask,
    search,
    stream,
)

VOCABULARY = Vocabulary.from_tokens(
    [b"a", b"b", b"ab", b"aba", b"\xe2", b"\x82\xac", b"\xe2\x82\xac", b"c", None],
    end_token_ids=[8],
)
MODEL = TableModel(VOCABULARY, {}, default=[0.2, 0.1, 0.2, 0.1, 0.1, 0.05, 0.05, 0.1, 0.1])


class Reading(Parser):
    """Any text of ``letters`` whose length is a multiple of ``step``, at most ``most`` long."""

    def __init__(
        self, letters: str = "ab", step: int = 1, most: int = 10**9, read: str = ""
    ) -> None:
        self.letters, self.step, self.most, self.read = letters, step, most, read

    def append(self, text: str) -> None:
        self.read += text
        if not set(text) <= set(self.letters) or len(self.read) > self.most:
            raise ParseFailure

    def copy(self) -> Reading:
        return type(self)(self.letters, self.step, self.most, self.read)

    @property
    def is_accepting(self) -> bool:
        return len(self.read) % self.step == 0


class Counting(Reading):
    """Counts what it is asked."""

    calls = 0

    def append(self, text: str) -> None:
        Counting.calls += 1
        super().append(text)


def go(matcher: Matcher, count: int = 1) -> None:
    """Find masks and read the first token, so many times; the last mask is found again."""
    for _ in range(count):
        matcher.mask()
        matcher.advance(0)
    matcher.mask()


def allowed(language: Parser) -> list[int]:
    return Constraint(language, VOCABULARY).matcher().allowed_token_ids().tolist()


def test_it_is_a_language() -> None:
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
    with pytest.raises(TokenError, match="after 3 bytes"):
        Constraint(Forced("abc"), VOCABULARY).matcher().advance_bytes(b"abac")


def test_groups_are_not_asked_about_twice() -> None:
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


def test_a_text_has_one_state_however_it_is_cut() -> None:
    constraint = Constraint(Reading(), VOCABULARY)
    whole, parts = constraint.matcher(), constraint.matcher()
    whole.advance(3)
    parts.advance_many([0, 1, 0])
    assert whole.state_key == parts.state_key


def test_parsers_that_were_let_go_of_are_made_again() -> None:
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


def test_texts_that_are_only_asked_about_are_not_kept() -> None:
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


# What goes wrong.


class Failing(Reading):
    """Does something else than it should, where ``what`` says so."""

    what: Callable[[Reading], Any]
    where = ""

    def append(self, text: str) -> None:
        super().append(text)
        return self.what() if self.where == "append" else None

    def copy(self) -> Reading:
        return self.what() if self.where == "copy" and self.read else super().copy()

    @property
    def is_accepting(self) -> bool:
        return self.what() if self.where == "is_accepting" and self.read else super().is_accepting

    def next_strings(self) -> Any:
        return self.what() if self.where == "next_strings" else ()

    def allowed_groups(self) -> Any:
        return self.what() if self.where == "allowed_groups" else ()


def failing(where: str, what: Callable[[Reading], Any]) -> Parser:
    return type("Failing", (Failing,), {"where": where, "what": what})()


def divide(_: object) -> float:
    return 1 / 0


@pytest.mark.parametrize(
    "where", ["append", "copy", "is_accepting", "next_strings", "allowed_groups"]
)
def test_other_exceptions_surface_with_their_cause(where: str) -> None:
    matcher = Constraint(failing(where, divide), VOCABULARY).matcher()
    with pytest.raises(ParserError, match="ZeroDivisionError") as caught:
        go(matcher)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    if where != "is_accepting":
        # In another thread, without a token.
        with pytest.raises(ParserError):
            fill_bitmasks([matcher], new_bitmask(1, len(VOCABULARY)))


@pytest.mark.parametrize(
    ("where", "what", "message"),
    [
        ("append", lambda _: False, "returned bool"),
        ("copy", lambda self: self, "the parser itself"),
        ("copy", lambda _: "a", "returned str"),
        ("is_accepting", lambda _: lambda: True, "is function"),
        ("next_strings", lambda _: "ab", "returned str"),
        ("next_strings", lambda _: None, "returned NoneType"),
        ("next_strings", lambda _: [""], "empty text"),
        ("next_strings", lambda _: [b"a"], "has bytes"),
        ("next_strings", lambda _: ["\ud800"], "raised UnicodeEncodeError"),
        ("allowed_groups", lambda _: str.isalpha, "returned method_descriptor"),
        ("allowed_groups", lambda _: ["ab"], "a function of a token's text"),
        ("allowed_groups", lambda _: [len], "neither True nor False"),
        ("allowed_groups", lambda _: [[]], "unhashable"),
    ],
)
def test_parsers_that_do_not_keep_to_it(
    where: str, what: Callable[[Reading], Any], message: str
) -> None:
    matcher = Constraint(failing(where, what), VOCABULARY).matcher()
    with pytest.raises(ParserError, match=message):
        go(matcher)


def test_promises_that_are_broken() -> None:
    with pytest.raises(ParserError, match="next_strings"):
        Constraint(failing("next_strings", lambda _: ["c"]), VOCABULARY).matcher().advance(7)
    everything = Regex(".*")
    matcher = Constraint(failing("allowed_groups", lambda _: [everything]), VOCABULARY).matcher()
    assert 7 in matcher.allowed_token_ids()
    with pytest.raises(ParserError, match="allowed_groups"):
        matcher.advance(7)


def test_groups_made_anew_are_limited() -> None:
    matcher = Constraint(
        failing("allowed_groups", lambda _: [lambda text: text == "a"]), VOCABULARY
    ).matcher()
    with pytest.raises(LimitError, match="token groups"):
        go(matcher, 300)


def test_interrupts_and_exits_are_themselves() -> None:
    def leave(_: object) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        Constraint(failing("append", leave), VOCABULARY).matcher().mask()

    def interrupt(_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        Constraint(failing("append", interrupt), VOCABULARY).matcher().mask()


def test_a_parser_may_call_back() -> None:
    inner = Constraint(Regex("[ab]*"), VOCABULARY)

    def ask(self: Reading) -> None:
        matchers = [inner.matcher() for _ in range(4)]
        fill_bitmasks(matchers, new_bitmask(4, len(VOCABULARY)))
        assert Reading().matches(self.read)

    language = failing("append", ask)
    matchers = [Constraint(language, VOCABULARY).matcher() for _ in range(8)]
    out = new_bitmask(8, len(VOCABULARY))
    fill_bitmasks(matchers, out)
    assert out[:, 0].tolist() == [0b100001111] * 8

    itself: list[Parser] = []
    itself.append(failing("append", lambda self: itself[0].matches(self.read) and None))
    with pytest.raises(ParserError):
        itself[0].matches("ab")


def test_one_language_in_many_threads() -> None:
    for kind in (Reading, type("Equal", (Reading,), {"__eq__": equal, "__hash__": hashed})):
        constraint = Constraint(kind("ab", 2), VOCABULARY)
        masks: list[list[list[bool]]] = []

        def walk(constraint: Constraint = constraint, masks: Any = masks) -> None:
            matcher = constraint.matcher()
            seen = []
            for token in [0, 1, 2, 3, 1] * 40:
                seen.append(matcher.mask().tolist())
                matcher.advance(token)
            masks.append(seen)

        threads = [threading.Thread(target=walk) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert len(masks) == 6
        assert all(mask == masks[0] for mask in masks)


def equal(self: Reading, other: object) -> bool:
    return isinstance(other, Reading) and self.read == other.read


def hashed(self: Reading) -> int:
    return hash(self.read)


# What it cannot tell, and what it is as an object.


def test_the_report_says_what_viable_means() -> None:
    report = Constraint(Reading(), VOCABULARY).report
    assert not report.exact
    assert "dead end" in report.approximations[0]


def test_a_dead_end_is_told() -> None:
    ended = generate(MODEL, None, Reading("a", 7, 5, "a"), seed=1, max_tokens=20)
    assert (ended.reason, ended.complete, ended.is_accepting) == ("dead_end", False, False)


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one | Literal("a"),
        lambda one: one + "a",
        lambda one: one & Regex("a*"),
        lambda one: Regex("a*") - one,
        lambda one: ~one,
        lambda one: one * 2,
        lambda one: one.edits(1),
        lambda one: one.reverse(),
        lambda one: one.rewrite({"a": "b"}),
    ],
)
def test_combinations_are_refused(ask: Callable[[Parser], Any]) -> None:
    with pytest.raises(LanguageError):
        ask(Reading()).matches("a")


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.shortest(),
        lambda one: one.to_automaton(),
        lambda one: one.equivalent(Regex("[ab]*")),
        lambda one: Regex("[ab]*").is_subset(one),
        lambda one: one.witness(Regex("a")),
        lambda one: one.captures("a"),
        lambda one: Reading("ab", 2, read="a").is_empty(),
        lambda one: Constraint(one, VOCABULARY).to_automaton(),
        lambda one: generate(MODEL, None, one, max_tokens=3, finish=True),
    ],
)
def test_what_it_cannot_tell_is_refused(ask: Callable[[Parser], Any]) -> None:
    with pytest.raises(LanguageError, match="parser"):
        ask(Reading())


def test_canonical_tokens_are_refused() -> None:
    from formalm.models.canary import canary

    with pytest.raises(LanguageError, match="canonical"):
        Constraint(Reading(), canary().vocabulary, tokenization="canonical")


def test_a_parser_in_use_is_not_appended_to() -> None:
    language = Reading()
    Constraint(language, VOCABULARY)
    with pytest.raises(ArgumentError, match="copy"):
        language.append("a")
    other = language.copy()
    other.append("a")
    for copied in (copy.copy(language), copy.deepcopy(language)):
        copied.append("a")
        assert copied.read == "a"
    # What was read before belongs to the language's beginning.
    assert Reading("ab", 2, read="a").matches("b")


def test_it_pickles_as_an_object() -> None:
    constraint = Constraint(Reading("a", 2, read="a"), VOCABULARY)
    again = pickle.loads(pickle.dumps(constraint))  # noqa: S301
    assert again.matcher().allowed_token_ids().tolist() == [0]
    assert again.language.read == "a"


def test_equality_needs_a_hash() -> None:
    @dataclass
    class Unhashable(Reading):
        depth: int = 0

    for ask in (
        lambda: Unhashable().matches("a"),
        lambda: generate(MODEL, None, Unhashable(), max_tokens=1),
    ):
        with pytest.raises(LanguageError, match="unsafe_hash"):
            ask()


def test_a_subclass_needs_a_way_to_read() -> None:
    class Mute(Parser):
        def copy(self) -> Mute:
            return Mute()

        is_accepting = True  # type: ignore[assignment]

    with pytest.raises(LanguageError, match="neither append"):
        Mute().matches("")


def test_all_drivers_take_it() -> None:
    language = Reading("a", 2, 4)
    same = Regex("(aa){0,2}")
    for one in (language, same):
        assert [hit.text for hit in search(MODEL, one, limits=Limits(hits=3))] == ["", "aa", "aaaa"]
        assert mass(MODEL, one, event="complete").high == pytest.approx(
            0.1 + 0.2**2 * 0.1 + 0.00016
        )
    texts = {generate(MODEL, None, language, seed=seed, max_tokens=9).text for seed in range(20)}
    assert texts == {"", "aa", "aaaa"}
    pieces = stream(MODEL, None, language, seed=3, max_tokens=9)
    assert "".join(pieces) == pieces.generation.text
