"""Unigram models made on the spot, as files of both libraries, and canonical sets by definition."""

from __future__ import annotations

import random
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers

from formalm import Vocabulary
from tests.canonical.given_back import check_given_back, library

UNKNOWN = "<unk>"
LETTERS = "abcé"


def tokenizer_of(
    vocab: list[tuple[str, float]],
    *,
    byte_fallback: bool = False,
    scheme: str = "never",
    split: bool = False,
) -> Tokenizer:
    """A Unigram tokenizer of the given pieces after the unknown one, and bytes if asked for."""
    pieces = [(UNKNOWN, 0.0), *vocab]
    if byte_fallback:
        pieces += [(f"<0x{byte:02X}>", 0.0) for byte in range(256)]
    tokenizer = Tokenizer(models.Unigram(pieces, 0, byte_fallback))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
    steps: list[Any] = [decoders.Replace("▁", " ")]
    if byte_fallback:
        steps += [decoders.ByteFallback(), decoders.Fuse()]
    tokenizer.decoder = decoders.Sequence(steps)
    tokenizer.add_special_tokens([UNKNOWN])
    tokenizer.encode_special_tokens = True
    # The library reads scores less exactly than it writes them: as any file is read.
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.encode_special_tokens = True
    return tokenizer


def random_tokenizer(rng: random.Random) -> Tokenizer:
    """A model over a few letters, with integer, half-integer (tied) or arbitrary scores."""
    letters = LETTERS[: rng.randrange(2, 5)]
    scale = rng.choice([1.0, 0.5, rng.random() + 0.1])
    texts = {letter for letter in letters if rng.random() < 0.85}
    texts |= {
        "".join(rng.choices(letters + "▁", k=rng.randrange(2, 5))) for _ in range(rng.randrange(9))
    }
    texts |= {"▁"} if rng.random() < 0.8 else set()
    vocab = [(text, -scale * rng.randrange(1, 14)) for text in sorted(texts)]
    rng.shuffle(vocab)
    return tokenizer_of(
        vocab,
        byte_fallback=rng.random() < 0.5,
        split=rng.random() < 0.3,
    )


def check_random(seed: int) -> str:
    """The masks of a language over the letters allow exactly the library's encodings."""
    rng = random.Random(seed)
    tokenizer = random_tokenizer(rng)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    letters = LETTERS[:2] + rng.choice(["", " ", LETTERS[2], "é"])
    low, high = rng.choice([(0, 4), (2, 4), (3, 3), (1, 5)])
    if rng.random() < 0.3:
        words = {"".join(rng.choices(letters, k=rng.randrange(1, 7))) for _ in range(6)}
        pattern = "|".join(sorted(words))
    else:
        pattern = f"[{letters}]{{{low},{high}}}"
    return check_given_back(library(tokenizer), vocabulary, pattern)
