"""Tokenizers that normalize text: canonical tokens are those of the texts that they give back."""

from __future__ import annotations

import random
import unicodedata
from collections.abc import Sequence
from functools import cache

import pytest
from tokenizers import AddedToken, Tokenizer, normalizers

from formalm import Constraint, LanguageError, Regex, Vocabulary, VocabularyError, _core
from tests.canonical.small_tokenizers import PIECES, members, sequences, trained

FORMS = ("NFC", "NFD", "NFKC", "NFKD")

MARKS = [chr(c) for c in range(0x110000) if unicodedata.combining(chr(c))]
STARTERS = [
    *"aeouAESTyıéǖồḗ≠=<>ا وあかᄀ가각ক্",
    *"\u0b47\u0cc6\u1025ﬁ²Ωⅷ中Ω\u0958\u09c7\u1100\u11a8\u1161\u1175",
    *"\U00011131\U00011935\U000105d2",
]
SECONDS = [*"\u0327\u0301\u0308\u0323\u0338\u0344\u0345\u05b4\u093c\u09be\u0b57\u0cd5\u102e\u3099"]
SECONDS += [*"\u1161\u1175\u11a8\u11c2\U00011127\U00011930\u1df6\u0334\u0315"]


def mark_rich(rng: random.Random) -> str:
    """A short text of starters that compose, marks and Hangul."""
    scraps = rng.choices([STARTERS, SECONDS, MARKS], [4, 4, 1], k=rng.randrange(1, 8))
    return "".join(rng.choice(scrap) for scrap in scraps)


def with_normalizer(*kinds: str, added: Sequence[AddedToken] = ()) -> tuple[Tokenizer, Vocabulary]:
    tokenizer = trained(PIECES["cl100k isolated False"])
    steps = [getattr(normalizers, kind)() for kind in kinds]
    tokenizer.normalizer = steps[0] if len(steps) == 1 else normalizers.Sequence(steps)
    tokenizer.add_tokens(list(added))
    return tokenizer, Vocabulary.from_tokenizer_json(tokenizer.to_str())


@cache
def plain(*kinds: str) -> tuple[Tokenizer, Vocabulary]:
    return with_normalizer(*kinds)


def expected_sequences(tokenizer: Tokenizer, language: Regex) -> set[tuple[int, ...]]:
    """The definition: the encodings that decode to the member."""
    found = set()
    for member in members(language):
        ids = tokenizer.encode(member.decode(), add_special_tokens=False).ids
        if tokenizer.decode(ids, skip_special_tokens=False) == member.decode():
            found.add(tuple(ids))
    return found


