"""ReLM's algorithms 1 and 2, against token automata and brute force."""

from __future__ import annotations

import gzip
import random
from itertools import product
from pathlib import Path

import pytest

from formalm import Choice, Constraint, Regex, StringLiteral, Vocabulary
from formalm.models.canary import canary
from formalm.reference.machine_diagrams import machine_diagram
from formalm.reference.relm import (
    Walk,
    add_ambiguous_edges,
    byte_machine,
    connecting_walks,
    encodings,
)

TOKENIZER = Path(__file__).parents[3] / "shared" / "tokenizers" / "gpt2-50k.json.gz"

THE = ["T", "h", "e", "Th", "he", "The"]
ANIMALS = Regex("The ((cat)|(dog))")
# GPT-2's tokens in "The cat" and "The dog".
WORDS = [*THE, " ", " c", " d", "c", "a", "t", "d", "o", "g", "ca", "at", "cat", "do", "og", "dog"]
WORDS += [" ca", " cat", " do", " dog"]


def split_in_all_ways(text: bytes, words: list[str]) -> set[tuple[str, ...]]:
    """Brute force: every way to cut a text into words."""
    letters = text.decode("latin-1")
    if not letters:
        return {()}
    found = set()
    for length in range(1, len(letters) + 1):
        if letters[:length] in words:
            rest = split_in_all_ways(text[length:], words)
            found |= {(letters[:length], *more) for more in rest}
    return found


def test_the_four_encodings_of_figure_3() -> None:
    """ReLM: "The can be encoded in 4 ways"; a string of n characters in 2^(n - 1)."""
    ambiguous = add_ambiguous_edges(byte_machine(StringLiteral("The")), THE)
    assert encodings(ambiguous, 3) == split_in_all_ways(b"The", THE)
    assert len(encodings(ambiguous, 3)) == 4
    everything = ["abcdef"[i:j] for i in range(6) for j in range(i + 1, 7)]
    machine = add_ambiguous_edges(byte_machine(StringLiteral("abcdef")), everything)
    assert len(encodings(machine, 6)) == 2**5


def test_walks_start_anywhere() -> None:
    machine = byte_machine(Regex("abab"))
    assert connecting_walks(machine, "ab") == [Walk(0, 2), Walk(2, 4)]
    assert connecting_walks(machine, "aa") == []


@pytest.mark.parametrize(
    ("language", "words"),
    [
        (ANIMALS, WORDS),
        (Choice(["ab", "abc", "b"]), ["a", "b", "c", "ab", "bc", "abc", "bb"]),
        (Choice(["ab", "cb", "ad"]), ["a", "b", "ab", "cb"]),
        (Regex("a{0,3}b?"), ["a", "aa", "aaa", "ab", "b"]),
        (Regex("é|e"), ["Ã", "©", "Ã©", "e"]),
        (Choice(["xyz"]), ["x", "yz", "xy"]),
        (Choice(["xyz"]), ["x", "y"]),
    ],
    ids=["figure 12", "choice", "no token d", "repeats", "bytes", "one way", "no way"],
)
def test_the_paths_are_those_of_the_token_automaton(language, words) -> None:
    ambiguous = add_ambiguous_edges(byte_machine(language), words)
    tokens = [word.encode("latin-1") for word in words]
    automaton = Constraint(language, Vocabulary.from_tokens(tokens)).to_automaton()
    ours = {tuple(words[i] for i in ids) for ids in automaton}
    longest = max((len(path) for path in ours), default=0)
    assert encodings(ambiguous, longest + 1) == ours
    members = list(language.to_automaton())
    brute = {path for text in members for path in split_in_all_ways(text.encode(), words)}
    assert ours == brute


