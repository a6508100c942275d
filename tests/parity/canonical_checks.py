"""Checks of canonical tokens against whatever library encodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import product

import pytest

from formalm import Constraint, LanguageError, Regex, Vocabulary
from tests.canonical.small_tokenizers import members, sequences

Encode = Callable[[str], Sequence[int]]


def check(encode: Encode, vocabulary: Vocabulary, pattern: str) -> None:
    """The sequences that masks allow are what the library makes of the members."""
    language = Regex(pattern)
    prefix = "\n" if vocabulary.encoder().prepends_space else ""
    expected = set()
    for text in members(language):
        # A line break that merges with nothing stands in for what came before.
        ids = tuple(encode(prefix + text.decode()))[2 if prefix else 0 :]
        if vocabulary.decode(ids) == text:
            expected.add(ids)
    if not expected:
        with pytest.raises(LanguageError, match="canonical"):
            Constraint(language, vocabulary, tokenization="canonical")
        return
    found = sequences(Constraint(language, vocabulary, tokenization="canonical"))
    ends = set(vocabulary.end_token_ids)
    if ends:
        ended = {ids[:-1] for ids in found if ids and ids[-1] in ends}
        found = {ids for ids in found if ends.isdisjoint(ids)}
        assert ended == found
    assert found == expected
    assert all(vocabulary.is_canonical(ids) for ids in list(found)[:50])


def check_texts(encode: Encode, vocabulary: Vocabulary, texts: Sequence[str]) -> int:
    """Our encoding is the library's, or says that no tokens spell the text; how often it is."""
    encoder, same = vocabulary.encoder(), 0
    for text in texts:
        if encoder.marks_spaces and "▁" in text:
            continue
        spelled = " " + text if encoder.prepends_space else text
        ids, found = list(encode(text)), encoder.encode(spelled)
        if vocabulary.decode(ids) == spelled.encode():
            assert found == ids, text
            same += 1
        else:
            assert found is None, text
    return same


def adversarial(alphabet: str, count: int) -> list[str]:
    """All short texts over a few characters, and long ones over many."""
    rng = random.Random(0)
    texts = ["".join(text) for length in range(1, 5) for text in product(alphabet, repeat=length)]
    more = alphabet + "aab  \n\r\t01239AZé中あ'sSlLſ.,!\u0301😀\u00a0\u2028ǅʰ²\0/{}\"Việt"
    return texts + ["".join(rng.choices(more, k=rng.randrange(5, 60))) for _ in range(count)]
