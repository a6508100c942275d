"""Two tokens are adjacent in a pre-token iff merging their text gives the two again."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Iterator

import pytest

from tests.canonical.tokenizer_files import Case, needs_files

pytestmark = needs_files
COUNTS = [20_000, pytest.param(1_000_000, marks=[pytest.mark.slow, pytest.mark.timeout(1800)])]
Pairs = list[tuple[int, int]]


class Drawn:
    """Pairs of tokens, at random or around the merges that could break them."""

    def __init__(self, case: Case) -> None:
        self.rng = random.Random(case.name)
        self.ids = case.ids_of_kind("merged")
        pieces = case.pieces
        self.texts = {token_id: pieces[token_id] or "" for token_id in self.ids}
        self.by_start = sorted((text, at) for at, text in self.texts.items())
        self.by_end = sorted((text[::-1], at) for at, text in self.texts.items())
        self.merges = case.file["model"]["merges"]

    def uniform(self) -> tuple[int, int]:
        return self.rng.choice(self.ids), self.rng.choice(self.ids)

    def around_a_merge(self) -> tuple[int, int]:
        """A token that ends as a merge's left part does, one that begins as its right part."""
        merge = self.rng.choice(self.merges)
        left, right = merge.split(" ") if isinstance(merge, str) else merge
        return self._one(self.by_end, left[::-1]), self._one(self.by_start, right)

    def _one(self, texts: list[tuple[str, int]], start: str) -> int:
        first = bisect_left(texts, (start, -1))
        last = bisect_left(texts, (start + "\U0010ffff", -1))
        return texts[self.rng.randrange(first, last)][1] if last > first else texts[0][1]


def batches(draw: Callable[[], tuple[int, int]], count: int) -> Iterator[Pairs]:
    while count:
        size = min(count, 50_000)
        yield [draw() for _ in range(size)]
        count -= size


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("how", ["uniform", "around_a_merge"])
def test_tokens_are_adjacent_iff_merging_keeps_both(
    case: Case, how: str, count: int, record_property: Callable[[str, object], None]
) -> None:
    drawn, encoder = Drawn(case), case.vocabulary.encoder()
    apart = 0
    for pairs in batches(getattr(drawn, how), count):
        spelled = [drawn.texts[a] + drawn.texts[b] for a, b in pairs]
        for pair, ids in zip(pairs, case.merged(spelled), strict=True):
            stays = ids == [*pair]
            assert (encoder.crossing(*pair) is None) == stays, pair
            apart += not stays
    assert apart > count / 200
    record_property("pairs", count)
    record_property("forbidden", apart)


@pytest.mark.parametrize("count", COUNTS)
def test_pairs_that_form_the_whole_string(
    case: Case, count: int, record_property: Callable[[str, object], None]
) -> None:
    """With cuts, whole pieces and added tokens: a text of two tokens is canonical or it is not."""
    drawn, vocabulary = Drawn(case), case.vocabulary
    drawn.ids = [at for at in range(len(vocabulary)) if vocabulary.token_bytes(at) is not None]
    matcher = case.anything.matcher()
    texts = canonical = 0
    for pairs in batches(drawn.uniform, count):
        spelled = [(pair, spell(case, pair)) for pair in pairs]
        known = [(pair, text) for pair, text in spelled if text is not None]
        encoded = case.encode_all([text for _, text in known])
        for (pair, _), ids in zip(known, encoded, strict=True):
            is_one = ids == [*pair]
            matcher.reset()
            accepted = matcher.advance_many([*pair]) == 2 and matcher.is_accepting
            assert accepted == is_one, (pair, ids)
            texts, canonical = texts + 1, canonical + is_one
    assert 0 < canonical < texts
    record_property("texts of two tokens", texts)
    record_property("canonical", canonical)


def spell(case: Case, pair: tuple[int, int]) -> str | None:
    try:
        return case.vocabulary.decode(pair).decode()
    except UnicodeDecodeError:
        return None