LANGUAGES = [
    "(é|e\u0301|e|\u0327| ){0,3}",
    "(e|\u0301|\u0327|\u0323){0,4}",
    "[ce]\u0327?\u0301?",
    "(a|\u0315|\u0323|\u0300){0,4}",
    "(가|\u1100|\u1161|\u11a8|각|x){0,3}",
    "(ǖ|ü|u|\u0308|\u0304){0,3}",
    "(ﬁ|fi|²|2|Ω|Ω|x){0,3}",
    "(か|\u3099|が|\u309b){0,3}",
    "(\u0958|\u0915|\u093c){0,3}",
    "(\u09c7|\u09be|\u09cb){0,3}",
    "(<|\u0338|≮|=){0,3}",
    "[ab1 ]{0,4}",
    "(the| n)(é|e\u0301|e)?( [0-9])?",
    '"(e|é|\u0301|\\\\n){0,3}"',
    "(e\u0301|é)+x{0,3}",
    "(\u0301|\u0300){0,2}a?",
    "[\u00c0-\u00ff][\u0300-\u0304]?",
    "[\u0300-\u036f]{0,2}",
    "[ -~é\u0301]{0,2}",
    "(\u0344|\u0308\u0301|i){0,3}",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("pattern", LANGUAGES)
def test_masks_accept_the_encodings_of_the_texts_given_back(form: str, pattern: str) -> None:
    tokenizer, vocabulary = plain(form)
    language = Regex(pattern.replace("+", "{1,3}"))
    expected = expected_sequences(tokenizer, language)
    assert sequences(Constraint(language, vocabulary, tokenization="canonical")) == expected


@pytest.mark.parametrize("count", [20_000, pytest.param(500_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("form", FORMS)
def test_the_filter_is_that_of_the_library(form: str, count: int) -> None:
    tokenizer, vocabulary = plain(form)
    encoder, rng = vocabulary.encoder(), random.Random(form)
    normalize = tokenizer.normalizer.normalize_str
    texts = [mark_rich(rng) for _ in range(count)]
    texts += [starter + second for starter in STARTERS for second in (*SECONDS, *MARKS)]
    texts += ["a" + "\u0300" * 40, "a" + "\u0316\u0300" * 20, "é\u0327", "\u0344", "\u0958"]
    wrong = [
        text for text in texts if (encoder.first_change(text) is None) != (normalize(text) == text)
    ]
    assert not wrong, wrong[:5]


def test_pairs_and_marks_of_newer_versions_are_left_as_the_library_leaves_them() -> None:
    tokenizer, vocabulary = plain("NFC")
    encoder = vocabulary.encoder()
    normalize = tokenizer.normalizer.normalize_str
    for text in ("\u25a1\u0345\u1df6", "\U00011935\U00011930", "\U000105d2\u0307"):
        assert (encoder.first_change(text) is None) == (normalize(text) == text)


@pytest.mark.parametrize("form", FORMS)
def test_walks_end_in_texts_that_the_library_gives_back(form: str) -> None:
    tokenizer, vocabulary = plain(form)
    rng = random.Random(1)
    constraint = Constraint(
        Regex("(?s:[e\u00c0-\u00ff\u0300-\u0330\u0591-\u05a0가-각\u1100-\u1175 x]{0,12})"),
        vocabulary,
        tokenization="canonical",
    )
    for _ in range(300):
        matcher = constraint.matcher()
        while not matcher.is_finished:
            allowed = matcher.allowed_token_ids()
            assert len(allowed) or matcher.is_accepting
            if not len(allowed) or (matcher.is_accepting and rng.random() < 0.05):
                break
            matcher.advance(int(rng.choice(allowed)))
        text = matcher.text.decode()
        assert tokenizer.encode(text, add_special_tokens=False).ids == matcher.token_ids
        assert tokenizer.normalizer.normalize_str(text) == text


def test_a_language_without_a_text_given_back_is_refused_with_the_reason() -> None:
    _, vocabulary = plain("NFC")
    with pytest.raises(LanguageError, match="NFC") as error:
        Constraint(Regex("(e\u0301|o\u0308)x"), vocabulary, tokenization="canonical")
    assert "o\\u{308}" in str(error.value) or "e\\u{301}" in str(error.value)


def test_the_report_counts_the_members_that_are_left_out() -> None:
    tokenizer, vocabulary = plain("NFC")
    for pattern in ("n(e|é|e\u0301)e", "(e|\u0301|\u0327){0,4}", "[a-c]{0,3}"):
        language = Regex(pattern)
        constraint = Constraint(language, vocabulary, tokenization="canonical")
        texts = [member.decode() for member in members(language)]
        changed = [text for text in texts if tokenizer.normalizer.normalize_str(text) != text]
        found = constraint.report.excluded
        assert bool(found) == bool(changed)
        assert all(line.startswith(f"{len(changed)} of {len(texts)} ") for line in found)
    endless = Constraint(Regex("(?s:.*)"), vocabulary, tokenization="canonical")
    assert "NFC" in str(endless.report)
    assert Constraint(Regex("n(e|é|e\u0301)e"), vocabulary).report.excluded == ()


def test_texts_that_the_normalizer_changes_have_no_canonical_tokens() -> None:
    _, vocabulary = plain("NFC")
    by_byte = {vocabulary.token_bytes(i): i for i in range(len(vocabulary))}
    ids = [by_byte[bytes([byte])] for byte in "xe\u0301".encode()]
    error = vocabulary.canonical_error(ids)
    assert error is not None
    assert error.expected is None
    assert "NFC" in error.reason
    assert error.index == 2


def test_sections_between_added_tokens_are_normalized_apart() -> None:
    raw = AddedToken("|X|", normalized=False, special=False)
    tokenizer, vocabulary = with_normalizer("NFC", added=[raw])
    for pattern in ("(e|\u0301|\\|X\\||é|>){0,3}", "e\\|X\\|\u0301", "(\\|X\\||\u0338|<|\\|){0,4}"):
        language = Regex(pattern)
        expected = expected_sequences(tokenizer, language)
        assert sequences(Constraint(language, vocabulary, tokenization="canonical")) == expected


def test_added_tokens_in_normalized_text_are_a_part_of_it() -> None:
    inside = AddedToken("|X>", normalized=True, special=False)
    tokenizer, vocabulary = with_normalizer("NFC", added=[inside])
    for pattern in ("(e|\u0301|\\|X>|\u0338|>){0,3}", "(\\|X|\\|X>|\u0338|\\|){0,4}"):
        language = Regex(pattern)
        expected = expected_sequences(tokenizer, language)
        assert sequences(Constraint(language, vocabulary, tokenization="canonical")) == expected


def test_a_prompt_is_normalized_together_with_what_follows() -> None:
    tokenizer, vocabulary = plain("NFC")
    language = Regex("(\u0301|x)x")
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    prompt = tokenizer.encode("the", add_special_tokens=False).ids
    found = sequences(constraint, prompt)
    assert {vocabulary.decode(list(ids)) for ids in found} <= {b"xx"}
    alone = {vocabulary.decode(list(ids)) for ids in sequences(constraint)}
    assert alone == {b"xx", "\u0301x".encode()}


def test_saved_encoders_keep_the_filter() -> None:
    tokenizer, vocabulary = plain("NFKC")
    encoder = vocabulary.encoder()
    data = tokenizer.to_str().encode()
    saved = encoder.save(vocabulary.core, data)
    read = _core.Encoder.from_saved(saved, vocabulary.core, _core.checksum(data))
    assert read.normalizer_digest == encoder.normalizer_digest is not None
    assert read.first_change("aﬁ") == 1


@pytest.mark.parametrize(
    ("steps", "named"),
    [(["NFD", "NFC"], "NFC")],
)
def test_other_steps_are_refused_by_name(steps: list[str], named: str) -> None:
    _, vocabulary = with_normalizer(*steps)
    with pytest.raises(VocabularyError, match=named):
        Constraint(Regex("a"), vocabulary, tokenization="canonical")


CASED = [
    "(a|A|é|É|e|e\u0301|İ|i\u0307|ß|ς|Σ){0,2}",
    "[A-Za-z ]{0,2}",
    "(क|\u094d|x|\u0301|中|가){0,3}",
    "(\u20dd|a|\u0903){0,3}",
]


@pytest.mark.parametrize(
    "steps",
    [
        ["Lowercase"],
        ["StripAccents"],
        ["NFD", "StripAccents"],
        ["NFD", "StripAccents", "Lowercase"],
        ["NFKC", "Lowercase"],
        ["Lowercase", "NFC"],
    ],
    ids=str,
)
@pytest.mark.parametrize("pattern", CASED)
def test_lowercase_and_accents(steps: list[str], pattern: str) -> None:
    tokenizer, vocabulary = plain(*steps)
    language = Regex(pattern)
    expected = expected_sequences(tokenizer, language)
    assert sequences(Constraint(language, vocabulary, tokenization="canonical")) == expected
