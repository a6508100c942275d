"""Parsers within the rules of a grammar: masks, errors, what is refused."""

from __future__ import annotations

import pickle
import threading

import pytest

from formalm import (
    ArgumentError,
    Constraint,
    Grammar,
    LanguageError,
    ParseFailure,
    Parser,
    ParserError,
    TableModel,
    Vocabulary,
    generate,
)
from formalm.models.canary import canary
from tests.support.parsers import Bytes, Equal, Letters, Nested

READINGS = ("longest", "first", "any")

TOKENS = [
    b"a",
    b"b",
    b"(",
    b")",
    b",",
    b"aab",
    b"bb",
    b"b)",
    b"(a",
    b"b,a",
    b"\xe2",
    b"\x82\xac",
    b" ",
]


@pytest.mark.parametrize("lexing", READINGS)
@pytest.mark.parametrize("kind", [Nested, Equal, Bytes])
def test_masks_are_the_definition(lexing: str, kind: type[Nested]) -> None:
    """Tokens that begin, end and span what parsers read; rollback and forks."""
    text = '%declare n\nstart: "(" n ")" | n "," n\n%ignore " "'
    grammar = Grammar(text, languages={"n": kind()}, lexing=lexing)
    vocabulary = Vocabulary.from_tokens([*TOKENS, None], end_token_ids=[len(TOKENS)])
    constraint = Constraint(grammar, vocabulary)
    assert not constraint.report.exact
    open_texts, looked = [b""], 0
    while open_texts and looked < 120:
        read = open_texts.pop(0)
        looked += 1
        matcher = constraint.matcher()
        for byte in read:
            matcher.advance(TOKENS.index(bytes([byte])))
        allowed = {TOKENS[one] for one in matcher.allowed_token_ids() if one < len(TOKENS)}
        assert allowed == {one for one in TOKENS if grammar.is_viable(read + one)}, read
        assert matcher.is_accepting == grammar.matches(read)
        fork = matcher.fork()
        for token in sorted(allowed):
            fork.advance(TOKENS.index(token))
            fork.mask()
            fork.rollback(1)
            assert fork.mask().tolist() == matcher.mask().tolist()
            if len(read) < 6 and len(token) == 1:
                open_texts.append(read + token)
    assert looked == 120 or looked > 30


def test_a_token_does_not_end_inside_a_character() -> None:
    class Anything(Parser):
        is_accepting = True

        def append(self, text: str) -> None:
            assert text

        def copy(self) -> Anything:
            return Anything()

    vocabulary = Vocabulary.from_tokens(TOKENS)
    grammar = Grammar('%declare any\nstart: "(" any', languages={"any": Anything()})
    matcher = Constraint(grammar, vocabulary).matcher()
    matcher.advance(2)
    assert set(matcher.allowed_token_ids()) == set(range(len(TOKENS))) - {10, 11}
    assert grammar.matches("(€")
    assert not grammar.is_viable(b"(\xe2")


class Forced(Parser):
    """A text that is given whole."""

    def __init__(self, place: int = 0) -> None:
        self.place = place

    def append(self, text: str) -> None:
        if self.place or text != "aab":
            raise ParseFailure
        self.place = 1

    def copy(self) -> Forced:
        return Forced(self.place)

    @property
    def is_accepting(self) -> bool:
        return self.place == 1

    def next_strings(self) -> list[str]:
        return [] if self.place else ["aab"]


@pytest.mark.parametrize("lexing", READINGS)
def test_strings_that_must_follow(lexing: str) -> None:
    grammar = Grammar('%declare f\nstart: "(" f ")"', languages={"f": Forced()}, lexing=lexing)
    assert grammar.matches("(aab)")
    assert grammar.is_viable("(aa")
    assert not grammar.is_viable("(ab")
    matcher = Constraint(grammar, Vocabulary.from_tokens(TOKENS)).matcher()
    assert [TOKENS[one] for one in matcher.allowed_token_ids()] == [b"(", b"(a"]
    matcher.advance(8)
    assert [TOKENS[one] for one in matcher.allowed_token_ids()] == [b"a"]
    matcher.advance(0)
    assert [TOKENS[one] for one in matcher.allowed_token_ids()] == [b"b", b"b)"]


def test_generation_and_grammars_within_grammars() -> None:
    vocabulary = Vocabulary.from_tokens(
        [b"a", b"b", b"(", b")", b"ab", b"b)", None], end_token_ids=[6]
    )
    model = TableModel(vocabulary, {}, default=[0.3, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1])
    inner = Grammar('%declare n\nstart: "(" n ")"', languages={"n": Equal()})
    for language in (inner, Grammar("%declare i\nstart: i i", languages={"i": inner})):
        found = generate(model, "", language, seed=4, n=8, max_tokens=60)
        texts = [one.text for one in found if one.complete]
        assert len(texts) > 2
        assert all(language.matches(text) for text in texts)
        assert all(language.is_viable(one.text) for one in found)


def test_errors_come_out() -> None:
    class Broken(Letters):
        def append(self, text: str) -> None:
            raise ValueError("no")

    grammar = Grammar('%declare n\nstart: "(" n ")"', languages={"n": Broken("", 1, 1)})
    with pytest.raises(ParserError, match="ValueError: no"):
        grammar.matches("(a")
    matcher = Constraint(grammar, Vocabulary.from_tokens(TOKENS)).matcher()
    with pytest.raises(ParserError, match="ValueError: no"):
        matcher.mask()
    with pytest.raises(ParserError, match="ValueError: no"):
        matcher.advance(8)
    assert grammar.is_viable("(")


def test_a_parser_may_ask_the_grammar() -> None:
    class Asking(Letters):
        def append(self, text: str) -> None:
            assert grammar.is_viable("(")
            super().append(text)

        def copy(self) -> Asking:
            return Asking(self.letters, self.least, self.most, self.read)

    grammar = Grammar('%declare n\nstart: "(" n ")"', languages={"n": Asking("ab", 1, 3)})
    assert grammar.matches("(ab)")
    constraint = Constraint(grammar, Vocabulary.from_tokens(TOKENS))
    results = []

    def run() -> None:
        matcher = constraint.matcher()
        for token in (2, 0, 1, 3):
            matcher.mask()
            matcher.advance(token)
        results.append(matcher.is_accepting)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join(60)
    assert results == [True] * 4


def test_operations_that_need_members_are_refused() -> None:
    grammar = Grammar('%declare n\nstart: "(" n ")"', languages={"n": Nested()})
    vocabulary = Vocabulary.from_tokens(TOKENS)
    with pytest.raises(LanguageError, match="a user-defined parser"):
        grammar.shortest()
    with pytest.raises(LanguageError, match="a user-defined parser"):
        (grammar + grammar).matches("()()")
    with pytest.raises(
        LanguageError, match="canonical tokenization cannot be computed for a user-defined parser"
    ):
        Constraint(grammar, canary().vocabulary, tokenization="canonical")
    with pytest.raises(LanguageError, match="a parser"):
        grammar.is_empty()
    with pytest.raises(LanguageError, match="NAME must be regular"):
        Grammar("%declare NAME\nstart: NAME", languages={"NAME": Nested()})
    with pytest.raises(LanguageError, match="no string"):
        Grammar("%declare n\nstart: n start", languages={"n": Nested()}).automaton()
    report = Constraint(grammar, vocabulary).report
    assert "dead end is possible" in report.approximations[0]
    with pytest.raises(ArgumentError, match="in use as a language"):
        dict(grammar.languages)["n"].append("a")
    again = pickle.loads(pickle.dumps(grammar))  # noqa: S301
    assert again.matches("(ab)")
