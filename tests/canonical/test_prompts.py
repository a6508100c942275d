"""Canonical continuations of a prompt: the tokenizer's encoding of both together."""

from __future__ import annotations

import random
from functools import cache

import pytest
from tokenizers import pre_tokenizers

from formalm import Constraint, Regex, StringLiteral, TokenError, Vocabulary
from formalm.continuations import continuation
from formalm.errors import ArgumentError
from tests.canonical.small_tokenizers import TEXT, members, sequences, trained
from tests.canonical.test_trained_tokenizers import PIECES

PROMPTS = [
    "",
    "the",
    "In the ",
    "line\n   ",
    "It's",
    "The quick bro",
    " 20",
    "日",
    "é\u0301x",
    "[\n",
]
LANGUAGES = [
    "[ab]{0,3}",
    "( |\\n|a){1,3}",
    "(the|The| the|'s|'S|s| |'){1,2}",
    "[0-3]{1,3}",
    r"    1,\n    2\n\]",
    r"(é|e\u0301|日|😀|\n){0,2}",
    "(there|these| in| the|re|l){0,2}",
    "(?:the|th)en?| ?own( fox)?",
]
KINDS = ["gpt2", "cl100k isolated False", "whole pieces"]
IDS = tuple[int, ...]


@cache
def vocabulary_of(kind: str) -> Vocabulary:
    cuts = PIECES.get(kind, pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer = trained(cuts, ignore_merges=kind == "whole pieces")
    tokenizer.add_special_tokens(["<|im|>"])
    return Vocabulary.from_tokenizer_json(tokenizer.to_str())


@cache
def strings(pattern: str) -> list[str]:
    return [text.decode() for text in members(Regex(pattern))]


def expected(vocabulary: Vocabulary, prompt: IDS, texts: list[str]) -> set[IDS]:
    """What follows the prompt's tokens in the tokens of prompt and text, where those begin so."""
    before = vocabulary.decode(prompt).decode(errors="surrogateescape")
    found = set()
    for text in texts:
        try:
            whole = (before + text).encode(errors="surrogateescape").decode()
        except UnicodeDecodeError:
            continue
        ids = tuple(vocabulary.encode(whole))
        if ids[: len(prompt)] == prompt:
            found.add(ids[len(prompt) :])
    return found


def prompts(vocabulary: Vocabulary) -> list[IDS]:
    """Prompts as they are encoded, with tokens cut off, and with one put in at random."""
    rng = random.Random(1)
    found = [tuple(vocabulary.encode(prompt)) for prompt in PROMPTS]
    for _ in range(12):
        start = rng.randrange(len(TEXT))
        found.append(tuple(vocabulary.encode(TEXT[start : start + rng.randrange(1, 9)])))
    found += [ids[:-1] for ids in found if len(ids) > 1]
    return [*found, *((*ids, rng.randrange(400)) for ids in found)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_continuation_of_a_prompt_is_canonical(kind: str) -> None:
    vocabulary = vocabulary_of(kind)
    special = vocabulary.encode("x")[0], len(vocabulary) - 1
    followed = 0
    for pattern in LANGUAGES:
        constraint = Constraint(Regex(pattern), vocabulary, tokenization="canonical")
        for prompt in prompts(vocabulary):
            wanted = expected(vocabulary, prompt, strings(pattern))
            followed += bool(wanted)
            for before in ((), special):
                if wanted:
                    assert sequences(constraint, (*before, *prompt)) == wanted, (pattern, prompt)
                    continue
                with pytest.raises(TokenError):
                    constraint.matcher(after=(*before, *prompt))
    assert followed > 100


@pytest.mark.parametrize("kind", KINDS)
def test_healing_gives_back_the_fewest_tokens(kind: str) -> None:
    vocabulary = vocabulary_of(kind)
    healed = 0
    for pattern in LANGUAGES:
        constraint = Constraint(Regex(pattern), vocabulary, tokenization="canonical")
        for prompt in prompts(vocabulary):
            for least in (0, 1, 2):
                counts = range(min(least, len(prompt)), len(prompt) + 1)
                ways = [_after(vocabulary, prompt, count, strings(pattern)) for count in counts]
                count = next((n for n, way in zip(counts, ways, strict=True) if way), None)
                heal = least if least else True
                if count is None:
                    with pytest.raises(TokenError, match="however many of its tokens"):
                        continuation(constraint, prompt, heal=heal)
                    continue
                found = continuation(constraint, prompt, heal=heal)
                kept = prompt[: len(prompt) - count]
                assert found.token_ids == kept
                assert found.regenerated == vocabulary.decode(prompt[len(kept) :])
                assert sequences(found.constraint, kept) == ways[count - counts.start]
                healed += count > least
    assert healed > 10


def _after(vocabulary: Vocabulary, prompt: IDS, count: int, texts: list[str]) -> set[IDS]:
    """What may follow once the prompt's last tokens were given back."""
    kept, back = prompt[: len(prompt) - count], prompt[len(prompt) - count :]
    text = vocabulary.decode(back).decode(errors="surrogateescape")
    return expected(vocabulary, kept, [text + member for member in texts])


def test_impossible_continuations_are_refused() -> None:
    vocabulary = vocabulary_of("gpt2")
    constraint = Constraint(StringLiteral("re"), vocabulary, tokenization="canonical")
    with pytest.raises(TokenError, match="end in b'In the'"):
        constraint.matcher(after=vocabulary.encode("In the"))
    letters = [vocabulary.encode(letter)[0] for letter in "the"]
    with pytest.raises(TokenError, match=r"does not write token 1 of the 3 there, b'h'"):
        constraint.matcher(after=letters)
    with pytest.raises(ArgumentError, match="below the size of the vocabulary"):
        constraint.matcher(after=[999])
    for heal in (-1, "yes", 1.5, None):
        with pytest.raises(ArgumentError, match="heal"):
            continuation(constraint, [], heal=heal)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="must be a Constraint, got StringLiteral"):
        continuation(StringLiteral("re"), [])  # type: ignore[arg-type]
    loose = Constraint(StringLiteral("re"), vocabulary)
    with pytest.raises(ArgumentError, match="does not apply"):
        continuation(loose, [0], heal=True)
    assert continuation(loose, letters).token_ids == tuple(letters)
    # Bytes that no text has, in a language that has others too.
    stray = Constraint(
        StringLiteral(b"\xff") | StringLiteral("x"), vocabulary, tokenization="canonical"
    )
    cut = [len(vocabulary) - 1, *vocabulary.encode("日")[:1]]
    with pytest.raises(TokenError, match="however many of its tokens are given back"):
        continuation(stray, cut, heal=True)


def test_a_prompt_of_any_length_is_read_once() -> None:
    vocabulary = vocabulary_of("gpt2")
    constraint = Constraint(Regex("( the| then)+"), vocabulary, tokenization="canonical")
    prompt = vocabulary.encode("The quick brown fox" * 20_000)
    matcher = constraint.matcher(after=prompt)
    matcher.advance(vocabulary.encode(" the")[0])
    assert matcher.text == b" the"
    matcher.rollback()
    fork = matcher.fork()
    matcher.reset()
    assert matcher.state_key == fork.state_key
    assert matcher.mask().tolist() == fork.mask().tolist()
