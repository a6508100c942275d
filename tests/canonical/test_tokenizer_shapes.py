"""Tokenizers composed as those of well-known models are, trained on a few lines."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

from formalm import Constraint, LimitError, TokenError, Vocabulary, VocabularyError
from formalm import Regex as Pattern
from formalm.generation.finish_steering import FinishSteering
from tests.canonical.given_back import spelled
from tests.canonical.small_tokenizers import (
    PIECES,
    check_language,
    members,
    sequences,
    trained,
    with_fallback,
)

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


FALCON = [
    pre_tokenizers.Punctuation("contiguous"),
    pre_tokenizers.ByteLevel(False),
    pre_tokenizers.Digits(),
    pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
]

SHAPES = {
    "Falcon": lambda: trained(sequence(*FALCON)),
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


PROMPTS = ["the", "a b", "x1", "1", "é", "a  ", "it'", "日"]
CONTINUED = [r"[ab1 ]{1,3}", r"(the| the|'s|  |\n|e){1,2}", r"(²|ò|1|\.|,| ){1,2}"]


@pytest.mark.parametrize("name", SHAPES)
def test_masks_after_prompts_and_within_budgets(name: str) -> None:
    """Of prompt and member together, the prompt's own tokens come first."""
    tokenizer = SHAPES[name]()
    tokenizer.encode_special_tokens = True
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    checked = 0
    for pattern in CONTINUED:
        constraint = Constraint(Pattern(pattern), vocabulary, tokenization="canonical")
        steering = FinishSteering(constraint)
        for prompt in PROMPTS:
            expected = continued(tokenizer, vocabulary, prompt, pattern)
            before = tokenizer.encode(prompt, add_special_tokens=False).ids
            if not expected:
                with pytest.raises(TokenError, match="no member continues"):
                    constraint.matcher(after=before)
                continue
            assert sequences(constraint, before) == expected
            fewest = min(map(len, expected))
            steering.check(constraint.matcher(after=before), fewest)
            with pytest.raises(LimitError):
                steering.check(constraint.matcher(after=before), fewest - 1)
            checked += 1
    assert checked > 12


def continued(
    tokenizer: Tokenizer, vocabulary: Vocabulary, prompt: str, pattern: str
) -> set[tuple[int, ...]]:
    before = tokenizer.encode(prompt, add_special_tokens=False).ids
    found = set()
    for member in members(Pattern(pattern)):
        ids = tokenizer.encode(prompt + member.decode(), add_special_tokens=False).ids
        if ids[: len(before)] == before and spelled(vocabulary, ids[len(before) :]) == member:
            found.add(tuple(ids[len(before) :]))
    return found


AFTER_BYTES = {
    "single digits": [pre_tokenizers.ByteLevel(False), pre_tokenizers.Digits(True)],
    "digits": [LEVEL, pre_tokenizers.Digits()],
    "punctuation": [LEVEL, pre_tokenizers.Punctuation("contiguous")],
    "single punctuation": [LEVEL, pre_tokenizers.Punctuation("isolated")],
    "a class": [LEVEL, pre_tokenizers.Split(Regex("[²³]+"), "isolated")],
    "words": [LEVEL, pre_tokenizers.Split(Regex("Ġ?[a-z]+"), "merged_with_next")],
    "Falcon": FALCON,
}
BYTES = [
    r"(ò|²|1|23|a){0,3}",
    r"(é|日|😀|½|³|1){0,3}",
    r"(\.\.|,| |a|1|»|¿){0,3}",
    r"(½|¼|ò|9|§|¶){0,3}",
    r"(the| the|'s|  |ú|\n|7){0,3}",
]


@pytest.mark.parametrize("name", AFTER_BYTES)
def test_steps_after_bytes_became_characters(name: str) -> None:
    """Some bytes become digits or punctuation, so characters are split inside."""
    tokenizer = trained(sequence(*AFTER_BYTES[name]))
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    encoder = vocabulary.encoder()
    rng = random.Random(name)
    characters = "ab1 23.²³¹½¼¾òóùúéÃÂ日本😀ʰ«»¿¡§¶·\n'sЖ×÷\u0672\u07b2\u0732𐌲𝟲"
    for _ in range(2000):
        text = "".join(rng.choices(characters, k=rng.randrange(1, 12)))
        starts = [0]
        for piece, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text):
            starts.append(starts[-1] + len(piece))
        assert [start for start, _ in encoder.pieces(text)] == starts[:-1], text
    for pattern in BYTES:
        check_language(tokenizer, vocabulary, pattern)


def test_splits_inside_characters_survive_saving_and_added_tokens(tmp_path: Path) -> None:
    tokenizer = trained(sequence(*FALCON))
    tokenizer.add_tokens(["日1", "²日"])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    vocabulary.encoder()
    vocabulary.save(tmp_path / "saved", canonical=True)
    for each in (vocabulary, Vocabulary.load(tmp_path / "saved")):
        check_language(tokenizer, each, r"(ò|²|1|日|a){0,4}")


@pytest.mark.parametrize(
    ("step", "named"),
    [
        (pre_tokenizers.Split(Regex("[²³][a-z]"), "isolated"), "Split after ByteLevel"),
        (pre_tokenizers.Split(Regex("[Ãa]+"), "isolated"), "Split after ByteLevel"),
        (pre_tokenizers.Punctuation("merged_with_next"), "Punctuation after ByteLevel"),
        (pre_tokenizers.ByteLevel(False), "ByteLevel after ByteLevel"),
        (pre_tokenizers.Whitespace(), "Whitespace after ByteLevel"),
    ],
)
def test_other_steps_after_bytes_are_refused_by_name(step: object, named: str) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(trained(sequence(LEVEL, step)).to_str())
    with pytest.raises(VocabularyError, match=named):
        vocabulary.encoder()
