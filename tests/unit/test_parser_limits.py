"""Questions that a parser cannot answer, its behavior as an object, and all functions on it."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    LanguageError,
    Limits,
    ParseFailure,
    Parser,
    Query,
    Regex,
    StringLiteral,
    Vocabulary,
    _core,
    generate,
    mass,
    search,
    stream,
)
from tests.support.parsers import MODEL, VOCABULARY, Reading


def test_the_report_explains_what_viable_means() -> None:
    report = Constraint(Reading(), VOCABULARY).report
    assert not report.exact
    assert "dead end" in report.approximations[0]


def test_a_dead_end_is_reported() -> None:
    ended = generate(MODEL, None, Reading("a", 7, 5, "a"), seed=1, max_tokens=20)
    assert (ended.reason, ended.complete, ended.is_accepting) == ("dead_end", False, False)


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one | StringLiteral("a"),
        lambda one: one + Choice(["a"]),
        lambda one: one & Regex("a*"),
        lambda one: Regex("a*") - one,
        lambda one: ~one,
        lambda one: one * 2,
        lambda one: Grammar("start: /a+/") | one,
        lambda one: one & Grammar("start: /a+/"),
        lambda one: JsonSchema({"type": "null"}) + one.optional(),
        lambda one: one.edits(1),
        lambda one: one.reverse(),
        lambda one: one.rewrite({"a": "b"}),
    ],
)
def test_combinations_are_refused(ask: Callable[[Parser], Any]) -> None:
    with pytest.raises(LanguageError, match="Reading is a parser"):
        ask(Reading()).matches("a")


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: _core.Automaton.composed([(one, [], True)], [0], empty=False),
        lambda one: one.filtered(Regex("a*").automaton()),
        lambda one: one.preceded_by(b"a"),
    ],
)
def test_the_core_refuses_parsers_within_machines(ask: Callable[[_core.Automaton], Any]) -> None:
    """Machines of parts hold locks while they read, and rely on there being no dead ends."""
    with pytest.raises(LanguageError, match="cannot be computed for a user-defined parser"):
        ask(Reading().automaton())


def test_a_parser_is_no_terminal() -> None:
    with pytest.raises(LanguageError, match="the terminal WORD must be regular"):
        Grammar("start: WORD", languages={"WORD": Reading()})


@pytest.mark.parametrize("kind", [Reading, Regex])
def test_a_class_of_languages_is_no_language(kind: Any) -> None:
    """Nor a type, whose JSON texts would be meant."""
    with pytest.raises(LanguageError, match=f"got the class {kind.__name__}"):
        generate(MODEL, None, kind, max_tokens=3)


def test_given_prefixes_may_contain_multibyte_characters() -> None:
    query = Query(Reading("a€", most=3), given=StringLiteral("a€"))
    assert query.given == StringLiteral("a€")
    with pytest.raises(
        LanguageError, match="prefix of a member, got 'a€b': only its first 4 bytes are viable"
    ):
        Query(Reading("a€"), given=StringLiteral("a€b"))


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
def test_questions_that_a_parser_cannot_answer_are_refused(ask: Callable[[Parser], Any]) -> None:
    with pytest.raises(LanguageError, match=r"parser|captures"):
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


def test_a_parser_is_pickled_as_an_object() -> None:
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

    with pytest.raises(LanguageError, match="must define append"):
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


class Heavy(Parser):
    """Any letters; each parser owns a buffer, and all share another."""

    shared = bytes(1 << 20)

    def __init__(self, read: str = "", size: int = 50_000) -> None:
        self.read, self.size = read, size
        self.own = [bytes(size), self.shared]

    def append(self, text: str) -> None:
        if not text.isalpha():
            raise ParseFailure
        self.read += text

    def copy(self) -> Heavy:
        return type(self)(self.read, self.size)

    @property
    def is_accepting(self) -> bool:
        return True


def test_a_constraint_counts_the_memory_of_parsers() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", b"c"])
    grown = {}
    for size in (0, 50_000):
        constraint = Constraint(Heavy(size=size), vocabulary)
        before = constraint.memory_bytes
        for text in product(range(3), repeat=4):
            matcher = constraint.matcher()
            for token in text:
                matcher.advance(token)
        grown[size] = constraint.memory_bytes - before
    # 120 inputs of one to four letters, each with a parser of its own. Shared objects do not count.
    assert 0.9 < (grown[50_000] - grown[0]) / (120 * 50_000) < 1.1
    assert grown[0] < 120 * 2_000
