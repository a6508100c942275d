"""Parsers within the rules of a grammar."""

from __future__ import annotations

import pickle
import threading
from itertools import product

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

READINGS = ("longest", "first", "any")


class Nested(Parser):
    """As many b as a, the a first; ``least`` of them."""

    def __init__(self, least: int = 1, opened: int = 0, closed: int = 0) -> None:
        self.least, self.opened, self.closed = least, opened, closed

    def append(self, text: str) -> None:
        for letter in text:
            self.opened += letter == "a"
            self.closed += letter == "b"
            if letter not in "ab" or self.closed > self.opened or (letter == "a" and self.closed):
                raise ParseFailure
        if self.closed and self.opened < self.least:
            raise ParseFailure

    def copy(self) -> Nested:
        return type(self)(self.least, self.opened, self.closed)

    @property
    def is_accepting(self) -> bool:
        return self.opened == self.closed >= self.least


class Equal(Nested):
    """The same, with states that are found again."""

    def _state(self) -> tuple[int, int, int]:
        return self.least, self.opened, self.closed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self._state() == other._state()

    def __hash__(self) -> int:
        return hash(self._state())


class Bytes(Nested):
    """The same over bytes."""

    def append_bytes(self, data: bytes) -> None:
        self.append(data.decode("latin-1"))


def nested(text: str, least: int = 1) -> bool:
    half = len(text) // 2
    return text == "a" * half + "b" * half and half >= least


def words(letters: str, most: int) -> list[str]:
    return ["".join(word) for size in range(most + 1) for word in product(letters, repeat=size)]


@pytest.mark.parametrize("lexing", READINGS)
@pytest.mark.parametrize("kind", [Nested, Equal, Bytes])
def test_a_parser_stands_in_a_rule(lexing: str, kind: type[Nested]) -> None:
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


class Letters(Parser):
    """Any text of some letters with at least so many of them, or refused beyond ``most``."""

    def __init__(self, letters: str, least: int, most: int, read: int = 0) -> None:
        self.letters, self.least, self.most, self.read = letters, least, most, read

    def append(self, text: str) -> None:
        self.read += len(text)
        if self.read > self.most or not set(text) <= set(self.letters):
            raise ParseFailure

    def copy(self) -> Letters:
        return type(self)(self.letters, self.least, self.most, self.read)

    @property
    def is_accepting(self) -> bool:
        return self.read >= self.least


@pytest.mark.parametrize("lexing", READINGS)
@pytest.mark.parametrize("least", [0, 1])
def test_all_ends_are_followed(lexing: str, least: int) -> None:
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
def test_what_is_refused_at_once(lexing: str) -> None:
    never = Letters("", 1, 5)
    grammar = Grammar(
        '%declare never\nstart: "a" never | "b" never?',
        languages={"never": never},
        lexing=lexing,
    )
    assert [word for word in words("ab", 3) if grammar.matches(word)] == ["b"]
    assert [word for word in words("ab", 3) if grammar.is_viable(word)] == ["", "a", "b"]


def test_what_a_word_forbids_is_forbidden_within() -> None:
    text = "%declare tail\nstart: WORD tail\nWORD: /[a-z]+/"
    tail = Letters("abc!", 1, 9)
    longest = Grammar(text, languages={"tail": tail})
    free = Grammar(text, languages={"tail": tail}, lexing="any")
    assert longest.matches("ab!c")
    assert not longest.matches("abc")
    assert free.matches("abc")
    assert longest.parse("ab!c").ways == 1
    assert free.parse("ab!c").ways == 2


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


def test_what_needs_to_know_members_is_refused() -> None:
    grammar = Grammar('%declare n\nstart: "(" n ")"', languages={"n": Nested()})
    vocabulary = Vocabulary.from_tokens(TOKENS)
    with pytest.raises(LanguageError, match="a parser"):
        grammar.shortest()
    with pytest.raises(LanguageError, match="a parser"):
        (grammar + grammar).matches("()()")
    with pytest.raises(LanguageError, match="canonical tokens cannot be told of a parser"):
        Constraint(grammar, canary().vocabulary, tokenization="canonical")
    with pytest.raises(LanguageError, match="a parser"):
        grammar.is_empty()
    with pytest.raises(LanguageError, match="NAME is not regular"):
        Grammar("%declare NAME\nstart: NAME", languages={"NAME": Nested()})
    with pytest.raises(LanguageError, match="no text"):
        Grammar("%declare n\nstart: n start", languages={"n": Nested()}).automaton()
    report = Constraint(grammar, vocabulary).report
    assert "dead end is possible" in report.approximations[0]
    with pytest.raises(ArgumentError, match="in use as a language"):
        dict(grammar.languages)["n"].append("a")
    again = pickle.loads(pickle.dumps(grammar))  # noqa: S301
    assert again.matches("(ab)")
