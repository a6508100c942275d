"""Every tokenization of every short text: the canonical one is accepted, and no other."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import pytest

from tests.canonical.small_tokenizers import by_bytes, tokenizations
from tests.canonical.tokenizer_files import Case, needs_files

pytestmark = needs_files
ALPHABETS = {
    "lines": "a \n1",
    "contractions": "'sS ",
    "code": "(/;\n",
    "cases": "aBあ ",
    "partial": "é日\u0301 ",
    "words": "the ",
}
LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("length", [4, pytest.param(7, marks=LONG)])
@pytest.mark.parametrize("alphabet", ALPHABETS)
@pytest.mark.parametrize("cut", [True, False], ids=["cut", "uncut"])
def test_one_tokenization_of_each_text_is_accepted(
    case: Case,
    uncut: Case,
    cut: bool,
    alphabet: str,
    length: int,
    record_property: Callable[[str, object], None],
) -> None:
    used = case if cut else uncut
    ids = by_bytes(used.vocabulary)
    letters = ALPHABETS[alphabet]
    texts = ["".join(t) for n in range(1, length + 1) for t in product(letters, repeat=n)]
    matcher = used.anything.matcher()
    count = 0
    for text, expected in zip(texts, used.encode_all(texts), strict=True):
        # Partial characters multiply: a longer text of them says nothing new.
        if len(text.encode()) > 2 * length:
            continue
        accepted = []
        for tokens in tokenizations(text.encode(), ids):
            count += 1
            matcher.reset()
            if matcher.advance_many(tokens) == len(tokens) and matcher.is_accepting:
                accepted.append(tokens)
        assert accepted == [expected], text
    record_property("texts", len(texts))
    record_property("tokenizations", count)


@pytest.fixture(scope="module")
def uncut(case: Case) -> Case:
    return case.uncut()
