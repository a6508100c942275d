"""Masks as shared, read-only arrays, equal to the mask at every position."""

import random
import warnings
import weakref

import numpy as np
import numpy.typing as npt
import pytest

from formalm import (
    Constraint,
    Grammar,
    JsonSchema,
    Language,
    Matcher,
    Regex,
    StringLiteral,
    Vocabulary,
    apply_bitmask,
    new_bitmask,
)
from formalm.grammars import JSON, PYTHON
from formalm.models.canary import canary

LISTS = Grammar('start: "[" (item ("," item)*)? "]"\nitem: start | /[0-9]+/ | /"[a-z]*"/')
TOKENS = [bytes([byte]) for byte in b'[],"0123456789abcxyz']
VOCABULARY = Vocabulary.from_tokens(
    [*TOKENS, b"[[", b"]]", b'",', b'"a', b"12", None], end_token_ids=[len(TOKENS) + 5]
)


def filled(matcher: Matcher) -> npt.NDArray[np.int32]:
    out = new_bitmask(1, matcher.constraint.width)
    matcher.fill_bitmask(out)
    return out[0]


def walked(constraint: Constraint, seed: int) -> int:
    """Compare along a walk that goes back now and then; the number of positions."""
    choice, matcher = random.Random(seed), constraint.matcher()
    seen: list[tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]] = []
    for _ in range(80):
        mask = matcher.bitmask()
        assert np.array_equal(mask, filled(matcher))
        assert np.array_equal(matcher.fork().bitmask(), mask)
        seen.append((mask, mask.copy()))
        allowed = np.flatnonzero(matcher.mask()).tolist()
        if not allowed or choice.random() < 0.2:
            matcher.rollback(min(len(seen), len(matcher.token_ids)) // 2)
        else:
            matcher.advance(choice.choice(allowed))
    assert all(np.array_equal(mask, before) for mask, before in seen)
    return len(seen)


@pytest.mark.parametrize("memory_limit_bytes", [None, 2_000, 40, 1])
@pytest.mark.parametrize(
    "language", [LISTS, Regex("[[]([0-9]+,)*[]]"), JsonSchema({"items": {"type": "string"}})]
)
def test_shared_bitmasks_equal_the_mask_at_every_position(
    language: Language, memory_limit_bytes: int | None
) -> None:
    constraint = Constraint(language, VOCABULARY, memory_limit_bytes=memory_limit_bytes)
    assert sum(walked(constraint, seed) for seed in range(6)) > 400


@pytest.mark.parametrize("memory_limit_bytes", [None, 20_000, 2_000])
@pytest.mark.parametrize("end_token_ids", [[], [2047]])
@pytest.mark.parametrize("language", [JSON, PYTHON, JsonSchema({})], ids=["json", "python", "any"])
def test_similar_masks_are_distinguished(
    language: Language, end_token_ids: list[int], memory_limit_bytes: int | None
) -> None:
    # Tokens enough that masks are kept as what differs from others.
    tokens = [model.token_bytes(at) for model in [canary().vocabulary] for at in range(2047)]
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=end_token_ids)
    constraint = Constraint(language, vocabulary, memory_limit_bytes=memory_limit_bytes)
    assert sum(walked(constraint, seed) for seed in range(4)) == 320


