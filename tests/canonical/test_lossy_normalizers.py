"""Normalizers that strip, replace and clean text, and spaces inserted between added tokens."""

from __future__ import annotations

from functools import cache

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, normalizers, pre_tokenizers

from formalm import Constraint, Vocabulary, VocabularyError
from formalm import Regex as Pattern
from formalm.continuations import continuation
from tests.canonical.given_back import check_given_back, library, spelled
from tests.canonical.small_tokenizers import PIECES, members, sequences, trained, with_fallback
from tests.canonical.unigram_models import tokenizer_of

SPACES = normalizers.Replace(Regex(" {2,}"), " ")
STEPS = {
    "Strip": [normalizers.Strip()],
    "Strip left": [normalizers.Strip(left=True, right=False)],
    "Strip right": [normalizers.Strip(left=False, right=True)],
    "Replace shorter": [normalizers.Replace("ab", "c")],
    "Replace overlapping": [normalizers.Replace("aba", "b"), normalizers.Replace("bb", "a")],
    "Replace longer": [normalizers.Replace("a", "aa")],
    "Replace same": [normalizers.Replace("a", "b")],
    "Replace quotes": [
        normalizers.Replace("``", '"'),
        normalizers.Replace("''", '"'),
        normalizers.NFKD(),
        normalizers.StripAccents(),
        normalizers.Lowercase(),
    ],
    "spaces": [SPACES],
    "Nmt": [normalizers.Nmt()],
    "BERT": [normalizers.BertNormalizer()],
    "BERT cased": [
        normalizers.BertNormalizer(strip_accents=False, lowercase=False, clean_text=True)
    ],
    "BERT CJK": [normalizers.BertNormalizer(clean_text=False, strip_accents=False, lowercase=True)],
    "SentencePiece by steps": [normalizers.Nmt(), normalizers.NFKC(), SPACES],
    "Strip and form": [normalizers.NFC(), normalizers.Strip(), normalizers.Lowercase()],
}
PATTERNS = [
    "[ab]{0,4}",
    "( |a|\t|\n){0,4}",
    "( |the|  |\u3000){0,3}",
    "(a|`|'|\"|e\u0301|é){0,3}",
    "(a|\u200b|\x07|\ufeff|\u00ad|\x85){0,3}",
    "(中|a| |文|가|É){0,3}",
]


@cache
def byte_level(name: str) -> tuple[Tokenizer, Vocabulary]:
    tokenizer = trained(PIECES["gpt2"])
    tokenizer.normalizer = normalizers.Sequence(STEPS[name])
    return tokenizer, Vocabulary.from_tokenizer_json(tokenizer.to_str())


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("name", STEPS)
def test_masks_accept_the_encodings_of_the_texts_given_back(name: str, pattern: str) -> None:
    tokenizer, vocabulary = byte_level(name)
    check_given_back(library(tokenizer), vocabulary, pattern)


@pytest.mark.parametrize("name", ["Strip", "spaces", "Replace overlapping", "Nmt"])
@pytest.mark.parametrize("normalized", [False, True])
def test_sections_between_added_tokens(name: str, normalized: bool) -> None:
    tokenizer = trained(PIECES["gpt2"])
    tokenizer.normalizer = normalizers.Sequence(STEPS[name])
    tokenizer.add_tokens([AddedToken("|X|", normalized=normalized, special=False)])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for pattern in ("( |\\|X\\||a|b){0,4}", "[ab]\\|X\\|[ab ]{0,3}", "(\\||X| ){0,4}"):
        check_given_back(library(tokenizer), vocabulary, pattern)


@pytest.mark.parametrize(
    ("steps", "named"),
    [
        ([normalizers.Prepend("x")], "Prepend"),
        ([normalizers.Replace(Regex("a+"), "b")], "Replace"),
        ([normalizers.Replace("a", "b"), normalizers.Replace("b", "a")], "Replace"),
        ([normalizers.Replace("a", "bb"), normalizers.Strip()], "Replace"),
        ([normalizers.Replace("Aa", "b"), normalizers.Lowercase()], "Replace"),
        ([normalizers.NFD(), normalizers.NFC()], "NFC"),
    ],
)
def test_other_steps_are_refused_by_name(steps: list[object], named: str) -> None:
    tokenizer = trained(PIECES["gpt2"])
    tokenizer.normalizer = normalizers.Sequence(steps)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    with pytest.raises(VocabularyError, match=named):
        vocabulary.encoder()


SPACED = [
    "(<x>|a| |b){0,4}",
    "( |\n|a|<x>){0,4}",
    "(<x>|<y>| a| ){0,4}",
    "a<x>( |  |\n)?(b|<y>)?",
]


@pytest.mark.parametrize("pattern", SPACED)
@pytest.mark.parametrize("rstrip", [False, True])
@pytest.mark.parametrize("scheme", [None, "first", "always", "never"])
def test_spaces_inserted_after_added_tokens(scheme: str | None, rstrip: bool, pattern: str) -> None:
    """Decoding keeps the space that is put there, so only some texts are given back."""
    tokenizer = with_fallback(scheme=scheme)
    added = [AddedToken(name, normalized=False, rstrip=rstrip and name == "<x>")
             for name in ("<x>", "<y>")]  # fmt: skip
    tokenizer.add_tokens(added)
    tokenizer.encode_special_tokens = True
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    check_given_back(library(tokenizer), vocabulary, pattern, "\n")


