"""Compiled maps of characters in `tokenizer.json`, by grapheme clusters: T5, XLM-R, mT5, ALBERT."""

from __future__ import annotations

import random
from functools import cache
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, normalizers, pre_tokenizers

from formalm import Constraint, Vocabulary, VocabularyError
from formalm import Regex as Pattern
from formalm.continuations import continuation
from tests.canonical.given_back import check_given_back, library, spelled
from tests.canonical.sentencepiece_models import charsmap
from tests.canonical.small_tokenizers import PIECES, members, sequences, trained
from tests.canonical.unigram_models import tokenizer_of

SLOW = [pytest.mark.slow, pytest.mark.timeout(3600)]
RULES = ["nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf"]
SPACES = normalizers.Replace(Regex(" {2,}"), " ")
METASPACE = pre_tokenizers.Metaspace(prepend_scheme="always")
WORDS = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), METASPACE])


def steps(shape: str, rule: str) -> list[Any]:
    own = normalizers.Precompiled(charsmap(rule))
    trimmed = [normalizers.Strip(left=False, right=True), normalizers.Replace(Regex(" {2,}"), "▁")]
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    plain = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    shapes = {
        "alone": [own],
        "T5": [own, SPACES],
        "mT5": [own, *trimmed],
        "DeBERTa": [normalizers.Strip(), own, SPACES],
        "ALBERT": [*quotes, *plain, own, SPACES],
        "lowercase": [own, normalizers.Lowercase()],
        "NFKD": [normalizers.NFKD(), own],
        "NFD": [own, normalizers.NFD()],
        "NFC": [normalizers.NFC(), own],
        "twice": [own, own],
        "marked": [normalizers.Replace(" ", "▁"), own],
    }
    return shapes[shape]


@cache
def made(shape: str, rule: str, words: bool = False) -> tuple[Tokenizer, Vocabulary]:
    letters = dict.fromkeys("▁aefix2<>éçéかが가각Ω")
    pieces = [(letter, -2.0 - at / 8) for at, letter in enumerate(letters)]
    pieces += [("▁a", -3.0), ("<x", -4.5), ("ae", -4.0), ("é▁", -4.0)]
    tokenizer = tokenizer_of(pieces, byte_fallback=True, scheme="always", split=True)
    tokenizer.normalizer = normalizers.Sequence(steps(shape, rule))
    tokenizer.pre_tokenizer = WORDS if words else METASPACE
    return tokenizer, Vocabulary.from_tokenizer_json(tokenizer.to_str())


PATTERNS = [
    "( |a|  |x){0,4}",
    "(é|e\u0301|e|\u0327|a){0,3}",
    "(e|\u0301){0,5}",
    "(\u0301|\u0600|e|\u200d){0,4}",
    "(ﬁ|f|i|²|2|\u3000|\t| ){0,3}",
    "(か|\u3099|が|가|\u1100|\u1161|각|\u11a8){0,3}",
    "(<|>|\u0338|≯|e|\u0301){0,3}",
    "☺?\u200d?↔(\u0338|\u0301|\u093e){0,3}",
    "[\u00c0-\u00ff][\u0300-\u0304]?",
    "(\u200b|\x07|a|\ufeff|A|Ａ){0,3}",
]


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize(
    ("shape", "rule"),
    [
        *(("alone", rule) for rule in RULES),
        *((shape, "nmt_nfkc") for shape in ("T5", "mT5", "DeBERTa", "ALBERT", "lowercase")),
        ("mT5", "nfkc"),
    ],
)
def test_masks_accept_the_encodings_of_the_texts_given_back(
    shape: str, rule: str, words: bool
) -> None:
    tokenizer, vocabulary = made(shape, rule, words)
    found = [check_given_back(library(tokenizer), vocabulary, one, "中") for one in PATTERNS]
    assert found.count("equal") >= 6


CHARACTERS = (
    "aeoAn ↔=<∈\u0301\u0300\u0302\u0327\u0338\u0338\u0301\u0323\u0361\u200d\u0308\u0600\u06dd☺😀"
    "\U0001f1e6\U0001f3fb\u093e\u0915\u094dиαעꭰᎠИé゙がか\u1100\u1161\u11a8가\r\n\x07İʼß\u0653ا\u0e33ﬁ"
    "½~–\u05b0\u20d0\ufe0f\U000e0020\u034f\u0d4eⅷ"
)