def test_the_paths_of_an_infinite_language() -> None:
    language, words = Regex("(ab|c)*d?"), ["a", "b", "c", "d", "ab", "ba", "cc", "abd"]
    ambiguous = add_ambiguous_edges(byte_machine(language), words)
    tokens = [word.encode() for word in words]
    automaton = Constraint(language, Vocabulary.from_tokens(tokens)).to_automaton()
    for length in range(5):
        exact = {path for path in encodings(ambiguous, length) if len(path) == length}
        assert len(exact) == automaton.count(length)
        for path in product(words, repeat=length):
            ids = [words.index(word) for word in path]
            assert (path in exact) == automaton.matches(ids)


@pytest.mark.parametrize("seed", range(40))
def test_random_languages_and_vocabularies(seed: int) -> None:
    draw = random.Random(seed)
    texts = ["".join(draw.choices("abc", k=draw.randrange(1, 6))) for _ in range(4)]
    parts = {text[i:j] for text in texts for i in range(len(text)) for j in range(i + 1, i + 4)}
    words = draw.sample(sorted(parts), min(len(parts), 7))
    language = Choice(texts)
    ambiguous = add_ambiguous_edges(byte_machine(language), words)
    tokens = [word.encode() for word in words]
    automaton = Constraint(language, Vocabulary.from_tokens(tokens)).to_automaton()
    ours = {tuple(words[i] for i in ids) for ids in automaton}
    assert encodings(ambiguous, 5) == ours
    assert ours == {path for text in texts for path in split_in_all_ways(text.encode(), words)}


def test_the_listing_keeps_characters_that_are_no_token() -> None:
    """Algorithm 2 adds edges only for words of several characters, and removes none."""
    machine = byte_machine(StringLiteral("ab"))
    as_listed = add_ambiguous_edges(machine, ["a", "ab"], as_listed=True)
    assert encodings(as_listed, 2) == {("ab",), ("a", "b")}
    assert encodings(add_ambiguous_edges(machine, ["a", "ab"]), 2) == {("ab",)}


def test_figure_12() -> None:
    ambiguous = add_ambiguous_edges(byte_machine(ANIMALS), WORDS)
    diagram = machine_diagram(ambiguous, "figure 12", shown=lambda word: word.replace(" ", "Ġ"))
    # The letters' automaton: T h e Ġ, then c a t or d o g.
    assert diagram.state_count == 10
    labels = {(source, target): label.split() for source, label, target in diagram.edges}
    assert labels[0, 3] == ["The"]
    assert sum(map(len, labels.values())) == diagram.edge_count
    assert {"Ġcat", "Ġdog", "Ġ"} <= {label for some in labels.values() for label in some}
    # 4 ways to write "The", and 8 each to write " cat" and " dog".
    assert len(encodings(ambiguous, 7)) == 4 * (8 + 8)


@pytest.mark.skipif(not TOKENIZER.exists(), reason="GPT-2's tokenizer is not there")
def test_the_words_are_the_tokens_of_gpt_2() -> None:
    text = gzip.decompress(TOKENIZER.read_bytes())
    vocabulary = Vocabulary.from_tokenizer_json(text)
    known = {vocabulary.token_bytes(i) for i in range(len(vocabulary))}
    parts = {
        text[i:j] for text in ("The cat", "The dog") for i in range(7) for j in range(i + 1, 8)
    }
    assert {part for part in parts if part.encode() in known} == set(WORDS)
    constraint = Constraint(ANIMALS, vocabulary)
    ambiguous = add_ambiguous_edges(byte_machine(ANIMALS), WORDS)
    automaton = constraint.to_automaton()
    assert automaton.count() == len(encodings(ambiguous, 7)) == 64


def test_a_canonical_encoding_need_not_be_the_shortest() -> None:
    vocabulary = canary().vocabulary
    tokens = {token for token in vocabulary.tokens() if token}
    fewest = [0]
    for end in range(1, len(b" Albert") + 1):
        fewest.append(
            min(1 + fewest[start] for start in range(end) if b" Albert"[start:end] in tokens)
        )
    assert fewest[-1] == 2
    assert len(vocabulary.encode(" Albert")) == 3
