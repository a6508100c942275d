"""Grammars and schemas in combinations, and languages as terminals of grammars."""

import pickle
from itertools import product
from random import Random

import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    Grammar,
    JsonSchema,
    LanguageError,
    LimitError,
    Regex,
    StringLiteral,
    Vocabulary,
)
from formalm.grammars import JSON
from formalm.languages import Language
from formalm.languages.serialization import from_data, to_data
from tests.support.mask_walks import compare_masks

TEXTS = ["".join(letters) for size in range(7) for letters in product("ab", repeat=size)]
NESTED = Grammar('start: "a" start "b" |')
TWICE = Grammar('start: "a" start "a" | "b" start "b" |', lexing="any")
LEAVES: list[Language] = [
    NESTED,
    TWICE,
    Grammar('start: "ab" "b"*'),
    Regex("a+"),
    Regex("(ba)*"),
    StringLiteral("b"),
    StringLiteral(""),
    Grammar('start: "a" start'),
    Choice(["ab", "bba"]),
]


def members(language: Language) -> set[str]:
    """The members among all short texts, by the laws of sets."""
    name = type(language).__name__
    if name == "Combination":
        parts = [members(part) for part in language.operands]  # type: ignore[attr-defined]
        first, rest = parts[0], parts[1:]
        for part in rest:
            first = {
                "|": lambda one, other: one | other,
                "&": lambda one, other: one & other,
                "-": lambda one, other: one - other,
                "+": row,
            }[language.operator](first, part)  # type: ignore[attr-defined]
        return first
    if name == "Repetition":
        part = members(language.part)  # type: ignore[attr-defined]
        least, most = language.minimum, language.maximum  # type: ignore[attr-defined]
        found, now = set(), {""}
        for count in range(8 if most is None else most + 1):
            if count >= least:
                found |= now
            now = row(now, part)
        return found
    return {text for text in TEXTS if not language.is_empty() and language.matches(text)}


def row(first: set[str], second: set[str]) -> set[str]:
    return {one + other for one in first for other in second if len(one + other) <= 6}


def mixed(random: Random, depth: int) -> Language:
    if depth == 0 or random.random() < 0.2:
        return random.choice(LEAVES)
    left = mixed(random, depth - 1)
    kind = random.randrange(6)
    if kind <= 1:
        return left | mixed(random, depth - 1)
    if kind <= 3:
        return left + mixed(random, depth - 1)
    if kind == 4:
        return left.repeat(random.randrange(3), random.choice([None, 2, 3]))
    regular = random.choice([Regex("[ab]{0,4}"), Regex("a.*"), Regex("(..)*"), StringLiteral("ab")])
    return left & regular if random.random() < 0.5 else left - regular


def test_members_are_those_of_the_sets_and_viable_texts_have_one() -> None:
    undecided = 0
    for seed in range(60):
        try:
            check(mixed(Random(seed), 3))
        except LimitError:
            undecided += 1
    assert undecided <= 6


def check(language: Language) -> None:
    expected = members(language)
    if language.is_empty():
        assert not expected
        return
    for text in TEXTS:
        assert language.matches(text) == (text in expected), (language, text)
        longer = [one for one in expected if one.startswith(text)]
        assert language.is_viable(text) or not longer, (language, text)
        if language.is_viable(text):
            found = language.shortest(text)
            assert found is not None
            assert language.matches(found), (language, text, found)
            if longer:
                least = min(longer, key=lambda one: (len(one), one))
                assert found.decode() == least, (language, text)


def test_a_thought_and_then_json() -> None:
    thinking = Regex("<think>[^<]*</think>") + JSON
    assert thinking.matches('<think>well …</think>{"a": [1]}')
    assert not thinking.matches('<think>well</think>{"a": [1}')
    lists = JSON & Regex(r"\[.{0,12}\]")
    assert lists.shortest("[[") == b"[[]]"
    assert not lists.is_viable('{"a"')
    assert not lists.is_viable("[" * 14)
    assert (JSON - Regex(" .*")).shortest() == b"0"
    either = JsonSchema({"type": "boolean"}) | NESTED
    assert [either.matches(text) for text in ("true", "aabb", "nu")] == [True, True, False]


