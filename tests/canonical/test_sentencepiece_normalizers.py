"""User-defined pieces and normalizers of SentencePiece models; its own encoding is the oracle."""

from __future__ import annotations

import random
from collections import Counter

import pytest
import sentencepiece

from formalm import Vocabulary, VocabularyError
from tests.canonical.given_back import check_given_back
from tests.canonical.sentencepiece_models import (
    BPE,
    NORMAL,
    UNIGRAM,
    USER_DEFINED,
    charsmap,
    model_of,
    random_pieces,
)

SLOW = [pytest.mark.slow, pytest.mark.timeout(3600)]
PATTERNS = ["[abx ]{0,4}", "[abé]{0,4}", "[ab]{0,5}", "(ab|x|c| ){0,4}"]
NORMALIZED = [
    "( |a|  ){0,4}",
    "(é|e\u0301|e|\u0327|a){0,3}",
    "(ﬁ|f|i|²|2|\u3000|\t| ){0,3}",
    "(か|\u3099|が|가|\u1100|\u1161|각|\u11a8){0,3}",
    "(<|>|<x>|\u0338|≯|e|\u0301){0,3}",
    "[\u00c0-\u00ff][\u0300-\u0304]?",
    "(\u200b|\x07|a|\ufeff|A|Ａ){0,3}",
]


def check(model: bytes, pattern: str, before: str = "") -> str:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocabulary = Vocabulary.from_sentencepiece(model)
    return check_given_back(processor.encode, vocabulary, pattern, before)


def check_random(seed: int) -> str:
    """The masks of a random model with user-defined pieces allow exactly its encodings."""
    rng = random.Random(seed)
    kind = rng.choice([UNIGRAM, BPE])
    pieces = random_pieces(rng, kind, "abxé▁")
    model = model_of(pieces, kind, byte_fallback=rng.random() < 0.5, trims=rng.random() < 0.2)
    pattern = rng.choice(PATTERNS)
    try:
        return check(model, pattern)
    except VocabularyError as error:
        if "does not do what we read" in str(error):
            raise
        return "refused"


@pytest.mark.parametrize("count", [120, pytest.param(5_000, marks=SLOW)])
def test_random_models_with_user_defined_pieces(count: int) -> None:
    found = Counter(check_random(seed) for seed in range(count))
    assert found["equal"] > 0.6 * count, found


@pytest.mark.parametrize("kind", [UNIGRAM, BPE])
@pytest.mark.parametrize("name", ["nmt_nfkc", pytest.param("nfkc_cf", marks=SLOW)])
@pytest.mark.parametrize("dummy_prefix", [False, True])
def test_the_library_s_own_normalizers(name: str, kind: int, dummy_prefix: bool) -> None:
    letters = "▁aefiA2<>éçéかが가각Ω"
    pieces = [(letter, -2.0 - at / 8, NORMAL) for at, letter in enumerate(dict.fromkeys(letters))]
    pieces += [("▁a", -3.0, NORMAL), ("<x>", 0.0, USER_DEFINED)]
    model = model_of(
        pieces,
        kind,
        byte_fallback=True,
        charsmap=charsmap(name),
        trims=True,
        dummy_prefix=dummy_prefix,
    )
    for pattern in NORMALIZED:
        # After another character, a text may begin with a space.
        check(model, pattern, "中" if dummy_prefix else "")


def test_pieces_that_a_normalizer_would_change_are_refused_by_name() -> None:
    pieces = [("▁", -1.0, NORMAL), ("a", -1.0, NORMAL), ("ﬁx", 0.0, USER_DEFINED)]
    model = model_of(pieces, UNIGRAM, charsmap=charsmap("nmt_nfkc"), trims=False)
    with pytest.raises(VocabularyError, match="user-defined piece"):
        Vocabulary.from_sentencepiece(model).encoder()
    spaced = [("▁", -1.0, NORMAL), ("a", -1.0, NORMAL), ("▁▁", 0.0, USER_DEFINED)]
    with pytest.raises(VocabularyError, match="removes spaces"):
        Vocabulary.from_sentencepiece(model_of(spaced, UNIGRAM, trims=True)).encoder()
