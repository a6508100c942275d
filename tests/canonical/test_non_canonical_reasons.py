"""Where and why tokens are not canonical, and what they should be."""

from __future__ import annotations

import random
from itertools import accumulate, islice

import pytest
from tokenizers import Tokenizer

from formalm import Vocabulary
from formalm.vocabulary.tokenizations import Tokenizations
from tests.canonical.small_tokenizers import PIECES, trained, with_fallback
from tests.canonical.tokenizer_files import Case, needs_files

TEXTS = [
    "The quick brown fox doesn't jump over 12345 lazy dogs.\n\n    return [1, 2]\n",
    'naïve café 日本語 and 😀\n{"key": [true, "v"]}',
    "x\n\ny 12's\n\nz's\n\nare",
    "  spaces   and\ttabs\r\n'S ſ Ünïcode   \n   x",
]


def respelled(vocabulary: Vocabulary, ids: list[int], rng: random.Random) -> list[int]:
    """The same bytes with a few tokens spelled otherwise, or joined with their neighbors."""
    start = rng.randrange(len(ids))
    end = min(len(ids), start + rng.choice([1, 1, 2, 3]))
    part = vocabulary.decode(ids[start:end])
    found = vocabulary.tokenizations(part)
    return [*ids[:start], *pick(found, rng), *ids[end:]]


def pick(found: Tokenizations, rng: random.Random) -> tuple[int, ...]:
    number = rng.randrange(min(len(found), 40))
    return next(islice(found, number, None))


@needs_files
@pytest.mark.parametrize("count", [300, pytest.param(20_000, marks=pytest.mark.slow)])
def test_the_position_and_the_reason_are_correct(case: Case, count: int) -> None:
    vocabulary, rng = case.vocabulary, random.Random(case.name)
    originals = [ids for ids in map(case.encode, TEXTS) if ids is not None]
    tried = [respelled(vocabulary, rng.choice(originals), rng) for _ in range(count)]
    merges = cuts = 0
    for ids in tried:
        expected = case.encode(vocabulary.decode(ids).decode())
        assert expected is not None
        error = vocabulary.canonical_error(ids)
        assert (error is None) == (ids == expected)
        if error is None:
            continue
        assert error.expected == tuple(expected)
        assert ids[: error.index] == expected[: error.index]
        assert ids[error.index] != expected[error.index]
        borders = {*accumulate(len(vocabulary.token_bytes(i) or b"") for i in ids)}
        own = {*accumulate(len(vocabulary.token_bytes(i) or b"") for i in expected)}
        if error.merge is not None:
            # A merge across a border of the tokens, so that no border is there.
            assert error.boundary in borders - own
            left, right = (vocabulary.token_bytes(i) or b"" for i in error.merge)
            text = vocabulary.decode(ids)
            assert text[: error.boundary].endswith(left)
            assert text[error.boundary :].startswith(right)
            merges += 1
        elif error.boundary is not None:
            assert error.boundary in own - borders
            cuts += 1
    assert merges > count / 20
    assert cuts > 0 or vocabulary.encoder().marks_spaces


def gpt2() -> Tokenizer:
    return trained(PIECES["gpt2"])


