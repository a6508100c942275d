"""Canonical sets by definition: the library's tokens of the members that they spell."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from tokenizers import Tokenizer

from formalm import Constraint, LanguageError, Regex, Vocabulary
from tests.canonical.small_tokenizers import members, sequences

Encode = Callable[[str], Sequence[int]]


def spelled(vocabulary: Vocabulary, ids: Sequence[int]) -> bytes | None:
    """The bytes of tokens; None if one has none."""
    tokens = [vocabulary.core.token_bytes(token_id) for token_id in ids]
    return None if None in tokens else b"".join(token or b"" for token in tokens)


def library(tokenizer: Tokenizer) -> Encode:
    """The encoding of a tokenizer, without tokens that it adds by itself."""
    return lambda text: tokenizer.encode(text, add_special_tokens=False).ids


def expected_sequences(
    encode: Encode, vocabulary: Vocabulary, language: Regex, before: str = ""
) -> set[tuple[int, ...]]:
    """The encodings, after a text that merges with nothing, that spell the members."""
    found = set()
    head = list(encode(before)) if before else []
    for member in members(language):
        ids = list(encode(before + member.decode()))
        if ids[: len(head)] == head and spelled(vocabulary, ids[len(head) :]) == member:
            found.add(tuple(ids[len(head) :]))
    return found


def check_given_back(encode: Encode, vocabulary: Vocabulary, pattern: str, before: str = "") -> str:
    """The masks allow exactly the encodings of the members that are given back, and the report
    counts the others.
    """
    language = Regex(pattern)
    expected = expected_sequences(encode, vocabulary, language, before)
    vocabulary.encoder()
    if not expected:
        with pytest.raises(LanguageError, match="for example"):
            Constraint(language, vocabulary, tokenization="canonical")
        return "empty"
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    found = sequences(constraint)
    assert found == expected, (
        pattern,
        [spelled(vocabulary, ids) for ids in sorted(found - expected)][:5],
        [spelled(vocabulary, ids) for ids in sorted(expected - found)][:5],
    )
    count = len(members(language))
    lost = count - len(expected)
    excluded = constraint.report.excluded
    assert bool(excluded) == bool(lost), (pattern, excluded)
    assert all(line.startswith(f"{lost} of {count} members") for line in excluded), excluded
    assert all(vocabulary.is_canonical(ids) for ids in list(found)[:30])
    return "equal"
