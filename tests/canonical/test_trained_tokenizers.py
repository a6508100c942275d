"""Canonical tokens against the `tokenizers` library: what it encodes is the only oracle."""

from __future__ import annotations

import json
import random
from itertools import product
from typing import Any

import pytest
from tokenizers import Regex as Pattern
from tokenizers import Tokenizer, normalizers, pre_tokenizers

from formalm import Constraint, LanguageError, Regex, TokenError, Vocabulary, VocabularyError
from tests.canonical.small_tokenizers import (
    LANGUAGES,
    PIECES,
    check_language,
    encode_raw,
    trained,
    with_fallback,
)


@pytest.mark.parametrize("name", PIECES)
def test_text_is_cut_as_the_pre_tokenizer_cuts_it(name: str) -> None:
    tokenizer = trained(PIECES[name])
    encoder = Vocabulary.from_tokenizer_json(tokenizer.to_str()).encoder()
    texts = ["".join(text) for count in range(5) for text in product("ab 1\n'sA", repeat=count)]
    rng = random.Random(0)
    more = "aab  \n\r\t01239AZé中あ'sSlLſ.,!́😀\u00a0\u2028ǅʰ²"
    texts += ["".join(rng.choices(more, k=rng.randrange(5, 14))) for _ in range(3000)]
    for text in texts:
        pieces = tokenizer.pre_tokenizer.pre_tokenize_str(text)
        starts = [len(text[:start].encode()) for _, (start, _) in pieces]
        assert [start for start, _ in encoder.pieces(text)] == starts, text


@pytest.mark.parametrize("name", ["gpt2", "digits", "steps", "cl100k isolated False"])
@pytest.mark.parametrize("ignore_merges", [False, True])
@pytest.mark.parametrize("pattern", LANGUAGES)
def test_masks_accept_exactly_the_encodings(name: str, ignore_merges: bool, pattern: str) -> None:
    tokenizer = trained(PIECES[name], ignore_merges=ignore_merges)
    check_language(tokenizer, Vocabulary.from_tokenizer_json(tokenizer.to_str()), pattern)


def shuffled(seed: int) -> Tokenizer:
    """Merges in an order that no training gives, so that tokens become early or unreachable."""
    file = json.loads(trained(PIECES["cl100k isolated False"]).to_str())
    random.Random(seed).shuffle(file["model"]["merges"])
    file["model"]["ignore_merges"] = seed % 2 == 0
    return Tokenizer.from_str(json.dumps(file))


@pytest.mark.parametrize("seed", range(6))
def test_merges_in_a_strange_order(seed: int) -> None:
    tokenizer = shuffled(seed)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    assert vocabulary.encoder().early_count > 0
    for pattern in (r"(the| the|he|e|t){0,3}", r"( |s|a|t){0,4}", r"(and|an|d| in|i){0,3}"):
        check_language(tokenizer, vocabulary, pattern)


FALLBACKS = [
    pytest.param({}, id="normalizer"),
    pytest.param({"scheme": "first"}, id="first"),
    pytest.param({"scheme": "always", "split": True}, id="words"),
    pytest.param({"scheme": "never", "split": True}, id="never"),
]


@pytest.mark.parametrize("options", FALLBACKS)
@pytest.mark.parametrize(
    "pattern",
    [
        r"( |a|b|t|the){0,4}",
        r"(é|e|日|中|\n| ){0,3}",
        r"[a-d]{0,5}",
        r" {0,20}x?",
        r"(ñ|\xe9|a){3}",
    ],
)
def test_marks_of_spaces_and_characters_in_bytes(options: dict[str, Any], pattern: str) -> None:
    tokenizer = with_fallback(**options)
    check_language(tokenizer, Vocabulary.from_tokenizer_json(tokenizer.to_str()), pattern)


def test_added_tokens_that_are_text_are_cut_out() -> None:
    tokenizer = trained(PIECES["gpt2"])
    tokenizer.add_tokens(["<|user|>", "<|us", "the end"])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for pattern in (r"(<|\||user|us|>|<\|user\|>| |a){0,4}", r"(the|the end| end| |e){0,4}"):
        check_language(tokenizer, vocabulary, pattern)


