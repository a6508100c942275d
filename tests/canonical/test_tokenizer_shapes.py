"""Tokenizers composed as those of well-known models are, trained on a few lines."""

from __future__ import annotations

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

from formalm import Vocabulary, VocabularyError
from tests.canonical.small_tokenizers import PIECES, check_language, trained, with_fallback

LEVEL = pre_tokenizers.ByteLevel(False, use_regex=False)
O200K = (
    r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+"
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def sequence(*steps: object) -> object:
    return pre_tokenizers.Sequence(list(steps))


def gpt_neox() -> Tokenizer:
    """NFC, GPT-2's pattern, and runs of spaces as added tokens."""
    tokenizer = trained(PIECES["gpt2"])
    tokenizer.normalizer = normalizers.NFC()
    spaces = [AddedToken(" " * count, normalized=False) for count in range(2, 9)]
    tokenizer.add_tokens(spaces)
    return tokenizer


def phi_3() -> Tokenizer:
    """Llama 2's pieces with special tokens that absorb white space after them."""
    tokenizer = with_fallback()
    tokenizer.add_special_tokens([AddedToken("<|user|>", rstrip=True, normalized=False)])
    return tokenizer


def gemma() -> Tokenizer:
    """Spaces as marks, no space in front, a split at spaces, byte fallback."""
    tokenizer = with_fallback()
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    return tokenizer


def command_r() -> Tokenizer:
    """NFC, single digits, GPT-2's pattern."""
    tokenizer = trained(sequence(pre_tokenizers.Digits(individual_digits=True), PIECES["gpt2"]))
    tokenizer.normalizer = normalizers.NFC()
    return tokenizer


SHAPES = {
    "GPT-NeoX": gpt_neox,
    "StarCoder": lambda: trained(
        sequence(pre_tokenizers.Digits(individual_digits=True), PIECES["gpt2"])
    ),
    "punctuation": lambda: trained(
        sequence(pre_tokenizers.Punctuation("contiguous"), pre_tokenizers.ByteLevel(False))
    ),
    "Command-R": command_r,
    "GPT-OSS": lambda: trained(
        sequence(pre_tokenizers.Split(Regex(O200K), "isolated"), LEVEL), ignore_merges=True
    ),
    "Phi-3": phi_3,
    "Gemma": gemma,
}


PATTERNS = [
    r"[ab1 ]{0,4}",
    r"(the|The| the|'s|  | |\n){0,3}",
    r"[0-9]{1,4}",
    r"(\.\.|,| |a|1){0,3}",
    r"(é|日|😀|\n| ){0,3}",
]


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", SHAPES)
def test_masks_accept_exactly_the_encodings(name: str, pattern: str) -> None:
    tokenizer = SHAPES[name]()
    tokenizer.encode_special_tokens = True
    check_language(tokenizer, Vocabulary.from_tokenizer_json(tokenizer.to_str()), pattern)


def test_falcon_is_refused_because_it_splits_inside_characters() -> None:
    """Its digits are split after bytes have become characters, and some bytes become digits."""
    tokenizer = trained(
        sequence(
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(False),
            pre_tokenizers.Digits(),
            pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
        )
    )
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    with pytest.raises(VocabularyError, match="Digits after ByteLevel"):
        vocabulary.encoder()
