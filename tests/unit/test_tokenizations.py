"""All token sequences of a text, against their definition."""

from __future__ import annotations

from itertools import islice, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import (
    ArgumentError,
    Constraint,
    LimitError,
    StringLiteral,
    Vocabulary,
    VocabularyError,
)
from formalm.models.canary import canary

TOKENS = st.lists(st.binary(min_size=1, max_size=3).map(lambda b: bytes(x % 3 for x in b)))


@given(TOKENS, st.binary(max_size=6).map(lambda b: bytes(x % 3 for x in b)))
def test_they_are_all_sequences_in_order_each_once(tokens: list[bytes], text: bytes) -> None:
    tokens = [*tokens[:4], b"\x00"]
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[])
    found = vocabulary.tokenizations(text)
    ids = range(len(tokens))
    every = [
        sequence
        for length in range(len(text) + 1)
        for sequence in product(ids, repeat=length)
        if vocabulary.decode(sequence) == text
    ]
    assert list(found) == every
    assert found.count == len(found) == len(every)
    assert bool(found) == bool(every)
    assert all(sequence in found for sequence in every)
    assert (len(tokens),) not in found
    assert (0, 99) not in found


def test_the_canonical_one_comes_first_and_once() -> None:
    vocabulary = canary().vocabulary
    for text in ("the cat", " ", "", "naïve 日", "a\n\n  b"):
        found = vocabulary.tokenizations(text)
        own = tuple(vocabulary.encode(text))
        listed = list(islice(found, 5000))
        assert found.canonical == listed[0] == own
        assert len(set(listed)) == len(listed)
        assert sum(vocabulary.is_canonical(ids) for ids in listed[:200]) == 1
        assert vocabulary.tokenizations(text.encode()).canonical == own


def test_they_are_the_paths_of_the_automaton() -> None:
    vocabulary = canary().vocabulary
    for text in ("the dog", "1234", "don't"):
        automaton = Constraint(StringLiteral(text), vocabulary).to_automaton()
        found = vocabulary.tokenizations(text)
        assert found.count == automaton.count()
        assert set(found) == {tuple(ids) for ids in automaton.enumerate()}


def test_counts_are_exact_however_large() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"aa"], end_token_ids=[])
    fibonacci = [1, 1]
    while len(fibonacci) <= 3000:
        fibonacci.append(fibonacci[-1] + fibonacci[-2])
    found = vocabulary.tokenizations("a" * 3000)
    assert found.count == fibonacci[3000]
    assert bool(found)
    with pytest.raises(LimitError, match="count"):
        len(found)
    first, second = islice(found, 2)
    assert first == (1,) * 1500
    assert second == (0, 0) + (1,) * 1499


def test_strings_without_tokenizations_and_refused_arguments() -> None:
    vocabulary = canary().vocabulary
    broken = vocabulary.tokenizations(b"a\xff")
    assert (broken.canonical, broken.count) == (None, 1)
    few = Vocabulary.from_tokens([b"a", None], end_token_ids=[])
    assert not few.tokenizations("b")
    assert list(few.tokenizations("b")) == []
    assert list(few.tokenizations("aa")) == [(0, 0)]
    assert list(few.tokenizations("")) == [()]
    with pytest.raises(VocabularyError, match="canonical"):
        _ = few.tokenizations("a").canonical
    with pytest.raises(LimitError):
        few.tokenizations("aaa", byte_limit=2)
    for wrong in (3, None, ["a"], "\ud800"):
        with pytest.raises(ArgumentError):
            few.tokenizations(wrong)  # type: ignore[arg-type]
    for limit in (-1, 1.5, True, None):
        with pytest.raises(ArgumentError):
            few.tokenizations("a", byte_limit=limit)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        "a" in few.tokenizations("a")  # noqa: B015
    assert repr(few.tokenizations("aa")) == "<Tokenizations of b'aa'>"