@pytest.mark.parametrize("count", [5_000, pytest.param(500_000, marks=SLOW)])
@pytest.mark.parametrize("shape", ["alone", "T5", "mT5", "ALBERT", "lowercase"])
@pytest.mark.parametrize("rule", RULES)
def test_the_texts_left_unchanged_are_those_of_the_library(
    rule: str, shape: str, count: int
) -> None:
    tokenizer, vocabulary = made(shape, rule)
    if rule.endswith("cf") and shape in ("ALBERT", "lowercase"):
        with pytest.raises(VocabularyError, match="together with Precompiled"):
            vocabulary.encoder()
        return
    encoder = vocabulary.encoder()
    rng = random.Random(f"{rule} {shape}")
    for _ in range(count):
        text = "".join(rng.choices(CHARACTERS, k=rng.randrange(1, 9)))
        is_kept = tokenizer.normalizer.normalize_str(text) == text
        assert (encoder.first_change(text) is None) == is_kept, ascii(text)


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("shape", ["T5", "mT5", "DeBERTa", "ALBERT"])
def test_a_text_begins_as_the_tokenizer_begins_it(shape: str, words: bool) -> None:
    tokenizer, vocabulary = made(shape, "nmt_nfkc", words)
    for pattern in ("( |a|\t|x){0,4}", "(e|é|\u0301| ){0,3}", "(\u3000|a| |中){0,3}"):
        language = Pattern(pattern)
        constraint = Constraint(language, vocabulary, tokenization="canonical")
        found = continuation(constraint, [])
        expected = set()
        for member in filter(None, members(language)):
            ids = tokenizer.encode(member.decode(), add_special_tokens=False).ids
            if spelled(vocabulary, ids) == b" " + member:
                expected.add(tuple(ids))
        # The empty text has no tokens, or its inserted space alone.
        empty = {(), (tokenizer.token_to_id("▁"),)}
        assert sequences(found.constraint, found.token_ids) - empty == expected - empty


def test_every_pair_in_a_short_cluster_is_changed_as_the_library_changes_it() -> None:
    tokenizer, vocabulary = made("alone", "nmt_nfkc")
    encoder = vocabulary.encoder()
    firsts = [chr(code) for code in (*range(0x20, 0x600), *range(0x1E00, 0x2300))]
    for second in "\u0300\u0301\u0302\u0308\u030c\u0327\u0328\u0338\u0342\u0345\u0653\u05b8\u3099":
        for first in firsts:
            for text in (first + second, first + second * 2, first + second * 3):
                is_kept = tokenizer.normalizer.normalize_str(text) == text
                assert (encoder.first_change(text) is None) == is_kept, ascii(text)


@pytest.mark.parametrize(
    ("shape", "named"),
    [
        ("NFKD", "NFKD together with Precompiled"),
        ("NFD", "NFD together with Precompiled"),
        ("NFC", "NFC together with Precompiled"),
        ("twice", "Precompiled twice"),
        ("marked", "Precompiled after marking spaces"),
    ],
)
def test_steps_that_restore_what_another_one_changes_are_refused_by_name(
    shape: str, named: str
) -> None:
    _, vocabulary = made(shape, "nmt_nfkc")
    with pytest.raises(VocabularyError, match=named):
        vocabulary.encoder()


def test_a_strange_map_is_refused_by_name() -> None:
    tokenizer = tokenizer_of([("▁", -1.0), ("a", -1.0)])
    file = tokenizer.to_str().replace(
        '"normalizer":null', '"normalizer":{"type":"Precompiled","precompiled_charsmap":"AAAA"}'
    )
    vocabulary = Vocabulary.from_tokenizer_json(file)
    with pytest.raises(VocabularyError, match="character map cannot be read"):
        vocabulary.encoder()


@pytest.mark.parametrize("normalized", [False, True])
def test_sections_between_added_tokens_are_divided_apart(normalized: bool) -> None:
    tokenizer = trained(PIECES["gpt2"])
    tokenizer.normalizer = normalizers.Precompiled(charsmap("nmt_nfkc"))
    tokenizer.add_tokens([AddedToken("|X|", normalized=normalized, special=False)])
    tokenizer.encode_special_tokens = True
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for pattern in ("(e|\u0301|\\|X\\|){0,4}", "(e\u0301\\|X\\||\u0301\u0301|a){0,3}"):
        check_given_back(library(tokenizer), vocabulary, pattern)


def test_a_saved_vocabulary_gives_the_same_reasons(tmp_path: Any) -> None:
    tokenizer = trained(PIECES["gpt2"])
    tokenizer.normalizer = normalizers.Precompiled(charsmap("nmt_nfkc"))
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    vocabulary.save(tmp_path / "saved", canonical=True)
    loaded = Vocabulary.load(tmp_path / "saved")
    for each in (vocabulary, loaded):
        constraint = Constraint(Pattern("a(e\u0301|é)x"), each, tokenization="canonical")
        [line] = constraint.report.excluded
        assert "1 of 2 members" in line
        assert "normalizer (Precompiled) changes them" in line
        assert each.encoder().first_change("ae\u0301x") == 2