def test_with_canonical_tokens_and_a_wider_model() -> None:
    model = canary()
    width = len(model.vocabulary) + 70
    for tokenization in ("all", "canonical"):
        constraint = Constraint(
            Regex("(the|a) (quick|brown) [a-z]+"),
            model.vocabulary,
            tokenization=tokenization,
            width=width,
        )
        assert constraint.matcher().bitmask().shape == (-(-width // 32),)
        walked(constraint, 1)


def test_positions_with_the_same_mask_share_it() -> None:
    constraint = Constraint(LISTS, VOCABULARY)
    one, other = constraint.matcher(), constraint.matcher()
    mask = one.bitmask()
    assert other.bitmask() is mask
    for text in (b"[12,", b"[[],"):
        one.advance_bytes(text)
        assert one.state_key != other.state_key
        after = one.bitmask()
        other.advance_bytes(b'["abc",' + text)
        assert other.bitmask() is not mask
        one.reset()
        other.reset()
        assert one.bitmask() is mask
        assert after is not mask
    one.advance_bytes(b"[[")
    other.advance_bytes(b"[[[")
    assert one.state_key != other.state_key
    assert one.bitmask() is other.bitmask()


def test_after_the_end_nothing_is_allowed() -> None:
    matcher = Constraint(LISTS, VOCABULARY).matcher()
    matcher.advance_bytes(b"[]")
    assert matcher.bitmask().any()
    matcher.advance(VOCABULARY.end_token_ids[0])
    assert not matcher.bitmask().any()


def test_tokens_that_a_mask_class_leaves_open_are_rechecked() -> None:
    # Whether the token is allowed depends on an item that masks of other places do not look at.
    tokens = [*(bytes([byte]) for byte in range(32, 127)), b'","a"]', b'","","', b'"a","']
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    distinct = JsonSchema({"type": "array", "items": {"type": "string"}, "uniqueItems": True})
    texts = [b'["b', b'["a', b'["', b'["b","', b'["a","', b'["c","b', b'["a","b']
    for language in (
        distinct,
        StringLiteral("") + distinct,
        JsonSchema({"type": "string"}) | distinct,
    ):
        for order in (texts, texts[::-1]):
            constraint = Constraint(language, vocabulary)
            for text in order:
                matcher = constraint.matcher()
                matcher.advance_bytes(text)
                mask = matcher.bitmask()
                assert np.array_equal(mask, filled(matcher)), text
                for token_id in range(len(tokens)):
                    allowed = bool(mask[token_id >> 5] >> (token_id & 31) & 1)
                    assert allowed == matcher.allows(token_id), (text, tokens[token_id])


def test_it_cannot_be_written_to() -> None:
    mask = Constraint(LISTS, VOCABULARY).matcher().bitmask()
    assert mask.dtype == np.int32
    with pytest.raises(ValueError, match="read-only"):
        mask[0] = 0
    with pytest.raises(ValueError, match="WRITEABLE"):
        mask.flags.writeable = True
    logits = np.zeros(len(VOCABULARY), np.float32)
    apply_bitmask(logits, mask)
    assert np.flatnonzero(logits == 0).tolist() == [0, len(TOKENS)]


def test_changes_of_one_array_do_not_reach_the_next() -> None:
    matcher = Constraint(LISTS, VOCABULARY, width=100).matcher()
    for name, value in (("shape", (1, -1)), ("dtype", np.uint8), ("dtype", ">i4")):
        mask = matcher.bitmask()
        assert matcher.bitmask() is mask
        # Settings of arrays are old-fashioned, and newer releases of NumPy say so.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            setattr(mask, name, value)
        fresh = matcher.bitmask()
        assert fresh is not mask
        assert np.array_equal(fresh, filled(matcher))
        assert fresh.dtype == np.int32


def test_code_that_runs_when_an_array_goes_may_ask_for_another() -> None:
    letters = Vocabulary.from_tokens([bytes([byte]) for byte in range(97, 123)])
    constraint = Constraint(Regex("abcdefghijkl"), letters, width=1 << 21)
    matcher, other, gone = constraint.matcher(), constraint.matcher(), []
    for token_id in range(11):
        mask = matcher.bitmask()
        weakref.finalize(
            mask, lambda: gone.append(other.bitmask().any() and constraint.memory_bytes)
        )
        del mask
        matcher.advance(token_id)
    assert len(gone) > 5


def test_its_memory_is_bounded_and_counted() -> None:
    texts = ["".join(random.Random(seed).choices("abcxyz", k=6)) for seed in range(400)]
    rests = {text[start:].encode() for text in texts for start in range(5)}
    vocabulary = Vocabulary.from_tokens([*TOKENS, *sorted(rests), *[b"zz"] * 40_000])
    constraint = Constraint(Regex("|".join(texts)), vocabulary)
    row = 4 * -(-len(vocabulary) // 32)
    before, masks = constraint.memory_bytes, set()
    for text in texts:
        for end in range(7):
            matcher = constraint.matcher()
            matcher.advance_bytes(text[:end].encode())
            masks.add(matcher.bitmask().tobytes())
    assert len(masks) > 100
    kept = constraint.memory_bytes
    assert before + 50 * row < kept < before + (1 << 20) + (6 << 20)
    small = Constraint(Regex("|".join(texts)), vocabulary, memory_limit_bytes=8 * row)
    for text in texts:
        matcher = small.matcher()
        matcher.advance_bytes(text[:3].encode())
        matcher.bitmask()
    assert small.memory_bytes < kept / 2


@pytest.mark.parametrize("memory_limit_bytes", [40_000, 400_000, 4_000_000, None])
def test_arrays_and_their_index_stay_within_their_memory_share(
    memory_limit_bytes: int | None,
) -> None:
    # Masks that take more than their arrays: lists of few hundred tokens of a small vocabulary.
    characters = [chr(0x4E00 + at) for at in range(1000)]
    vocabulary = Vocabulary.from_tokens([one.encode() for one in characters])
    choice = random.Random(3)
    classes = ["[" + "".join(choice.sample(characters, 380)) + "]" for _ in range(300)]
    pair = [
        Constraint(Regex("".join(classes)), vocabulary, memory_limit_bytes=memory_limit_bytes)
        for _ in range(2)
    ]
    for is_array, constraint in enumerate(pair):
        matcher = constraint.matcher()
        while allowed := matcher.allowed_token_ids().tolist():
            mask = filled(matcher) if not is_array else matcher.bitmask()
            assert mask.any()
            matcher.advance(allowed[0])
    share = pair[1].memory_bytes - pair[0].memory_bytes
    assert 0 < share <= min((memory_limit_bytes or 1 << 40) * 2 / 3, 1.8e6)