def test_masks_of_combinations_are_the_definition() -> None:
    texts = ["a", "b", "ab", "ba", "aab", "bb", "abb", "x"]
    words = Vocabulary.from_tokens([*map(str.encode, texts), None], end_token_ids=[8])
    for language in (NESTED + Regex("x?") + TWICE, (NESTED | TWICE) & Regex("(..){0,5}")):
        constraint, random = Constraint(language, words), Random(1)
        for _ in range(5):
            compare_masks(constraint.matcher(), 6, random.choice)


def test_undecidable_combinations_are_refused_with_both_operands() -> None:
    with pytest.raises(LanguageError, match="the intersection of a Grammar and a JsonSchema"):
        (NESTED & JsonSchema({})).automaton()
    with pytest.raises(LanguageError, match="complement of a Grammar"):
        (~NESTED).automaton()
    with pytest.raises(LanguageError, match="difference from a Grammar"):
        (Regex("a") - NESTED).automaton()
    with pytest.raises(LimitError, match="states"):
        (NESTED & Regex("(a|b)*a(a|b){9}")).automaton()
    with pytest.raises(LimitError, match="languages in an expression"):
        (NESTED * 3000).automaton()
    with pytest.raises(LanguageError, match="empty"):
        (NESTED & StringLiteral("ba")).automaton()
    assert (NESTED & StringLiteral("ba")).is_empty()
    assert [group.name for group in (NESTED + Regex("(?P<x>a)")).groups] == ["x"]
    assert not (NESTED + Regex("a")).is_regular
    assert (Regex("a") + Regex("b")).is_regular


def test_terminals_are_languages() -> None:
    word = Regex("[a-z]+") - Choice(["if", "else"])
    text = """
        %declare WORD VALUE
        start: "if" WORD ":" VALUE ("," VALUE)*
        %ignore " "
    """
    odd = Regex("[0-9]+") & ~Regex(".*[02468]")
    grammar = Grammar(text, languages={"WORD": word, "VALUE": odd})
    assert grammar.matches("if x : 1, 33")
    assert not grammar.matches("if x: 2")
    assert not grammar.matches("if if: 1")
    assert grammar.is_viable("if iff")
    assert grammar.languages == {"WORD": word, "VALUE": odd}
    again = pickle.loads(pickle.dumps(grammar))  # noqa: S301
    assert again == grammar
    assert again.matches("if x:7")
    assert from_data(to_data(grammar)) == grammar
    assert from_data(to_data(NESTED + grammar)) == NESTED + grammar
    assert grammar != Grammar(text, languages={"WORD": word, "VALUE": Regex("1")})
    assert "languages={'WORD'" in repr(grammar)
    declared = '%declare A\nstart: A "b"'
    free = Grammar(declared, lexing="any", languages={"A": Regex("b*")})
    assert [free.matches(text) for text in ("b", "bbb", "", "a")] == [True, True, False, False]
    for wrong, why in [
        ({"B": word}, "B is not declared"),
        ((("A", word), ("A", word)), "A is defined twice"),
        ({"A": NESTED}, "must be regular"),
        ({}, "has no definition"),
    ]:
        with pytest.raises(LanguageError, match=why):
            Grammar(declared, languages=wrong)
    within = Grammar('%declare A\nstart: B\nB: A "1"', languages={"A": word})
    assert [within.matches(text) for text in ("x1", "if1", "x")] == [True, False, False]
    with pytest.raises(LanguageError, match="languages as terminals require"):
        Grammar("root ::= [a]", syntax="gbnf", languages={"A": word})
    with pytest.raises(ArgumentError, match="names to Languages"):
        Grammar(declared, languages={"A": "x"})  # type: ignore[dict-item]