def of(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary.from_tokenizer_json(tokenizer.to_str())


def spelled(vocabulary: Vocabulary, *tokens: str | bytes) -> list[int]:
    every = vocabulary.tokens()
    return [every.index(t if isinstance(t, bytes) else t.encode()) for t in tokens]


def test_a_merge_across_tokens() -> None:
    vocabulary = of(gpt2())
    error = vocabulary.canonical_error(spelled(vocabulary, "t", "h", "e"))
    assert error is not None
    assert (error.index, error.boundary) == (0, 1)
    assert error.merge == tuple(spelled(vocabulary, "t", "h"))
    assert "merging joins b't' and b'h' across tokens 0 and 1" in error.reason


def test_a_cut_within_a_token() -> None:
    tokenizer = trained(PIECES["digits"])
    joined = of(trained(PIECES["text"]))
    vocabulary = of(tokenizer)
    token = next(t for t in joined.tokens() if t and len(t) > 1 and t.isdigit())
    error = vocabulary.canonical_error(spelled(vocabulary, "t", token))
    assert error is not None
    assert (error.index, error.boundary, error.merge) == (1, 2, None)
    assert "the pre-tokenizer splits the text between" in error.reason
    assert "inside token 1" in error.reason


def test_an_added_token_stands_for_its_text() -> None:
    tokenizer = gpt2()
    letters = tokenizer.encode("<|user|>").ids
    tokenizer.add_tokens(["<|user|>"])
    vocabulary = of(tokenizer)
    error = vocabulary.canonical_error([*vocabulary.encode("the"), *letters])
    assert error is not None
    assert error.index == len(vocabulary.encode("the"))
    assert error.expected == tuple(vocabulary.encode("the<|user|>"))
    assert "added token" in error.reason


def test_special_tokens_separate_texts() -> None:
    """Places count from the first token, and the right tokens are those of all texts."""
    tokenizer = gpt2()
    tokenizer.add_special_tokens(["<|end|>"])
    vocabulary = of(tokenizer)
    (end,) = vocabulary.special_token_ids
    wrong, right = spelled(vocabulary, "t", "h", "e"), vocabulary.encode("the")
    error = vocabulary.canonical_error([*right, end, *right, *wrong, end, *wrong])
    assert error is not None
    own = vocabulary.encode("thethe")
    assert error.expected == (*right, end, *own, end, *right)
    assert error.index >= len(right) + 1
    two = vocabulary.canonical_error([*right, end, *wrong])
    assert two is not None
    assert (two.index, two.boundary) == (len(right) + 1, 4)
    assert f"across tokens {len(right) + 1} and {len(right) + 2}" in two.reason
    assert vocabulary.is_canonical([*right, end, *right])


def test_characters_that_have_a_token_are_not_spelled_in_bytes() -> None:
    vocabulary = of(with_fallback())
    tokens = vocabulary.tokens()
    # The letters' own tokens come after those of single bytes.
    a, b = tokens.index(b"a", 257), tokens.index(b"b", 257)
    first = [tokens.index(bytes([byte])) for byte in "é".encode()]
    error = vocabulary.canonical_error([b, *first, a])
    assert error is not None
    assert error.index == 1
    assert "is a single byte of 'é'" in error.reason
    unknown = [tokens.index(bytes([byte])) for byte in "ñ".encode()]
    assert vocabulary.is_canonical([b, *unknown, b])
    half = vocabulary.canonical_error([b, *unknown[:1], b])
    assert half is not None
    assert (half.index, half.expected) == (1, None)
    assert "not UTF-8" in half.reason


def test_the_mark_of_a_space_is_found_where_it_is() -> None:
    vocabulary = of(with_fallback())
    tokens = vocabulary.tokens()
    mark = [tokens.index(bytes([byte])) for byte in "▁".encode()]
    other = [tokens.index(bytes([byte])) for byte in "Ё".encode()]
    error = vocabulary.canonical_error([*other, *mark])
    assert error is not None
    assert (error.index, error.expected) == (2, None)
    assert "into a space" in error.reason


def test_pieces_that_ignore_merges(llama: Case) -> None:
    case, vocabulary = llama, llama.vocabulary
    whole = next(i for i in llama.ids_of_kind("whole") if is_piece(llama, i))
    piece = vocabulary.decode([whole]).decode()
    merged = case.merging.encode(case.pieces[whole], add_special_tokens=False).ids
    later = spelled(vocabulary, "\n", "t", "h")
    error = vocabulary.canonical_error([*merged, *later])
    assert error is not None
    # Not the merge that is broken as well, but in a later piece.
    assert (error.index, error.merge) == (0, None)
    assert "one token for the whole of" in error.reason
    inside = [*spelled(vocabulary, "x"), whole]
    error = vocabulary.canonical_error(inside)
    assert error is not None
    assert error.expected == tuple(case.encode("x" + piece) or ())
    assert vocabulary.is_canonical([whole])


def is_piece(case: Case, token_id: int) -> bool:
    text = case.vocabulary.decode([token_id]).decode()
    return text.isalpha() and case.encode(text) == [token_id]
