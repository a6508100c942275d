"""Searches of parsers find what searches of the same texts as a list find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import Choice, ParseFailure, Parser, Query, TableModel, Vocabulary, mass, search

LETTERS = "aé€𝄞"
WEIGHTS = [0.05, 0.1, 0.15, 0.2]


class Listed(Parser):
    """The texts of a list; it refuses what begins none of them, so it has no dead ends."""

    def __init__(self, texts: frozenset[str], read: str = "") -> None:
        self.texts, self.read = texts, read

    def append(self, text: str) -> None:
        self.read += text
        if not any(known.startswith(self.read) for known in self.texts):
            raise ParseFailure

    def copy(self) -> Listed:
        return type(self)(self.texts, self.read)

    @property
    def is_accepting(self) -> bool:
        return self.read in self.texts


class Forcing(Listed):
    """Lists what must follow where none of it begins the rest of another text."""

    def next_strings(self) -> list[str]:
        rests = [known[len(self.read) :] for known in self.texts if known.startswith(self.read)]
        begun = [one for one in rests for other in rests if one != other and other.startswith(one)]
        return [] if "" in rests or begun else rests


def spelled(text: str) -> list[int]:
    return [LETTERS.index(letter) for letter in text]


@st.composite
def models(draw: st.DrawFn) -> TableModel:
    """Every letter is a token; others are texts, as parsers of text do not end inside letters."""
    more = draw(st.lists(st.text(LETTERS, min_size=2, max_size=3), max_size=5))
    tokens: list[bytes | None] = [text.encode() for text in [*LETTERS, *more]]
    vocabulary = Vocabulary.from_tokens(
        [*tokens, None], end_token_ids=[len(tokens)], encode=spelled
    )
    weights = [WEIGHTS[number % 4] for number in range(len(tokens) + 1)]
    return TableModel(vocabulary, {}, default=[weight / sum(weights) for weight in weights])


TEXTS = st.frozensets(st.text(LETTERS, max_size=4), min_size=1, max_size=6)


@given(
    model=models(),
    texts=TEXTS,
    kind=st.sampled_from([Listed, Forcing]),
    unique=st.sampled_from(["strings", "tokens"]),
    cut=st.integers(0, 3),
)
def test_hits_and_masses_are_those_of_the_list(
    model: TableModel, texts: frozenset[str], kind: type[Listed], unique: str, cut: int
) -> None:
    """Also behind a beginning, with characters of several bytes within tokens and across them."""
    begun = min(texts, key=len)[:cut] or None
    found = [
        {
            (hit.text, tuple(hit.token_ids)): pytest.approx(hit.logprob)
            for hit in search(model, Query(language, given=begun, event="complete"), unique=unique)
        }
        for language in (kind(texts), Choice(sorted(texts)))
    ]
    assert found[0] == found[1]
    assert {text for text, _ in found[0]} == {
        text for text in texts if text.startswith(begun or "")
    }
    one, other = (
        mass(model, Query(language, given=begun, event="complete"))
        for language in (kind(texts), Choice(sorted(texts)))
    )
    assert one.high == pytest.approx(other.high)
    assert one.low == pytest.approx(other.low)
