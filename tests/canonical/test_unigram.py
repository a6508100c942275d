"""Canonical tokens of Unigram models against `tokenizers` and `sentencepiece`, the only oracles."""

from __future__ import annotations

import io
import random
from collections import Counter
from functools import cache

import pytest
import sentencepiece
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from formalm import Constraint, Regex, Vocabulary
from tests.canonical.given_back import check_given_back, library, spelled
from tests.canonical.unigram_models import check_random, tokenizer_of

SLOW = [pytest.mark.slow, pytest.mark.timeout(3600)]
ANYTHING = Regex(r"(?s:.*)")


@pytest.mark.parametrize("count", [150, pytest.param(10_000, marks=SLOW)])
def test_random_models_allow_exactly_the_encodings(count: int) -> None:
    found = Counter(check_random(seed) for seed in range(count))
    assert found["equal"] > 0.8 * count


@cache
def lines() -> tuple[str, ...]:
    """Lines of prose and code in the repository."""
    from pathlib import Path

    root = Path(__file__).parents[2]
    files = [
        *sorted(root.glob("docs/guides/*.md")),
        *sorted(root.glob("python/formalm/models/*.py")),
    ]
    return tuple(line for path in files for line in path.read_text().splitlines() if line.strip())


@cache
def trained(size: int, split: bool = False) -> Tokenizer:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=split)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first", split=split)
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    splitting = pre_tokenizers.Metaspace(prepend_scheme="first", split=True)
    tokenizer.pre_tokenizer, own = splitting, tokenizer.pre_tokenizer
    tokenizer.train_from_iterator(lines(), trainer)
    tokenizer.pre_tokenizer = own
    tokenizer = Tokenizer.from_str(tokenizer.to_str())
    tokenizer.encode_special_tokens = True
    return tokenizer


