"""Overlapping added tokens are read as the library does, or refused."""

from __future__ import annotations

import random

import pytest
from tokenizers import AddedToken, pre_tokenizers

from formalm import Vocabulary, VocabularyError
from tests.canonical.small_tokenizers import trained

LETTERS = ["a", "1", "'", " ", "the", "é", "😀", "\n"]


@pytest.mark.parametrize("seed", range(60))
def test_added_tokens_are_exact_or_refused(seed: int) -> None:
    rng = random.Random(seed)
    tokenizer = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.encode_special_tokens = True
    for _ in range(rng.randrange(1, 4)):
        text = "".join(rng.choices(LETTERS, k=rng.randrange(1, 4)))
        special, normalized = rng.random() < 0.3, rng.random() < 0.5
        tokenizer.add_tokens([AddedToken(text, special=special, normalized=normalized)])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    try:
        encoder = vocabulary.encoder()
    except VocabularyError:
        return
    for _ in range(400):
        text = "".join(rng.choices(LETTERS, k=rng.randrange(1, 8)))
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        assert encoder.encode(text) == ids, text
        assert vocabulary.is_canonical(ids)


def test_an_added_token_that_is_not_decoded_to_its_text_is_refused() -> None:
    tokenizer = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    # Its characters are names of bytes, as which the decoder reads them.
    tokenizer.add_tokens([AddedToken("éé", normalized=False)])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    with pytest.raises(VocabularyError, match='matches "éé", but decodes to other bytes'):
        vocabulary.encoder()
