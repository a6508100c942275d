"""Strings of which lengths are part of what is asked: masks against what can be completed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import Constraint, JsonSchema, LanguageError, Vocabulary

CHARACTERS = ["a", "b", "é", "😀", "\\n"]
PIECES = [*CHARACTERS, "aa", "ab", "aé", "bab", "aaaa"]
TEXTS = ['"', *PIECES, *(piece + '"' for piece in PIECES)]
#: Each byte, too: characters may be cut.
BYTES = [bytes([byte]) for byte in '"abé😀\\n.-'.encode()]
TOKENS = list(dict.fromkeys([*BYTES, *(text.encode() for text in TEXTS)]))
VOCABULARY = Vocabulary.from_tokens([*TOKENS, None], end_token_ids=[len(TOKENS)])
Schema = dict[str, object]

lengths = st.fixed_dictionaries(
    {},
    optional={
        "minLength": st.integers(min_value=0, max_value=6),
        "maxLength": st.integers(min_value=0, max_value=6),
    },
)
words: st.SearchStrategy[Schema] = st.sampled_from(
    [
        {"const": "a"},
        {"const": ""},
        {"const": "é"},
        {"enum": ["ab", "b"]},
        {"pattern": "a"},
        {"pattern": "^a*$"},
        {"pattern": "b$"},
        {"pattern": r"^[\s\S]{2,4}$"},
        {"pattern": r"^(a|[\s\S]{3,})$"},
    ]
)
bounded: st.SearchStrategy[Schema] = st.builds(
    lambda least, more: {"minLength": least} | ({"maxLength": least + more} if more else {}),
    st.integers(min_value=1, max_value=5),
    st.integers(min_value=0, max_value=4),
)
parts = bounded | words
schemas = st.one_of(
    st.builds(
        lambda keyword, one, other, more: {"type": "string", keyword: [one, other, *more]},
        st.sampled_from(["anyOf", "anyOf", "oneOf", "allOf"]),
        bounded,
        words,
        st.lists(parts, max_size=2),
    ),
    st.builds(lambda one, own: {"type": "string", "not": one, **own}, parts, lengths),
)


@pytest.mark.parametrize("ahead", ["", "a", "é", "aa", "ab"])
@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"minLength": 2}, {"const": "a"}]},
        {"anyOf": [{"minLength": 4}, {"enum": ["ab", "bab"]}]},
        {"anyOf": [{"minLength": 3}, {"maxLength": 1}]},
        {"anyOf": [{"minLength": 2, "maxLength": 7}, {"pattern": "^a"}]},
        {"pattern": r"^(a|[\s\S]{2,})$"},
    ],
)
def test_words_beside_lengths(schema: Schema, ahead: str) -> None:
    check({"type": "string", **schema}, ahead)


@settings(max_examples=150, deadline=None)
@given(schemas, st.text(alphabet="abé😀", max_size=4))
def test_combined_lengths_and_words(schema: Schema, ahead: str) -> None:
    check(schema, ahead)


#: Some of these exhaust counters that others leave alone.
LONG_TOKENS = list(
    dict.fromkeys(
        [
            *TOKENS,
            *(
                f"{piece}{end}".encode()
                for word in ("ab", "a", "aab", "é", "a.", "b-a")
                for piece in (word, word * 4, (word * 13)[:12], (word * 13)[:13], word * 7)
                for end in ("", '"')
            ),
        ]
    )
)
LONG = Vocabulary.from_tokens([*LONG_TOKENS, None], end_token_ids=[len(LONG_TOKENS)])


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(
        [
            "^[ab]*$",
            "^a[ab-]*$",
            "^(aab)+$",
            "^(ab|é)*$",
            "^(a*|(ab)+)$",
            "^[ab]*b?$",
            r"^(?=.{1,20}$)[ab](?:[ab-]{0,15}[ab])?(?:\.[ab](?:[ab-]{0,15}[ab])?)*\.?$",
            r"^(?=.{14,30}$)[ab.]+$",
            r"^(?!.{22})(a\.?)+$",
            r"^(?=[ab]{3,17}$).*$",
        ]
    ),
    st.integers(min_value=0, max_value=18),
    st.none() | st.integers(min_value=0, max_value=24),
    st.sampled_from(["", "a", "ab", "aab", "a.", "é"]),
    st.integers(min_value=0, max_value=16),
)
def test_patterns_beside_lengths(
    pattern: str, least: int, more: int | None, word: str, length: int
) -> None:
    bound = {} if more is None else {"maxLength": least + more}
    schema: Schema = {"type": "string", "pattern": pattern, "minLength": least, **bound}
    check(schema, (word * length)[:length], LONG, LONG_TOKENS)


def check(
    schema: Schema,
    ahead: str,
    vocabulary: Vocabulary = VOCABULARY,
    tokens: list[bytes] = TOKENS,
) -> None:
    """Compare the masks inside a string behind some text with what can be completed."""
    language = JsonSchema(schema)
    try:
        matcher = Constraint(language, vocabulary).matcher()
    except LanguageError:
        return
    for token in [b'"', *(one.encode() for one in ahead)]:
        if not language.is_viable(matcher.text + token):
            return
        for byte in token:
            matcher.advance(tokens.index(bytes([byte])))
        text = matcher.text
        allowed = set(matcher.allowed_token_ids())
        for token_id, piece in enumerate(tokens):
            expected = language.is_viable(text + piece)
            assert (token_id in allowed) == expected, (schema, text, piece)