@cache
def sentence_model(size: int, *, byte_fallback: bool = True) -> bytes:
    """A SentencePiece model that does not normalize text."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines()),
        model_writer=model,
        vocab_size=size,
        model_type="unigram",
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        byte_fallback=byte_fallback,
        hard_vocab_limit=False,
        user_defined_symbols=["<tool>", "::"],
        minloglevel=2,
        num_threads=2,
    )
    return model.getvalue()


def check_lines(vocabulary: Vocabulary, count: int) -> int:
    """Encodings that spell their text are never masked, and changed ones are."""
    constraint = Constraint(ANYTHING, vocabulary, tokenization="canonical")
    matcher, rng, read = constraint.matcher(), random.Random(1), 0
    for line in rng.sample(lines(), count):
        text = "a" + line
        ids = vocabulary.encode(text)
        if spelled(vocabulary, ids) != b" " + text.encode():
            continue
        assert vocabulary.is_canonical(ids), text
        matcher.reset()
        assert matcher.advance_many(ids) == len(ids), text
        assert matcher.is_accepting
        read += 1
        # Another segmentation of a part of the line.
        at = rng.randrange(len(ids))
        token = vocabulary.core.token_bytes(ids[at]) or b""
        single = [vocabulary.core.token_bytes(i) for i in ids]
        for split in range(1, len(token)):
            left, right = token[:split], token[split:]
            pair = [tokens_of(vocabulary).get(part) for part in (left, right)]
            if None not in pair:
                other = [*ids[:at], *pair, *ids[at + 1 :]]
                matcher.reset()
                assert matcher.advance_many(other) < len(other), (text, single)  # type: ignore[arg-type]
                break
    return read


@cache
def tokens_of(vocabulary: Vocabulary) -> dict[bytes, int]:
    return {token: at for at, token in enumerate(vocabulary.tokens()) if token}


def check_walks(vocabulary: Vocabulary, constraint: Constraint, count: int) -> None:
    """Whatever the masks allow is what the library encodes."""
    rng = random.Random(2)
    for _ in range(count):
        matcher = constraint.matcher()
        for _ in range(rng.randrange(1, 30)):
            allowed = matcher.allowed_token_ids()
            if not len(allowed):
                assert matcher.is_accepting
                break
            matcher.advance(int(rng.choice(allowed.tolist())))
            if matcher.is_accepting:
                text = (spelled(vocabulary, matcher.token_ids) or b"").decode()
                if text.startswith(" ") and not text.startswith("  "):
                    assert vocabulary.encode(text[1:]) == list(matcher.token_ids), text


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    "size", [1_000, pytest.param(8_000, marks=SLOW), pytest.param(32_000, marks=SLOW)]
)
def test_trained_tokenizers(size: int, split: bool) -> None:
    tokenizer = trained(size, split)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    assert check_lines(vocabulary, 300) > 250
    words = Constraint(Regex(r"( [a-z]+[,.]?){1,12}"), vocabulary, tokenization="canonical")
    check_walks(vocabulary, words, 30)
    check_walks(
        vocabulary, Constraint(Regex(r"(?s: \S.*)"), vocabulary, tokenization="canonical"), 30
    )


@pytest.mark.parametrize(
    "size", [1_000, pytest.param(8_000, marks=SLOW), pytest.param(32_000, marks=SLOW)]
)
@pytest.mark.parametrize("byte_fallback", [True, False])
def test_trained_sentencepiece_models(size: int, byte_fallback: bool) -> None:
    model = sentence_model(size, byte_fallback=byte_fallback)
    vocabulary = Vocabulary.from_sentencepiece(model)
    assert check_lines(vocabulary, 300) > 150
    words = Constraint(
        Regex(r"( [a-z]+(::|<tool>|[,.])?){1,12}"), vocabulary, tokenization="canonical"
    )
    check_walks(vocabulary, words, 30)


def check_masks(vocabulary: Vocabulary, states: int, tokens: int) -> tuple[int, int]:
    """Masks of all texts allow a token iff the library writes it after the same tokens. Returns the
    number of allowed and of forbidden tokens that were compared.
    """
    constraint = Constraint(ANYTHING, vocabulary, tokenization="canonical")
    rng, matcher, compared = random.Random(3), constraint.matcher(), Counter[bool]()
    every = [(at, token) for at, token in enumerate(vocabulary.tokens()) if token]
    while states:
        line = "a" + rng.choice(lines())[:60]
        ids = list(vocabulary.encode(line))
        ids = ids[: rng.randrange(1, len(ids) + 1)]
        text = spelled(vocabulary, ids)
        if text is None or not text.startswith(b" a"):
            continue
        states -= 1
        matcher.reset()
        assert matcher.advance_many(ids) == len(ids)
        allowed = set(matcher.allowed_token_ids().tolist())
        # Tokens that continue the text as pieces do are the ones that open pieces forbid.
        near = [one for one in every if line.encode()[len(text) - 1 :].startswith(one[1][:2])]
        for token_id, token in rng.sample(every, tokens) + near[:tokens]:
            try:
                whole = (text + token).decode()[1:]
            except UnicodeDecodeError:
                continue
            if len(token) == 1 and token >= b"\x80":
                continue
            is_written = vocabulary.encode(whole) == [*ids, token_id]
            assert is_written == (token_id in allowed), (text, token)
            compared[is_written] += 1
    return compared[True], compared[False]


@pytest.mark.parametrize(
    ("size", "states", "tokens"),
    [(1_000, 20, 100), pytest.param(32_000, 150, 1_000, marks=SLOW)],
)
@pytest.mark.parametrize("kind", ["tokenizer.json", "tokenizer.json, split", "sentencepiece"])
def test_masks_allow_what_the_library_writes(
    kind: str, size: int, states: int, tokens: int
) -> None:
    if kind == "sentencepiece":
        vocabulary = Vocabulary.from_sentencepiece(sentence_model(size))
    else:
        tokenizer = trained(size, split="split" in kind)
        vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    written, forbidden = check_masks(vocabulary, states, tokens)
    assert min(written, forbidden) > states


WALKED = {
    "tokenizer.json": lambda: Vocabulary.from_tokenizer_json(trained(8_000).to_str()),
    "tokenizer.json, split": lambda: Vocabulary.from_tokenizer_json(trained(8_000, True).to_str()),
    "sentencepiece": lambda: Vocabulary.from_sentencepiece(sentence_model(8_000)),
    "sentencepiece, no bytes": lambda: Vocabulary.from_sentencepiece(
        sentence_model(8_000, byte_fallback=False)
    ),
}


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", WALKED)
def test_many_walks(name: str) -> None:
    vocabulary = WALKED[name]()
    for pattern in (r"( [a-z]+(::|<tool>|[,.])?){1,12}", r"(?s: \S.*)", r" [0-9, ]{1,20}x?"):
        constraint = Constraint(Regex(pattern), vocabulary, tokenization="canonical")
        check_walks(vocabulary, constraint, 2_500)


@pytest.mark.parametrize("sentences", [0, 1, 7, 60])
@pytest.mark.parametrize("run", ["#", "*", "ab", "."])
def test_ties_that_single_precision_decides(run: str, sentences: int) -> None:
    """Equal sums are rounded differently after different texts."""
    vocabulary = Vocabulary.from_sentencepiece(sentence_model(1_000))
    constraint = Constraint(ANYTHING, vocabulary, tokenization="canonical")
    text = "The quick brown fox jumps. " * sentences
    for count in range(1, 24):
        ids = vocabulary.encode(text + run * count)
        matcher = constraint.matcher()
        assert matcher.advance_many(ids) == len(ids), (run, sentences, count)
        assert vocabulary.is_canonical(ids)


@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize(
    "pattern", [r"(the|he|t|h| ){0,4}", r"(é|日|a|\n){0,3}", r"(zz|a|z){0,4}", r"[a-e]{3}"]
)
def test_unknown_characters(pattern: str, split: bool, byte_fallback: bool) -> None:
    """Spelled in bytes, or without canonical tokens unless a longer piece covers them."""
    vocab = [("▁", -2.0), ("t", -3.0), ("h", -3.5), ("e", -2.5), ("the", -4.0), ("▁the", -5.0)]
    vocab += [("a", -3.0), ("za", -6.0), ("é", -5.0), ("aé", -7.5), ("th", -5.5), ("he", -6.0)]
    tokenizer = tokenizer_of(vocab, byte_fallback=byte_fallback, split=split)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    if byte_fallback or "é" not in pattern:
        check_given_back(library(tokenizer), vocabulary, pattern)


def test_names_of_special_tokens_in_text_have_no_canonical_tokens() -> None:
    """The library takes them for the special tokens, which decode to nothing."""
    vocab = [("▁", -2.0), *((letter, -3.0) for letter in "a<>unk")]
    tokenizer = tokenizer_of(vocab)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    check_given_back(library(tokenizer), vocabulary, r"(<unk>|a|<unk|>){0,3}")


def test_reasons_name_the_first_token_that_differs() -> None:
    vocab = [("▁", -2.0), ("a", -1.0), ("b", -1.0), ("ab", -1.5)]
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer_of(vocab).to_str())
    ids = [vocabulary.encode(letter)[0] for letter in "ab"]
    error = vocabulary.canonical_error(ids)
    assert error is not None
    assert error.index == 0
    assert error.expected == tuple(vocabulary.encode("ab"))
    assert "segments b'ab' into other tokens" in error.reason
