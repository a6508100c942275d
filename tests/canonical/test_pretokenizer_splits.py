"""Boundaries of real pre-tokenizers, exhaustively over short strings."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from formalm import ArgumentError
from tests.canonical.tokenizer_files import Case, needs_files

pytestmark = needs_files
ALPHABETS = ["a1 \n'sB/é", "a \n\tあ\u0301.ſA"]
LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]


def starts(case: Case, text: str) -> list[int]:
    """Where the library's own pieces begin, in bytes."""
    cuts = case.tokenizer.pre_tokenizer
    if cuts is None:
        return [0] if text else []
    return [len(text[:start].encode()) for _, (start, _) in cuts.pre_tokenize_str(text)]


def check(case: Case, text: str) -> None:
    refusal = None
    try:
        pieces = case.vocabulary.encoder().pieces(text)
    except ArgumentError as error:
        refusal = str(error)
    if refusal is not None:
        # A text that the normalizer changes may have none.
        assert "cannot split" in refusal
        assert case.tokenizer.normalizer.normalize_str(text) != text, text
        return
    assert [start for start, _ in pieces] == starts(case, text), text


@pytest.mark.parametrize("length", [3, pytest.param(6, marks=LONG)])
@pytest.mark.parametrize("alphabet", ALPHABETS)
def test_short_texts(
    case: Case, alphabet: str, length: int, record_property: Callable[[str, object], None]
) -> None:
    texts = 0
    for count in range(length + 1):
        for letters in product(alphabet, repeat=count):
            check(case, "".join(letters))
            texts += 1
    record_property("texts", texts)


def test_boundaries_with_unbounded_lookahead(case: Case) -> None:
    for count in range(51):
        for text in ("AあB" + "B" * count, "a\n" + " " * count):
            for end in ("", "c", "x", "\n", "\ny"):
                check(case, text + end)
