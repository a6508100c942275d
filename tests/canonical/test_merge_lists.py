"""Merge lists that no training produces, against the definition of merging."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from itertools import pairwise, product

import pytest
from tokenizers import Tokenizer

from formalm import Constraint, Regex, Vocabulary, VocabularyError
from tests.canonical.small_tokenizers import PIECES, by_bytes, tokenizations, trained

LETTERS = "abc"
LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]
Merge = tuple[str, str]


def naive(text: str, rank: dict[Merge, int]) -> list[str]:
    """The pair of lowest rank, the leftmost of equals, again and again."""
    parts = list(text)
    while len(parts) > 1:
        ranks = [rank.get(pair, len(rank)) for pair in pairwise(parts)]
        if min(ranks) == len(rank):
            break
        at = ranks.index(min(ranks))
        parts[at : at + 2] = ["".join(parts[at : at + 2])]
    return parts


def strange(rng: random.Random) -> list[Merge]:
    """Merges in any order, several that make one token, some before those of their parts."""
    tokens, merges = list(LETTERS), []
    while len(merges) < 14:
        pair = (rng.choice(tokens), rng.choice(tokens))
        if len("".join(pair)) < 7 and pair not in merges:
            merges.append(pair)
            if "".join(pair) not in tokens:
                tokens.append("".join(pair))
    rng.shuffle(merges)
    return merges


def tokenizer_of(merges: list[Merge], *, whole: bool) -> Tokenizer:
    file = json.loads(trained(PIECES["digits"]).to_str())
    pieces = [piece for piece in file["model"]["vocab"] if len(piece) == 1]
    pieces += sorted({left + right for left, right in merges})
    file["model"]["vocab"] = {piece: at for at, piece in enumerate(pieces)}
    file["model"]["merges"] = [list(merge) for merge in merges]
    file["model"]["ignore_merges"] = whole
    return Tokenizer.from_str(json.dumps(file))


@pytest.mark.parametrize("part", [0, *(pytest.param(at, marks=LONG) for at in (1, 2))])
def test_strange_merges_are_followed_exactly(
    part: int, record_property: Callable[[str, object], None]
) -> None:
    seeds = range(8) if part == 0 else range(100 * part, 100 * part + 100)
    length = 5 if part == 0 else 7
    texts = ["".join(t) for n in range(1, length + 1) for t in product(LETTERS, repeat=n)]
    early = never = count = 0
    for seed in seeds:
        merges = strange(random.Random(seed))
        whole = seed % 2 == 1
        vocabulary = Vocabulary.from_tokenizer_json(tokenizer_of(merges, whole=whole).to_str())
        encoder, ids = vocabulary.encoder(), by_bytes(vocabulary)
        early += encoder.early_count
        never += sum(encoder.kind(at) in ("never", "whole") for at in range(len(vocabulary)))
        rank = {merge: at for at, merge in enumerate(merges)}
        constraint = Constraint(Regex("[abc]*"), vocabulary, tokenization="canonical")
        matcher = constraint.matcher()
        for text in texts[:: 1 if len(texts) < 1000 else 5]:
            parts = [text] if whole and text.encode() in ids else naive(text, rank)
            expected = [ids[each.encode()][0] for each in parts]
            accepted = []
            for tokens in tokenizations(text.encode(), ids):
                count += 1
                matcher.reset()
                if matcher.advance_many(tokens) == len(tokens) and matcher.is_accepting:
                    accepted.append(tokens)
            assert accepted == [expected], (seed, text)
    assert early > 0
    assert never > 0
    record_property("tokenizations", count)


@pytest.mark.parametrize("seed", range(20))
def test_merges_that_are_listed_twice_are_exact_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    merges = strange(rng)
    merges += rng.choices(merges, k=3)
    rng.shuffle(merges)
    tokenizer = tokenizer_of(merges, whole=False)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    try:
        encoder = vocabulary.encoder()
    except VocabularyError:
        return
    for text in map("".join, product(LETTERS, repeat=6)):
        assert encoder.encode(text) == tokenizer.encode(text).ids
