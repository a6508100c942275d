"""The index of parser configurations, against the engine's masks, for small grammars."""

from __future__ import annotations

import random
from dataclasses import dataclass
from itertools import product

import pytest

from formalm import Choice, Constraint, Grammar, LanguageError, Regex, Vocabulary
from formalm.reference.lalr import END, lalr_tables
from formalm.reference.naive_mask import naive_mask
from formalm.reference.parser_index import (
    Configuration,
    IncrementalLalrParser,
    map_configurations,
)


@dataclass(frozen=True)
class Case:
    """A grammar twice: as rules for the reference, and as text for the engine."""

    rules: dict[str, list[list[str]]]
    start: str
    patterns: dict[str, str]  # terminals that are no string of themselves
    tokens: list[str]

    @property
    def alphabet(self) -> str:
        return "".join(sorted(set("".join(self.tokens))))

    def parser(self) -> IncrementalLalrParser:
        tables = lalr_tables(self.rules, self.start)
        strings = [name for name in tables.terminals if name not in self.patterns]
        terminals = {name: Choice([name]) for name in strings}
        terminals |= {name: Regex(pattern) for name, pattern in self.patterns.items()}
        return IncrementalLalrParser.of(self.rules, self.start, terminals, self.alphabet)

    def grammar(self) -> Grammar:
        known = set(self.rules) | set(self.patterns)
        lines = []
        for name, alternatives in self.rules.items():
            written = (
                " ".join(part if part in known else f'"{part}"' for part in parts)
                for parts in alternatives
            )
            lines.append(f"{name}: {' | '.join(written)}")
        lines += [f"{name}: /{pattern}/" for name, pattern in self.patterns.items()]
        return Grammar("\n".join(lines), start=self.start)


