"""DirectMerge and CartesianMerge against merging text by text, and the article's figures."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Container, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from formalm import Constraint, Regex, Vocabulary
from formalm.reference.cartesian_merge import cartesian_merge, forbidden_after
from formalm.reference.direct_merge import direct_merge, merge_in_rounds, useful_merges
from formalm.reference.outlines import CharacterMachine, map_states_to_vocabulary

MISTRAL = Path(__file__).parents[3] / "shared" / "tokenizers" / "mistral-v1-32k.json.gz"
needs_mistral = pytest.mark.skipif(
    not MISTRAL.exists(), reason="no tokenizer files in ../shared/tokenizers"
)
TABLE = [("a", "b"), ("a", "a"), ("a", "c")]
PATTERNS = [r"a*b*", r"[abc]{0,5}", r"(ab|ba|c){0,3}", r"(a|aab?c){1,3}", r"a{0,9}", r"(a|b)*c?"]


def random_merges(rng: random.Random) -> list[tuple[str, str]]:
    """Merges of parts that are there already, so that none is before those of its parts."""
    tokens, merges = list("abc"), []
    while len(merges) < 6:
        left, right = rng.choice(tokens), rng.choice(tokens)
        if left + right not in tokens and len(left + right) < 6:
            tokens.append(left + right)
            merges.append((left, right))
    return useful_merges(merges)


def members(machine: CharacterMachine, length: int) -> list[str]:
    found, layer = [], [("", machine.start)]
    for _ in range(length + 1):
        found += [text for text, state in layer if state in machine.accepting]
        layer = [(t + c, s) for t, state in layer for c, s in machine.transitions[state].items()]
    return found


def paths(
    rows: Mapping[Any, Mapping[str, Any]], start: Any, accepting: Container[Any], length: int
) -> set[tuple[str, ...]]:
    """The token sequences of a machine that spell at most ``length`` characters."""
    found: set[tuple[str, ...]] = set()
    layer: list[tuple[tuple[str, ...], Any]] = [((), start)]
    while layer:
        found |= {path for path, state in layer if state in accepting}
        layer = [
            ((*path, token), target)
            for path, state in layer
            for token, target in rows[state].items()
            if len("".join(path) + token) <= length
        ]
    return found


@pytest.mark.parametrize("seed", range(30))
@pytest.mark.parametrize("pattern", PATTERNS)
def test_direct_and_cartesian_merges_agree_with_the_definition(pattern: str, seed: int) -> None:
    merges = random_merges(random.Random(seed)) if seed else TABLE
    machine = CharacterMachine.of(Regex(pattern), "abc")
    expected = {tuple(merge_in_rounds(text, merges)[-1]) for text in members(machine, 7)}
    direct = direct_merge(machine, merges)
    assert paths(direct.transitions, direct.start, direct.accepting, 7) == expected
    tokens = [*"abc", *("".join(merge) for merge in merges)]
    product = cartesian_merge(machine, tokens, lambda token: forbidden_after(token, merges))
    start = (machine.start, None)
    assert paths(product.transitions, start, product.accepting, 7) == expected


@cache
def mistral() -> tuple[Vocabulary, tuple[tuple[str, str], ...], tuple[str, ...]]:
    file = json.loads(gzip.decompress(MISTRAL.read_bytes()))
    merges = [
        tuple(m.split(" ")) if isinstance(m, str) else tuple(m) for m in file["model"]["merges"]
    ]
    pieces = tuple(piece for piece in file["model"]["vocab"] if not piece.startswith("<"))
    return Vocabulary.from_tokenizer_json(file), tuple(useful_merges(merges)), pieces


@needs_mistral
def test_the_figures_of_the_article() -> None:
    vocabulary, merges, pieces = mistral()
    pattern = "boolean:▁((true)|(false))"
    machine = CharacterMachine.of(Regex(pattern), "boleantrufs:▁")
    index = map_states_to_vocabulary(machine, pieces)
    assert (len(index), sum(map(len, index.values()))) == (17, 48)
    direct = direct_merge(machine, merges)
    assert sum(map(len, direct.transitions.values())) == 4
    product = cartesian_merge(machine, pieces, lambda token: forbidden_after(token, merges))
    assert (len(product.transitions), product.edge_count) == (5, 4)
    # The masks' way, on bytes.
    constraint = Constraint(
        Regex("boolean: ((true)|(false))"), vocabulary, tokenization="canonical"
    )
    matcher = constraint.matcher()
    assert len(matcher.forced_token_ids()) == 2
    matcher.advance_many(matcher.forced_token_ids())
    assert len(matcher.allowed_token_ids()) == 2


@needs_mistral
def test_tokens_that_may_not_follow_a_space() -> None:
    vocabulary, merges, _ = mistral()
    forbidden = forbidden_after("▁", merges)
    assert len(forbidden) == 12_260
    ids = {token: at for at, token in enumerate(vocabulary.tokens()) if token and at > 258}
    space = ids[b" "]
    mine = {vocabulary.token_bytes(t) for t in vocabulary.encoder().forbidden(space, True)}
    assert mine == {token.replace("▁", " ").encode() for token in forbidden}


@needs_mistral
def test_two_first_tokens_of_ten() -> None:
    vocabulary, _, _ = mistral()
    names = Regex(" William| Theodore")
    first = {
        kind: len(Constraint(names, vocabulary, tokenization=kind).matcher().allowed_token_ids())
        for kind in ("all", "canonical")
    }
    # The article counts ten, as it knows no tokens for single bytes: one is a space.
    assert first == {"all": 11, "canonical": 2}
