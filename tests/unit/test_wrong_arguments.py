"""Wrong types and ranges are typed errors that leave a matcher as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    ConcurrencyError,
    Constraint,
    FunctionModel,
    JsonSchema,
    Language,
    LanguageError,
    LimitError,
    Limits,
    Matcher,
    ModelError,
    Regex,
    StringLiteral,
    TableModel,
    Vocabulary,
    VocabularyError,
    fill_bitmasks,
    generate,
    search,
    stream,
)


@pytest.fixture
def matcher() -> Matcher:
    vocabulary = Vocabulary.from_tokens([b"a", b".", b".2", b"1", None], end_token_ids=[4])
    return Constraint(Regex(r"[0-9]+\.[0-9]+"), vocabulary).matcher()


@pytest.mark.parametrize("token_id", [-1, 5, 10**30, 1.5, "1", None, [3]])
def test_token_ids(matcher: Matcher, token_id: Any) -> None:
    with pytest.raises(ArgumentError):
        matcher.advance(token_id)
    with pytest.raises(ArgumentError):
        matcher.advance_many([3, token_id])
    with pytest.raises(ArgumentError):
        matcher.allows(token_id)
    assert matcher.text == b""
    assert matcher.allowed_token_ids().tolist() == [3]


@pytest.mark.parametrize("count", [-1, 1, 10**30, "1", 0.5])
def test_rollback(matcher: Matcher, count: Any) -> None:
    with pytest.raises(ArgumentError):
        matcher.rollback(count)


@pytest.mark.parametrize("row", [-1, 1, 10**30, "0"])
def test_rows(matcher: Matcher, row: Any) -> None:
    with pytest.raises(ArgumentError):
        matcher.fill_bitmask(np.zeros((1, 1), np.int32), row)


def test_texts_and_lists(matcher: Matcher) -> None:
    wrong: Any = "1."
    with pytest.raises(ArgumentError, match="bytes"):
        matcher.advance_bytes(wrong)
    with pytest.raises(ArgumentError):
        fill_bitmasks([wrong], np.zeros((1, 1), np.int32))
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokens(wrong)
    with pytest.raises(LanguageError) as refused:
        Regex("a\ud800")
    assert refused.value.span == (1, 2)


def test_models_and_prompts() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    ragged: Any = lambda prefixes: [[1.0], [1.0, 2.0]]  # noqa: E731
    with pytest.raises(ModelError):
        FunctionModel(vocabulary, ragged).next_logprobs([[0], [1]])
    wrong: Any = 5
    with pytest.raises(ArgumentError):
        TableModel(vocabulary, wrong)
    with pytest.raises(ModelError):
        TableModel(vocabulary, {(): "abc"}).next_logprobs([[]])  # type: ignore[dict-item]
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokens([b"a"], end_token_ids=[1 << 40])
    with pytest.raises(ArgumentError):
        vocabulary.token_bytes("a")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError):
        Constraint(Regex("a"), vocabulary, memory_limit_bytes=1 << 70)
    with pytest.raises(ArgumentError):
        Constraint(Regex("a"), vocabulary, state_limit=1 << 70)


@pytest.mark.parametrize("seconds", [float("nan"), 0, -1, True, "1"])
def test_limits_of_time(seconds: Any) -> None:
    vocabulary = Vocabulary.from_tokens([b"a", None], end_token_ids=[1])
    model = TableModel(vocabulary, {}, default=[0.5, 0.5])
    with pytest.raises(ArgumentError, match="seconds"):
        search(model, Regex("a"), limits=Limits(seconds=seconds))


def test_one_matcher_twice(matcher: Matcher) -> None:
    with pytest.raises(ConcurrencyError, match=r"matchers\[0\] and matchers\[2\] are one"):
        fill_bitmasks([matcher, matcher.fork(), matcher], np.zeros((3, 1), np.int32))


@pytest.mark.parametrize("texts", [None, 5, [["a"]], [5], [None], ["a", {}]])
def test_choices_of_values_that_are_not_strings(texts: Any) -> None:
    with pytest.raises(LanguageError):
        Choice(texts)


@pytest.mark.parametrize(
    "deeper",
    [lambda x: ~x, lambda x: x.optional(), lambda x: (x + StringLiteral("a")) | StringLiteral("b")],
)
def test_languages_nest_as_deep_as_they_can_be_used(deeper: Any) -> None:
    language: Language = StringLiteral("x")
    while language._depth <= 198:
        language = deeper(language)
    assert len(repr(language)) < 10_000
    assert isinstance(language.matches("x"), bool)
    assert language == type(language)(*language._arguments)
    with pytest.raises(LimitError) as refused:
        deeper(deeper(language))
    assert (refused.value.needed, refused.value.allowed) == (201, 200)


def test_a_long_sum_is_not_deep() -> None:
    assert sum([StringLiteral("a")] * 300, start=StringLiteral("b")).matches("b" + 300 * "a")


def test_canonical_tokens_need_a_tokenizer() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", None], end_token_ids=[1])
    model = TableModel(vocabulary, {}, default=[0.5, 0.5])
    for drive in (generate, stream):
        with pytest.raises(VocabularyError, match="without a tokenizer"):
            drive(model, None, StringLiteral("a"), tokenization="canonical", max_tokens=2)
    with pytest.raises(VocabularyError, match="without a tokenizer"):
        search(model, StringLiteral("a"), tokenization="canonical")


def test_integers_of_thousands_of_digits_are_refused() -> None:
    with pytest.raises(ArgumentError, match="an integer of 16610 bits"):
        JsonSchema({"minimum": 10**5000})
    with pytest.raises(LanguageError, match="too many digits"):
        JsonSchema(f'{{"const": 1{"0" * 5000}}}').matches("1")