def test_phi_3() -> None:
    """Its end of a turn is an added token that absorbs white space, and is not special."""
    tokenizer = with_fallback()
    tokenizer.add_special_tokens([AddedToken("<|user|>", rstrip=True, normalized=False)])
    tokenizer.add_tokens([AddedToken("</s>", rstrip=True, normalized=False, special=False)])
    tokenizer.encode_special_tokens = True
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for pattern in ("(the|</s>| |a){0,4}", r"\{\"a\": ?[ab]\}", "(the| the|\n|<\\|user\\|>){0,3}"):
        check_given_back(library(tokenizer), vocabulary, pattern, "\n")


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("byte_fallback", [False, True])
@pytest.mark.parametrize(
    "name", ["Strip right", "spaces", "SentencePiece by steps", "Replace shorter"]
)
def test_unigram_models_behind_normalizers(name: str, byte_fallback: bool, split: bool) -> None:
    vocab = [("▁", -2.0), ("a", -1.5), ("b", -2.5), ("▁a", -3.0), ("ab", -3.5), ("▁▁", -5.0)]
    tokenizer = tokenizer_of(vocab, byte_fallback=byte_fallback, split=split)
    tokenizer.normalizer = normalizers.Sequence(STEPS[name])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for pattern in ("[ab ]{0,4}", "(a|\t| |\u00a0){0,3}"):
        check_given_back(library(tokenizer), vocabulary, pattern)


PLAIN = {
    "none": None,
    "white space is lost": pre_tokenizers.WhitespaceSplit(),
    "words": pre_tokenizers.Whitespace(),
    "spaces apart": pre_tokenizers.Split(" ", "isolated"),
    "spaces removed": pre_tokenizers.Split(" ", "removed"),
    "all but words removed": pre_tokenizers.Split(Regex("[ab]+"), "removed", invert=True),
    "digits": pre_tokenizers.Digits(individual_digits=True),
    "punctuation": pre_tokenizers.Punctuation(),
}


@pytest.mark.parametrize("name", PLAIN)
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_unigram_models_without_marks_of_spaces(name: str, byte_fallback: bool) -> None:
    vocab = [(" ", -2.0), ("a", -1.5), ("b", -2.5), (" a", -3.0), ("ab", -3.5), ("▁", -5.0)]
    tokenizer = tokenizer_of([*vocab, ("1", -2.0), ("1a", -3.0), ("a.", -3.0)],
                             byte_fallback=byte_fallback)  # fmt: skip
    tokenizer.pre_tokenizer = PLAIN[name]
    steps: list[object] = [decoders.ByteFallback()] if byte_fallback else []
    tokenizer.decoder = decoders.Sequence([*steps, decoders.Fuse()])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for pattern in ("[ab ]{0,4}", "(a|1|\\.|q|▁){0,3}", "( a|\n|b){0,3}"):
        check_given_back(library(tokenizer), vocabulary, pattern)


def test_added_tokens_may_contain_characters_without_pieces() -> None:
    vocab = [("▁", -2.0), ("a", -1.0), ("b", -1.0), ("ab", -3.0), ("x", -3.0)]
    for byte_fallback in (False, True):
        tokenizer = tokenizer_of(vocab, byte_fallback=byte_fallback)
        tokenizer.add_tokens(["xy", "aa", "bab", "日本"])
        vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
        for pattern in ("(a|b|x|y){0,4}", "(日|本|a){0,3}"):
            check_given_back(library(tokenizer), vocabulary, pattern)


def test_the_report_names_unknown_characters() -> None:
    tokenizer = tokenizer_of([("▁", -2.0), ("a", -1.0), ("abc", -3.0)])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for pattern, lost in (("(a|q){0,2}", "4 of 7"), ("(a|b|c){3}", "25 of 27")):
        report = Constraint(Pattern(pattern), vocabulary, tokenization="canonical").report
        assert report.excluded[0].startswith(f"{lost} members")
        assert "characters that the tokenizer does not know" in report.excluded[0]
    endless = Constraint(Pattern("[a-q]+"), vocabulary, tokenization="canonical").report
    assert "does not know" in endless.excluded[0]


@pytest.mark.parametrize("pattern", ["(<x>|a| |the){0,3}", "(<|<x>|b){0,3}", "<x>a?|a"])
@pytest.mark.parametrize("scheme", [None, "first", "always"])
def test_no_space_is_inserted_before_an_added_token(scheme: str | None, pattern: str) -> None:
    """At the beginning of a text; such members are left out, as the inserted space is not there."""
    tokenizer = with_fallback(scheme=scheme)
    tokenizer.add_tokens([AddedToken("<x>", normalized=False)])
    tokenizer.encode_special_tokens = True
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    language = Pattern(pattern)
    expected = set()
    for member in members(language):
        ids = tuple(library(tokenizer)(member.decode()))
        if not member or spelled(vocabulary, ids) == b" " + member:
            expected.add(ids)
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    found = sequences(continuation(constraint, []).constraint)
    assert found == expected
