"""Derivations against their definition: trees by height, counts, ambiguity, shortest members."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from itertools import pairwise, product
from random import Random

import pytest

from formalm import Grammar, LanguageError, TokenError
from formalm.languages import Lexeme, Tree

CASES = int(os.environ.get("FORMALM_CASES", "100"))

#: More trees than a text of three letters has, if it does not have them without end.
MANY = 1_000_000

Rules = dict[str, list[list[str]]]


def random_rules(random: Random) -> Rules:
    names = ["start", "left", "right"][: random.randint(1, 3)]
    rules: Rules = {}
    for name in names:
        rows: list[list[str]] = []
        for _ in range(random.randint(1, 3)):
            row = [random.choice(["'a'", "'b'", *names]) for _ in range(random.randint(0, 3))]
            if row not in rows:
                rows.append(row)
        rules[name] = rows
    return rules


def written(rules: Rules) -> str:
    rows = {name: " | ".join(" ".join(row) or '""' for row in rows) for name, rows in rules.items()}
    return "\n".join(f"{name}: {row}" for name, row in rows.items()).replace("'", '"')


def capped(numbers: Iterable[int]) -> int:
    return min(sum(numbers), MANY + 1)


def count(rules: Rules, text: str) -> int | None:
    """Number of derivations; None without end.

    Then some are higher than a symbol can be without coming back to itself between the same
    places; or there are more than texts of these lengths have.
    """
    most = len(rules) * (len(text) + 1) * (len(text) + 2) // 2

    @cache
    def symbol(one: str, start: int, end: int, height: int) -> int:
        if one not in rules:
            return int(text[start:end] == one[1])
        if height == 0:
            return 0
        return capped(row(tuple(each), start, end, height - 1) for each in rules[one])

    @cache
    def row(symbols: tuple[str, ...], start: int, end: int, height: int) -> int:
        if not symbols:
            return int(start == end)
        return capped(
            symbol(symbols[0], start, middle, height) * row(symbols[1:], middle, end, height)
            for middle in range(start, end + 1)
        )

    low = 0
    for height in range(2 * most + 1):
        low, before = symbol("start", 0, len(text), height), low
        if height > most and low != before:
            return None
        if low > MANY:
            return None
    return low


def is_derivation(rules: Rules, tree: Tree) -> bool:
    """Whether a tree with all its lexemes follows the rules.

    No rule in it is within itself between the same places.
    """
    for one in tree.walk():
        if not isinstance(one, Tree):
            continue
        symbols = [
            f"'{child.text}'" if isinstance(child, Lexeme) else child.rule
            for child in one.children
            if child is not None
        ]
        spans = [child.span for child in one.children if child is not None]
        inside = [other for other in one.walk() if isinstance(other, Tree)][1:]
        if symbols not in rules[one.rule]:
            return False
        if any(left[1] != right[0] for left, right in pairwise(spans)):
            return False
        if any((other.rule, other.span) == (one.rule, one.span) for other in inside):
            return False
    return True


@pytest.mark.parametrize("lexing", ["any", "longest"])
@pytest.mark.parametrize("seed", range(CASES))
def test_trees_are_counted_and_one_is_taken(seed: int, lexing: str) -> None:
    rules = random_rules(Random(seed))
    grammar = Grammar(written(rules), lexing=lexing)
    texts = ["".join(letters) for size in range(4) for letters in product("ab", repeat=size)]
    try:
        grammar.automaton()
    except LanguageError:
        assert not any(count(rules, text) for text in texts[:3])
        return
    for text in texts:
        expected = count(rules, text)
        assert grammar.matches(text) is (expected != 0)
        if expected == 0:
            with pytest.raises(TokenError):
                grammar.parse(text)
            continue
        tree = grammar.parse(text, whole=True)
        assert tree.ways == expected, (written(rules), text)
        assert tree.text == text
        assert is_derivation(rules, tree), (written(rules), text, tree.pretty())
        if expected != 1:
            with pytest.raises(LanguageError, match="trees"):
                grammar.parse(text, ambiguity="refuse")
        else:
            assert grammar.parse(text, ambiguity="refuse", whole=True) == tree


TEXTS = ["".join(letters) for size in range(7) for letters in product("ab", repeat=size)]


def built(seed: int, lexing: str) -> Grammar | None:
    grammar = Grammar(written(random_rules(Random(seed))), lexing=lexing)
    try:
        grammar.automaton()
    except LanguageError:
        return None
    return grammar


@pytest.mark.parametrize("lexing", ["any", "longest"])
@pytest.mark.parametrize("seed", range(CASES))
def test_no_text_has_several_trees_where_that_is_excluded(seed: int, lexing: str) -> None:
    grammar = built(1_000 + seed, lexing)
    if grammar is None:
        return
    found = grammar.ambiguity()
    several = [text for text in TEXTS if grammar.matches(text) and grammar.parse(text).ways != 1]
    if found.is_excluded:
        assert not several
    for one in found.conflicts:
        if one.example is not None:
            assert grammar.parse(one.example).ways == one.ways != 1


def test_ambiguity_is_excluded_often_enough_to_be_of_use() -> None:
    found = [built(1_000 + seed, "longest") for seed in range(100)]
    known = [one.ambiguity() for one in found if one is not None]
    assert sum(one.is_excluded for one in known) > 15
    assert sum(one.is_certain for one in known) > 15


@pytest.mark.parametrize("seed", range(CASES))
def test_members_are_counted_by_length_and_drawn_uniformly(seed: int) -> None:
    grammar = built(2_000 + seed, "longest")
    if grammar is None:
        return
    members = [text for text in TEXTS if grammar.matches(text)]
    written_out = grammar.to_automaton(max_bytes=6)
    assert [written_out.nth(at) for at in range(len(members))] == members
    counts = [sum(len(text) == size for text in members) for size in range(7)]
    assert written_out.counts(6) == counts
    assert set(written_out.sample(20, seed=seed) if members else []) <= set(members)


@pytest.mark.parametrize("lexing", ["any", "longest"])
@pytest.mark.parametrize("seed", range(CASES))
def test_shortest_members_are_the_shortest(seed: int, lexing: str) -> None:
    grammar = built(3_000 + seed, lexing)
    if grammar is None:
        return
    members = [text for text in TEXTS if grammar.matches(text)]
    for text in TEXTS[:31]:
        found = grammar.shortest(text)
        longer = [member for member in members if member.startswith(text)]
        if longer:
            assert found == longer[0].encode()
        elif found is not None:  # longer than all that are listed
            assert len(found) > 6
            assert grammar.matches(found)
