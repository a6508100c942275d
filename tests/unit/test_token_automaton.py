"""Constraints written out: automata of token sequences."""

from __future__ import annotations

import copy
import itertools
import pickle
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from formalm import ArgumentError, Choice, Constraint, LimitError, Regex, StringLiteral, Vocabulary
from formalm.automata import TokenAutomaton

GPT2 = Path(__file__).parents[3] / "shared" / "tokenizers" / "gpt2-50k.json.gz"
NUMBER = r"([0-9]+)?\.[0-9]+"


def spellings(text: bytes, tokens: list[bytes | None]) -> set[tuple[int, ...]]:
    """All ways to write a text with tokens, by trying every token."""
    if not text:
        return {()}
    found = set()
    for token_id, token in enumerate(tokens):
        if token and text.startswith(token):
            found |= {(token_id, *rest) for rest in spellings(text[len(token) :], tokens)}
    return found


@pytest.mark.parametrize(
    "texts", [["The"], ["a", "ab", "abab"], ["é", "é😀", "xé"], ["nothing"], [""]]
)
def test_token_automata_hold_all_tokenizations(texts: list[str]) -> None:
    pieces = ["T", "h", "e", "Th", "he", "The", "a", "b", "ab", "aba", "x", "é", "xé"]
    tokens: list[bytes | None] = [piece.encode() for piece in pieces]
    tokens += ["😀".encode()[:2], "😀".encode()[2:], "é😀".encode()[:3], b"", None, b"a", b"<end>"]
    vocabulary = Vocabulary.from_tokens(tokens, end_token_ids=[len(tokens) - 1])
    automaton = Constraint(Choice(texts), vocabulary).to_automaton()
    expected = set().union(*(spellings(text.encode(), tokens[:-1]) for text in texts))
    ordered = [list(ids) for ids in sorted(expected, key=lambda ids: (len(ids), ids))]
    assert list(automaton) == ordered
    assert automaton.count() == len(ordered)
    assert automaton.is_empty == (not ordered)
    assert all(
        automaton.matches(ids) and automaton.nth(automaton.rank(ids)) == ids for ids in ordered
    )
    assert automaton.shortest() == (ordered[0] if ordered else None)
    assert not automaton.matches([len(tokens) - 1])
    assert pickle.loads(pickle.dumps(automaton)) == automaton  # noqa: S301
    assert hash(automaton) == hash(copy.deepcopy(automaton))


def test_token_automata_have_edges_counts_and_samples() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"aa", b" b", b"x"])
    automaton = Constraint(Regex("a{2}( b)*"), vocabulary).to_automaton()
    assert isinstance(automaton, TokenAutomaton)
    edges = automaton.edges()
    assert (edges.dtype, edges.shape) == (np.uint32, (automaton.edge_count, 3))
    assert edges.tolist() == [[0, 0, 1], [0, 1, 2], [1, 0, 2], [2, 2, 2]]
    assert (automaton.state_count, automaton.accepting) == (3, frozenset({2}))
    assert automaton.step(0, 1) == 2
    assert automaton.step(0, 3) is None
    assert automaton.counts(3) == [0, 1, 2, 2]
    assert (automaton.count(2), automaton.count(max_tokens=3)) == (2, 5)
    draws = Counter(map(tuple, automaton.sample(4000, seed=0, max_tokens=2)))
    assert set(draws) == {(1,), (0, 0), (1, 2)}
    assert min(draws.values()) > 1200
    assert list(automaton.enumerate(tokens=2)) == [[0, 0], [1, 2]]
    labels = {(source, target): label for source, label, target in automaton._edges_for_people()}
    assert labels == {(0, 1): "a", (0, 2): "aa", (1, 2): "a", (2, 2): "⎵b"}
    assert automaton.matches(np.array([1, 2, 2]))
    assert [1, 2] in automaton
    for call in (
        lambda: automaton.matches([4]),
        lambda: automaton.matches([-1]),
        lambda: automaton.matches("ab"),  # type: ignore[arg-type]
        lambda: automaton.matches(3),  # type: ignore[arg-type]
        lambda: automaton.rank([0]),
        automaton.count,
        lambda: automaton.count(1, max_tokens=1),
        lambda: automaton.step(3, 0),
    ):
        with pytest.raises(ArgumentError):
            call()


def test_token_automata_leave_dead_ends_out() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"ab", b"c"])
    constraint = Constraint(Choice(["abc", "ax"]), vocabulary)
    matcher = constraint.matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 1]
    assert list(constraint.to_automaton()) == [[1, 2]]


def test_token_automata_have_limits() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b"])
    constraint = Constraint(Regex("(a|b)*a(a|b){5}"), vocabulary)
    assert constraint.to_automaton(state_limit=64, edge_limit=128).state_count == 64
    for limits, what in (({"state_limit": 63}, "states"), ({"edge_limit": 127}, "edges")):
        with pytest.raises(LimitError) as caught:
            constraint.to_automaton(**limits)
        assert caught.value.what == what
    for limit in (0, -1, 1.0, True):
        with pytest.raises(ArgumentError):
            constraint.to_automaton(state_limit=limit)  # type: ignore[arg-type]


def test_many_tokens_are_named_by_a_few() -> None:
    vocabulary = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)])
    automaton = Constraint(Regex("[a-z]"), vocabulary).to_automaton()
    assert list(automaton._edges_for_people()) == [(0, "a b c … 23 more", 1)]


@pytest.mark.skipif(not GPT2.exists(), reason="the shared tokenizer files are not here")
def test_the_has_four_tokenizations_with_gpt2() -> None:
    vocabulary = Vocabulary.from_tokenizer_json(GPT2)
    automaton = Constraint(StringLiteral("The"), vocabulary).to_automaton()
    texts = [[vocabulary.token_bytes(i) for i in ids] for ids in automaton]
    assert automaton.count() == 4
    assert sorted(texts) == [[b"T", b"h", b"e"], [b"T", b"he"], [b"Th", b"e"], [b"The"]]
    assert automaton.counts(3) == [0, 1, 2, 1]
    assert (automaton.state_count, automaton.edge_count) == (4, 6)
    digits = Constraint(Regex(NUMBER), vocabulary).to_automaton()
    assert digits.state_count == 3
    text = re.compile(NUMBER)
    for ids in itertools.islice(digits, 200):
        assert text.fullmatch(vocabulary.decode_text(ids))