def refusals() -> dict[str, tuple[Tokenizer, str]]:
    gpt2 = PIECES["gpt2"]
    normal = trained(gpt2)
    normal.normalizer = normalizers.Replace(Pattern("a+"), "a")
    words = trained(gpt2)
    words.add_tokens(["stop"])
    file = json.loads(words.to_str())
    file["added_tokens"][-1]["single_word"] = True
    level = pre_tokenizers.ByteLevel(False, use_regex=False)

    def split(pattern: str, behavior: str = "isolated") -> Tokenizer:
        step = pre_tokenizers.Split(Pattern(pattern), behavior)
        return trained(pre_tokenizers.Sequence([step, level]))

    return {
        "pattern": (normal, "Replace"),
        "single word": (Tokenizer.from_str(json.dumps(file)), "depends on the surrounding text"),
        "prefix": (trained(pre_tokenizers.ByteLevel(True)), "inserts a space"),
        "far": (split(r"a(?=bc)"), "ahead more than one character"),
        "empty": (split(r"a*"), "empty string"),
        "anchor": (split(r"^a"), "is not supported in pre-tokenizer"),
        "possessive": (split(r"(?>ab|a)c"), "possessive"),
        "delimiter": (
            trained(pre_tokenizers.Sequence([pre_tokenizers.CharDelimiterSplit("a"), level])),
            "CharDelimiterSplit",
        ),
    }


@pytest.mark.parametrize("name", refusals())
def test_unsupported_tokenizer_steps_are_refused_by_name(name: str) -> None:
    tokenizer, message = refusals()[name]
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    with pytest.raises(VocabularyError, match=message):
        vocabulary.encoder()


def test_other_vocabularies_have_no_canonical_tokens() -> None:
    vocabulary = Vocabulary.from_tokens([b"a"], encode=lambda text: [0] * len(text))
    with pytest.raises(VocabularyError, match="own file"):
        Constraint(Regex("a"), vocabulary, tokenization="canonical")
    tokenizer = trained(PIECES["gpt2"])
    ends = Vocabulary.from_tokenizer_json(tokenizer.to_str(), end_token_ids=["a"])
    with pytest.raises(VocabularyError, match="has bytes in the tokenizer"):
        ends.encoder()


def test_a_file_that_lies_is_refused() -> None:
    honest = Vocabulary.from_tokenizer_json(trained(PIECES["gpt2"]).to_str())
    from formalm.vocabulary.canonical_tokens import load_encoder
    from formalm.vocabulary.tokenizer_libraries import JsonTokenizer

    # A file of its own: what a file was found to do is remembered by its content.
    liar = JsonTokenizer(trained(PIECES["digits"]).to_str().encode() + b"\n")
    liar.encode = honest.encode  # type: ignore[method-assign]
    with pytest.raises(VocabularyError, match="does not do what we read"):
        load_encoder(liar, honest.core)


def test_errors_say_where_and_why() -> None:
    tokenizer = trained(PIECES["gpt2"])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    ids = [vocabulary.encode(letter)[0] for letter in "the"]
    error = vocabulary.canonical_error(ids)
    assert error is not None
    assert error.index == 0
    assert error.expected == tuple(vocabulary.encode("the"))
    assert "merging joins" in error.reason
    assert vocabulary.is_canonical(vocabulary.encode("the cat, and the end"))
    assert not vocabulary.is_canonical([*vocabulary.encode("é")[:1]])
    matcher = Constraint(Regex("the"), vocabulary, tokenization="canonical").matcher()
    with pytest.raises(TokenError, match="not canonical"):
        matcher.advance(ids[0])
    with pytest.raises(TokenError, match="has no tokens"):
        matcher.advance_bytes(b"t")
    assert "with other tokens" in matcher.explain(ids[0]).text
    assert matcher.forced_token_ids() == encode_raw(tokenizer, vocabulary, "the")
    assert matcher.forced_bytes() == b"the"


def test_languages_without_canonical_members_are_refused() -> None:
    from formalm import StringLiteral

    tokenizer = trained(PIECES["gpt2"])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    with pytest.raises(LanguageError, match="canonical"):
        Constraint(StringLiteral(b"\xff"), vocabulary, tokenization="canonical")
