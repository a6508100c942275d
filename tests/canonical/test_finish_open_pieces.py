"""``finish=True`` for Unigram and WordPiece: the library's encodings of all members decide."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence

import pytest
import sentencepiece

from formalm import (
    Constraint,
    Grammar,
    JsonSchema,
    Language,
    LanguageError,
    Regex,
    Vocabulary,
    VocabularyError,
)
from tests.canonical.given_back import expected_sequences, library
from tests.canonical.sentencepiece_models import UNIGRAM, model_of, random_pieces
from tests.canonical.test_finish import (
    EXPRESSION,
    FINITE,
    SCHEMA,
    check_budgets,
    check_fewest,
    end_in_members,
    ends_in_a_member,
)
from tests.canonical.test_unigram import trained
from tests.canonical.test_wordpiece import encoded, random_words
from tests.canonical.unigram_models import LETTERS, random_tokenizer, tokenizer_of

SLOW = [pytest.mark.slow, pytest.mark.timeout(3600)]
Sequences = set[tuple[int, ...]]


def check(language: Language, vocabulary: Vocabulary, expected: Sequences) -> str:
    """Budgets allow exactly the encodings of so many tokens; less than the fewest is refused."""
    try:
        constraint = Constraint(language, vocabulary, tokenization="canonical")
    except LanguageError:
        assert not expected
        return "empty"
    check_budgets(constraint, expected)
    return "equal"


def pattern_of(rng: random.Random, letters: str) -> str:
    low, high = rng.choice([(1, 4), (2, 4), (3, 3), (0, 3), (5, 6)])
    if rng.random() < 0.4 or high > 4:
        words = {"".join(rng.choices(letters, k=rng.randrange(low, high + 1))) for _ in range(9)}
        return "|".join(sorted(words))
    return f"[{letters}]{{{low},{high}}}"


def check_unigram(seed: int) -> str:
    rng = random.Random(seed)
    tokenizer = random_tokenizer(rng)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    language = Regex(pattern_of(rng, LETTERS[:2] + rng.choice(["", " ", LETTERS[2], "é"])))
    return check(language, vocabulary, expected_sequences(library(tokenizer), vocabulary, language))


def check_sentencepiece(seed: int) -> str:
    rng = random.Random(seed)
    pieces = random_pieces(rng, UNIGRAM, "abxé▁")
    model = model_of(pieces, UNIGRAM, byte_fallback=rng.random() < 0.5)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    vocabulary = Vocabulary.from_sentencepiece(model)
    language = Regex(pattern_of(rng, "ab" + rng.choice(["", " ", "x", "é"])))
    try:
        vocabulary.encoder()
    except VocabularyError:
        return "refused"
    return check(language, vocabulary, expected_sequences(processor.encode, vocabulary, language))


def check_wordpiece(seed: int) -> str:
    tokenizer, words, pattern = random_words(seed)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    expected = {ids for word in words if (ids := encoded(tokenizer, word)) is not None}
    return check(Regex(pattern), vocabulary, expected)


@pytest.mark.parametrize("count", [120, pytest.param(5_000, marks=SLOW)])
@pytest.mark.parametrize("checked", [check_unigram, check_sentencepiece, check_wordpiece])
def test_random_models_allow_exactly_the_members_of_so_many_tokens(
    checked: Callable[[int], str], count: int
) -> None:
    found = Counter(checked(seed) for seed in range(count))
    assert found["equal"] > 0.5 * count, found


def letters_of(text: str) -> list[tuple[str, float]]:
    """Pieces for the characters of schemas, and a few words."""
    words = ["the", "th", "there", "line", "is", '":', '{"', '",', "▁a", "then", "fore", "ll", "e}"]
    pieces = [(letter, -4.0 - at / 16) for at, letter in enumerate(dict.fromkeys(text))]
    return pieces + [(word, -5.0 - at / 8) for at, word in enumerate(words)]


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("schema", FINITE)
def test_budgets_of_finite_schemas_are_exact(schema: dict[str, object], split: bool) -> None:
    text = '▁{}[]":,abcdefghijklmnoprstu12'
    tokenizer = tokenizer_of(letters_of(text), byte_fallback=True, split=split)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    language = JsonSchema(schema, max_whitespace=0)
    expected = expected_sequences(library(tokenizer), vocabulary, language)
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    check_budgets(constraint, expected, longest=False)


@pytest.mark.parametrize("split", [False, True])
@pytest.mark.parametrize("language", [SCHEMA, EXPRESSION], ids=["schema", "grammar"])
def test_stack_machines_end_in_members(language: Language, split: bool) -> None:
    tokenizer = trained(600, split=split)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    end_in_members(Constraint(language, vocabulary, tokenization="canonical"), 12)


@pytest.mark.parametrize("pattern", [r"[a-z ]{3,40}\.", r"(the|and|then| it| of){2,9}!", r".{9}x"])
@pytest.mark.parametrize("split", [False, True])
def test_trained_models_end_in_members(pattern: str, split: bool) -> None:
    tokenizer = trained(1_000, split=split)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    constraint = Constraint(Regex(pattern), vocabulary, tokenization="canonical")
    check_fewest(constraint.matcher(), end_in_members(constraint, 5))


def test_after_prompts() -> None:
    tokenizer = tokenizer_of(
        [("▁", -2.0), ("a", -3.0), ("b", -3.5), ("ab", -4.0), ("ba", -5.5), ("bab", -7.0)]
    )
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    language = Regex("(a|ba|b b){1,3}")
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    encode = library(tokenizer)
    for prompt in ("a", "b", "ab", "a b"):
        before = list(encode(prompt))
        found: set[int] = set()
        for count in range(1, 4):
            for member in members_of(count):
                whole: Sequence[int] = encode(prompt + member)
                if list(whole[: len(before)]) == before:
                    found.add(len(whole) - len(before))
        check_fewest(constraint.matcher(after=before), min(found))


def members_of(count: int) -> set[str]:
    texts = {""}
    for _ in range(count):
        texts = {text + part for text in texts for part in ("a", "ba", "b b")}
    return texts


def test_a_recursive_grammar_of_any_depth() -> None:
    grammar = Grammar('start: "a" start "b" | "ab"\n')
    tokenizer = tokenizer_of([("a", -2.0), ("b", -2.0), ("ab", -2.5), ("aab", -3.5)])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    constraint = Constraint(grammar, vocabulary, tokenization="canonical")
    for budget in (1, 2, 5, 9):
        for seed in range(5):
            ends_in_a_member(constraint, budget, random.Random(seed))
