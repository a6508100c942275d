"""SentencePiece: byte fallback, the prepended space, runs of spaces."""

from __future__ import annotations

import random
from itertools import product

import pytest

from tests.canonical.small_tokenizers import by_bytes, tokenizations
from tests.canonical.tokenizer_files import NAMES, Case, load, quick_and_slow

PIECES = [name for name in NAMES if name.startswith(("llama2", "mistral"))]
pytestmark = pytest.mark.skipif(not PIECES, reason="no such files in ../shared/tokenizers")
LONG = [pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module", params=quick_and_slow(PIECES))
def spaced(request: pytest.FixtureRequest) -> Case:
    return load(request.param)


@pytest.mark.parametrize("length", [2, pytest.param(4, marks=LONG)])
@pytest.mark.parametrize("alphabet", ["\n😀日a", "中\U0001f9ffé ", "\t\x00\u0301ü"])
def test_characters_in_bytes(spaced: Case, alphabet: str, length: int) -> None:
    """A character is spelled in bytes iff it has no token: all spellings of all texts."""
    ids = by_bytes(spaced.vocabulary)
    texts = ["".join(t) for n in range(1, length + 1) for t in product(alphabet, repeat=n)]
    matcher = spaced.anything.matcher()
    for text, expected in zip(texts, spaced.encode_all(texts), strict=True):
        accepted = []
        for tokens in tokenizations(text.encode(), ids):
            matcher.reset()
            if matcher.advance_many(tokens) == len(tokens) and matcher.is_accepting:
                accepted.append(tokens)
        assert accepted == [expected], text


@pytest.mark.parametrize("around", ["{}", "{}x", "x{}", "x{}y", "\n{}", "{}\n", "日{}😀"])
def test_runs_of_spaces(spaced: Case, around: str) -> None:
    """Longer spaces have tokens that were merged in a strange order, or tie."""
    matcher, rng = spaced.anything.matcher(), random.Random(0)
    spaces = {
        len(t): at for at, t in enumerate(spaced.vocabulary.tokens()) if t and not t.strip(b" ")
    }
    for count in range(1, 41):
        text = around.format(" " * count)
        ids = spaced.encode(text)
        assert ids is not None
        matcher.reset()
        assert matcher.advance_many(ids) == len(ids)
        assert matcher.is_accepting
        # The same run in other lengths.
        first = next(at for at, i in enumerate(ids) if spaced.vocabulary.decode([i])[:1] == b" ")
        for _ in range(30):
            left, other = count, list(ids[:first])
            while left:
                size = rng.choice([size for size in spaces if size <= left])
                other.append(spaces[size])
                left -= size
            rest = ids[first + sum(i in spaces.values() for i in ids) :]
            matcher.reset()
            accepted = matcher.advance_many(other + rest) == len(other + rest)
            spelled = spaced.vocabulary.decode(other + rest).decode()
            is_one = other + rest == spaced.encode(spelled)
            assert (accepted and matcher.is_accepting) == is_one


def test_the_space_in_front(spaced: Case) -> None:
    """A text's own tokens spell it with a space in front; as a continuation it has none."""
    vocabulary = spaced.vocabulary
    for text in ("William", " William", "the", "  x", "\nx", "日"):
        own = spaced.tokenizer.encode(text, add_special_tokens=False).ids
        assert vocabulary.decode(own).decode() == " " + text
        assert vocabulary.is_canonical(own)
        continued = spaced.encode(text)
        assert continued is not None
        assert vocabulary.decode(continued).decode() == text
        assert vocabulary.is_canonical(continued)
    # The study's example: after a space that is text, William still begins with a space.
    names = [vocabulary.decode([i]) for i in spaced.encode("  William") or []]
    assert names == [b" ", b" William"]
