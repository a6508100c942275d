"""Automata against brute force: Python's `re` over a small alphabet, and sets."""

from __future__ import annotations

import itertools
import pickle
import re
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import Choice, Constraint, Language, Regex, Vocabulary
from formalm.automata import Automaton

# One byte, two bytes and four: characters and bytes have different lengths.
ALPHABET = "aé😀"
LONGEST = 5
TEXTS = [
    "".join(text) for n in range(LONGEST + 1) for text in itertools.product(ALPHABET, repeat=n)
]


def patterns() -> st.SearchStrategy[str]:
    def longer(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        grouped = inner.map(lambda text: f"(?:{text})")
        return st.one_of(
            st.tuples(inner, inner).map("".join),
            st.tuples(inner, inner).map("|".join),
            st.tuples(grouped, st.sampled_from(["*", "+", "?", "{2}", "{1,3}"])).map("".join),
        )

    pieces = [*ALPHABET, "[aé]", "[é😀]", "[aé😀]", "(?:)"]
    return st.recursive(st.sampled_from(pieces), longer, max_leaves=7)


def members(pattern: str) -> list[str]:
    """Members of at most five characters, by length and then by code points: as `re` has them."""
    compiled = re.compile(pattern)
    return [text for text in TEXTS if compiled.fullmatch(text)]


@given(patterns())
def test_counts_lists_and_ranks_are_those_of_brute_force(pattern: str) -> None:
    automaton = Regex(pattern).to_automaton()
    expected = members(pattern)
    assert list(automaton.enumerate(max_length=LONGEST)) == expected
    lengths = Counter(map(len, expected))
    assert automaton.counts(LONGEST) == [lengths[n] for n in range(LONGEST + 1)]
    assert automaton.count(max_length=LONGEST) == len(expected)
    assert automaton.count(3) == lengths[3]
    assert automaton.shortest() == next(iter(automaton), None)
    for index, text in enumerate(expected):
        assert automaton.nth(index) == text
        assert automaton.rank(text) == index
    for text in TEXTS[:40]:
        assert automaton.matches(text) == (text in expected)


@given(patterns())
def test_bytes_are_another_order_of_the_same_members(pattern: str) -> None:
    automaton = Regex(pattern).to_automaton()
    listed = list(automaton.enumerate(max_length=8, unit="bytes"))
    expected = [text for text in members(pattern) if len(text.encode()) <= 8]
    short = [text for text in listed if len(text) <= LONGEST]
    assert short == sorted(expected, key=lambda text: (len(text.encode()), text.encode()))
    sizes = Counter(len(str(text).encode()) for text in listed)
    assert automaton.counts(8, unit="bytes") == [sizes[n] for n in range(9)]
    for index, text in enumerate(listed[:50]):
        assert automaton.nth(index, unit="bytes") == text
        assert automaton.rank(text, unit="bytes") == index


@given(patterns(), patterns())
def test_comparisons_agree_with_sets_and_witnesses_differ(one: str, other: str) -> None:
    left, right = Regex(one), Regex(other)
    written = (left.to_automaton(), right.to_automaton())
    mine, theirs = set(members(one)), set(members(other))
    for relation, differing in (("equivalence", mine ^ theirs), ("inclusion", mine - theirs)):
        witness = left.witness(right, relation)
        assert written[0].witness(written[1], relation) == witness
        if differing:
            assert witness == min(differing, key=lambda text: (len(text), text))
        elif witness is not None:
            assert len(witness) > LONGEST
            assert left.matches(witness)
            assert not right.matches(witness) or relation == "equivalence"
            assert left.matches(witness) != right.matches(witness) or relation == "inclusion"
        by_bytes = left.witness(right, relation, unit="bytes")
        assert (by_bytes is None) == (witness is None)
        holds = left.equivalent(right) if relation == "equivalence" else left.is_subset(right)
        assert holds == (witness is None)
    assert (written[0] == written[1]) == left.equivalent(right)
    assert written[0].is_subset(written[1]) == left.is_subset(right)


@given(patterns())
def test_no_two_states_are_equivalent_and_none_is_dead(pattern: str) -> None:
    automaton = Regex(pattern).to_automaton()
    bytes_read = sorted({byte for text in ALPHABET for byte in text.encode()})
    rows = [[automaton.step(state, byte) for byte in bytes_read] for state in range(len(automaton))]
    # Refine until nothing changes: the naive definition of equivalence.
    block = [int(state in automaton.accepting) for state in range(len(automaton))]
    while True:
        marks = [
            (block[state], *(None if to is None else block[to] for to in rows[state]))
            for state in range(len(rows))
        ]
        numbers = {mark: number for number, mark in enumerate(dict.fromkeys(marks))}
        refined = [numbers[mark] for mark in marks]
        if len(set(refined)) == len(set(block)):
            break
        block = refined
    assert len(set(refined)) == len(automaton)
    live = set(automaton.accepting)
    while True:
        more = {s for s, row in enumerate(rows) if s not in live and live.intersection(row)}
        if not more:
            break
        live |= more
    assert live == set(range(len(automaton)))


@given(patterns())
def test_pickles_and_other_spellings_are_equal(pattern: str) -> None:
    automaton = Regex(pattern).to_automaton()
    assert pickle.loads(pickle.dumps(automaton)) == automaton  # noqa: S301
    again = (Regex(pattern) | Regex(f"(?:{pattern})(?:)")).to_automaton()
    assert again == automaton
    assert hash(again) == hash(automaton)
    assert (~~Regex(pattern)).to_automaton() == automaton


@given(patterns(), st.integers(0, 5))
@settings(max_examples=30)
def test_samples_are_members_and_as_frequent_as_each_other(pattern: str, seed: int) -> None:
    automaton = Regex(pattern).to_automaton()
    expected = members(pattern)
    if not 1 <= len(expected) <= 40:
        return
    draws = Counter(automaton.sample(200 * len(expected), seed=seed, max_length=LONGEST))
    assert set(draws) == set(expected)
    # 200 expected of each: six standard deviations.
    assert all(abs(count - 200) < 85 for count in draws.values())


def spelled(texts: set[bytes], tokens: list[bytes], longest: int) -> list[list[int]]:
    """Sequences of at most `longest` tokens that spell one of the texts, in order."""
    return [
        list(ids)
        for n in range(longest + 1)
        for ids in itertools.product(range(len(tokens)), repeat=n)
        if b"".join(tokens[i] for i in ids) in texts
    ]


@given(
    st.lists(st.text(ALPHABET, max_size=3), min_size=1, max_size=4),
    st.lists(
        st.text(ALPHABET, min_size=1, max_size=2).map(str.encode)
        | st.binary(min_size=1, max_size=2),
        min_size=1,
        max_size=5,
    ),
)
def test_tokenizations_are_those_of_brute_force(texts: list[str], tokens: list[bytes]) -> None:
    language: Language = Choice(texts)
    automaton = Constraint(language, Vocabulary.from_tokens(tokens)).to_automaton()
    expected = spelled({text.encode() for text in texts}, tokens, 4)
    assert list(automaton.enumerate(max_tokens=4)) == expected
    sizes = Counter(map(len, expected))
    assert automaton.counts(4) == [sizes[n] for n in range(5)]
    for index, ids in enumerate(expected):
        assert automaton.nth(index) == ids
        assert automaton.rank(ids) == index


@given(st.binary(max_size=80))
def test_bytes_of_strangers_are_refused_or_read(data: bytes) -> None:
    saved = Regex("a|é").to_automaton().to_bytes()
    for damaged in (data, saved[:16] + data, saved[: len(saved) - len(data)] + data):
        try:
            automaton = Automaton.from_bytes(damaged)
        except ValueError:
            continue
        assert automaton.to_bytes() == damaged
