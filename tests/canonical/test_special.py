"""Special tokens among canonical ones: each string between them is encoded separately."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from tokenizers import AddedToken, Tokenizer, normalizers

from formalm import (
    Constraint,
    Grammar,
    Language,
    LanguageError,
    Matcher,
    Regex,
    SpecialToken,
    StringLiteral,
    Vocabulary,
    VocabularyError,
)
from formalm.automata.text_of_bytes import shown_text
from tests.canonical.small_tokenizers import PIECES, trained, with_fallback

CALL, DONE = SpecialToken("<|call|>"), SpecialToken("<|done|>")
WORD = Regex("(the| The|\\n|1| ){0,3}")

LANGUAGES: list[Language] = [
    WORD + CALL + WORD,
    (CALL + Regex("(the|there| ){0,2}") + DONE).repeat(0, 2),
    Regex("[ab]{0,2}") + (CALL | DONE) + Regex("[ab]{1,3}"),
    (CALL | StringLiteral(" the")).repeat(1, 4),
    CALL + CALL + Regex("( a|a| ){0,4}") + DONE,
]


def tokenizer_of(name: str, **flags: bool) -> Tokenizer:
    tokenizer = trained(PIECES[name])
    tokenizer.add_special_tokens([AddedToken(one.name, **flags) for one in (CALL, DONE)])
    # Their names in a text stand for them: that is what their library writes.
    tokenizer.encode_special_tokens = False
    return tokenizer


def sequences(matcher: Matcher, ends: set[int]) -> Iterator[tuple[int, ...]]:
    """Every sequence of tokens that may be written to an end."""
    if matcher.is_accepting:
        yield tuple(matcher.token_ids)
    for token_id in matcher.allowed_token_ids().tolist():
        if token_id not in ends:
            ahead = matcher.fork()
            ahead.advance(token_id)
            yield from sequences(ahead, ends)


@pytest.mark.parametrize("name", ["gpt2", "digits", "cl100k isolated False"])
@pytest.mark.parametrize("number", range(len(LANGUAGES)))
def test_sequences_are_those_of_the_tokenizer(name: str, number: int) -> None:
    language, tokenizer = LANGUAGES[number], tokenizer_of(name)
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    found = set(sequences(constraint.matcher(), set(vocabulary.end_token_ids)))
    texts = texts_of(language)
    assert len(texts) == language.to_automaton().count() > 5
    assert found == {tuple(tokenizer.encode(shown_text(text)).ids) for text in texts}
    assert all(vocabulary.is_canonical(ids) for ids in found)


def test_sections_between_special_tokens_are_normalized_apart() -> None:
    tokenizer = tokenizer_of("gpt2")
    tokenizer.normalizer = normalizers.NFC()
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    language = Regex("(e|é)?") + (CALL | Regex("x?")) + Regex("(\u0301|\u0327){0,2}")
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    found = set(sequences(constraint.matcher(), set(vocabulary.end_token_ids)))
    expected = set()
    for text in map(shown_text, texts_of(language)):
        ids = tokenizer.encode(text).ids
        if tokenizer.decode(ids, skip_special_tokens=False) == text:
            expected.add(tuple(ids))
    assert found == expected


@pytest.mark.parametrize("split", [False, True])
def test_a_space_is_inserted_before_the_first_text_only(split: bool) -> None:
    tokenizer = with_fallback(scheme="first", split=split)
    tokenizer.add_special_tokens([CALL.name, DONE.name])
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    for language in LANGUAGES[:4]:
        constraint = Constraint(language, vocabulary, tokenization="canonical")
        found = set(sequences(constraint.matcher(), set(vocabulary.end_token_ids)))
        # The text continues another one.
        texts = map(shown_text, texts_of(language))
        assert found == {tuple(tokenizer.encode("\n" + text).ids[2:]) for text in texts}
    always = with_fallback(scheme="always", split=split)
    always.add_special_tokens([CALL.name, DONE.name])
    with pytest.raises(LanguageError, match="inserts a space before text"):
        Constraint(
            LANGUAGES[0],
            Vocabulary.from_tokenizer_json(always.to_str()),
            tokenization="canonical",
        )


def texts_of(language: Language) -> set[bytes]:
    """All members, read byte by byte."""
    letters: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    names = {CALL.name: 256, DONE.name: 257}
    plain = Vocabulary.from_tokens([*letters, None, None], special_tokens=names)
    constraint = Constraint(language, plain)
    spelled = constraint.spelled.tokens()
    rows = sequences(constraint.matcher(), set())
    return {b"".join(spelled[one] or b"" for one in row) for row in rows}


def test_grammars_have_them_too() -> None:
    tokenizer = tokenizer_of("gpt2")
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer.to_str())
    grammar = Grammar(
        r"""
        start: <|call|> value <|done|>
        value: "[" [value ("," value)*] "]" | WORD | "\"" /[a-z ]+/? "\""
        WORD: "the" | "there"
        """
    )
    constraint = Constraint(grammar, vocabulary, tokenization="canonical")
    for text in ('<|call|>[the,[there,"the the"]]<|done|>', '<|call|>""<|done|>'):
        matcher = constraint.matcher()
        ids = tokenizer.encode(text).ids
        for token_id in ids:
            allowed = matcher.allowed_token_ids().tolist()
            assert token_id in allowed
            assert [one for one in allowed if matcher.allows(one)] == allowed
            matcher.advance(token_id)
        assert matcher.is_accepting
    assert constraint.report.exact


def test_strings_after_special_tokens_are_encoded_separately() -> None:
    vocabulary = Vocabulary.from_tokenizer_json(tokenizer_of("gpt2").to_str())
    call = vocabulary.special_tokens[CALL.name]
    constraint = Constraint(
        StringLiteral("a") + CALL + StringLiteral("a"), vocabulary, tokenization="canonical"
    )
    assert constraint.matcher().forced_token_ids() == [
        *vocabulary.encode("a"),
        call,
        *vocabulary.encode("a"),
    ]
    # Behind a prompt too: it goes on with its last text, up to the special token.
    behind = constraint.matcher(after=[call, *vocabulary.encode("the")])
    assert behind.forced_token_ids()[1:] == [call, *vocabulary.encode("a")]


@pytest.mark.parametrize("flag", ["lstrip", "rstrip", "single_word"])
def test_tokens_that_change_adjacent_text_are_refused(flag: str) -> None:
    file = json.loads(tokenizer_of("gpt2", **{flag: True}).to_str())
    vocabulary = Vocabulary.from_tokenizer_json(file)
    with pytest.raises(VocabularyError, match=flag):
        Constraint(CALL, vocabulary, tokenization="canonical")
    assert Constraint(CALL, vocabulary).matcher().forced_token_ids()