CASES = {
    "arithmetic": Case(
        {
            "sum": [["sum", "+", "product"], ["product"]],
            "product": [["product", "*", "atom"], ["atom"]],
            "atom": [["NUMBER"], ["(", "sum", ")"]],
        },
        "sum",
        {"NUMBER": "[01]+"},
        ["0", "1", "10", "+", "+1", "*", "(", ")", "))", ")+", "((", "1)", "1+1", ")*(", "x"],
    ),
    "nested lists": Case(
        {
            "value": [["[", "]"], ["[", "items", "]"], ["STRING"]],
            "items": [["value"], ["items", ",", "value"]],
        },
        "value",
        {"STRING": "'a*'"},
        ["[", "]", "[[", "]]", "],", "'", "''", "'a", "a'", "a", ",'", "',", "[]", "]]]"],
    ),
    "keywords": Case(
        {
            "block": [["statement"], ["block", ";", "statement"]],
            "statement": [["NAME", "=", "NAME"], ["if", " ", "NAME", ":", "statement"], []],
        },
        "block",
        {"NAME": "[fi]+"},
        ["i", "f", "if", "if ", "f:", "=", ";", ";;", "i=f", " ", ":", ":i", "ff"],
    ),
    "an optional tail": Case(
        {"start": [["head", "tail"]], "head": [["a"], ["head", "a"]], "tail": [[], ["b", "tail2"]],
         "tail2": [[], ["tail2", "c"]]},
        "start",
        {},
        ["a", "aa", "b", "ab", "c", "bc", "cc", "abcc", "ba"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_masks_are_those_of_the_engine(name: str) -> None:
    case = CASES[name]
    parser = case.parser()
    index = map_configurations(parser, case.tokens)
    end = len(case.tokens)
    vocabulary = Vocabulary.from_tokens(
        [*(token.encode() for token in case.tokens), None], end_token_ids=[end]
    )
    grammar = case.grammar()
    constraint = Constraint(grammar, vocabulary)
    draw = random.Random(1)
    visited = 0
    for _ in range(60):
        matcher, configuration, text = constraint.matcher(), parser.start(), ""
        for _ in range(12):
            allowed = index.tokens(configuration)
            engine = set(matcher.allowed_token_ids().tolist())
            assert {case.tokens[i] for i in engine - {end}} == allowed, text
            assert (end in engine) == parser.is_accepting(configuration), text
            if visited < 40:  # the definition is slow
                naive = naive_mask(grammar, vocabulary, text.encode()).nonzero()[0].tolist()
                assert set(naive) == engine
            visited += 1
            if not allowed:
                break
            token = draw.choice(sorted(allowed))
            matcher.advance(case.tokens.index(token))
            following = parser.read(configuration, token)
            assert following is not None
            configuration, text = following, text + token
    assert visited > 200


@pytest.mark.parametrize("name", CASES)
def test_all_short_texts_are_those_of_the_engine(name: str) -> None:
    case = CASES[name]
    parser, grammar = case.parser(), case.grammar()
    members = 0
    for length in range(6):
        for letters in product(case.alphabet, repeat=length):
            text = "".join(letters)
            configuration = parser.read(parser.start(), text)
            assert (configuration is not None) == grammar.is_viable(text), text
            member = configuration is not None and parser.is_accepting(configuration)
            assert member == grammar.matches(text), text
            members += member
    assert members > 5


def test_right_recursion_needs_a_stack_of_any_height() -> None:
    """A comma keeps its state on the stack until the list ends, so no depth decides."""
    rules = {"list": [["[", "items", "]"]], "items": [["a"], ["a", ",", "items"], ["list"]]}
    terminals = {name: Choice([name]) for name in "[],a"}
    parser = IncrementalLalrParser.of(rules, "list", terminals, "[],a")
    tokens = ["[", "a", ",", "a,", "]", "]]"]
    index = map_configurations(parser, tokens, depth=4)
    assert index.unknown
    configuration = parser.start()
    for character in "[a,a,a,a,[a,a,a]":
        following = parser.read(configuration, character)
        assert following is not None
        configuration = following
        allowed = {token for token in tokens if parser.read(configuration, token) is not None}
        assert index.tokens(configuration) == allowed
    assert index.tokens(configuration) == {"]"}


def test_grammars_with_conflicts_are_refused() -> None:
    with pytest.raises(LanguageError, match="must be LALR"):
        lalr_tables({"sum": [["sum", "+", "sum"], ["a"]]}, "sum")
    with pytest.raises(LanguageError, match="reduce/reduce"):
        lalr_tables({"start": [["one"], ["two"]], "one": [["a"]], "two": [["a"]]}, "start")
    with pytest.raises(LanguageError, match="'a' has none"):
        IncrementalLalrParser.of({"start": [["a"]]}, "start", {}, "a")


def test_states_are_merged_by_their_cores() -> None:
    """The textbook grammar that is LR(1) with ten states, and LALR(1) with seven."""
    tables = lalr_tables({"s": [["c", "c"]], "c": [["e", "c"], ["d"]]}, "s")
    states = {0, *tables.moves.values()}
    assert len(states - {tables.moves[tables.moves[0, "s"], END]}) == 7


def test_a_lexer_that_backs_up_is_refused() -> None:
    parser = IncrementalLalrParser.of(
        {"start": [["A"], ["start", "A"]]}, "start", {"A": Regex("a(bc)?")}, "abc"
    )
    assert parser.read(Configuration((0,)), "a") is not None
    with pytest.raises(LanguageError, match="back up"):
        parser.read(Configuration((0,)), "ab")


@pytest.mark.parametrize("name", ["arithmetic", "nested lists", "an optional tail"])
def test_left_recursion_needs_a_bounded_stack(name: str) -> None:
    case = CASES[name]
    index = map_configurations(case.parser(), case.tokens, depth=20)
    assert index.is_complete
    shallow = map_configurations(case.parser(), case.tokens, depth=3)
    configuration = index.parser.start()
    for token in [case.tokens[0]] * 2:
        following = index.parser.read(configuration, token)
        if following is None:
            break
        configuration = following
        assert index.tokens(configuration) == shallow.tokens(configuration)
