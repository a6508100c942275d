"""Constraints and matchers: masks, steps, explanations."""

import inspect
import pickle
import threading

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from formalm import (
    ArgumentError,
    ConcurrencyError,
    Constraint,
    LanguageError,
    Matcher,
    Regex,
    StringLiteral,
    TokenError,
    Vocabulary,
    apply_bitmask,
    fill_bitmasks,
    new_bitmask,
)
from formalm.execution.arguments import compiled

VOCABULARY = Vocabulary.from_tokens([b"a", b".", b".2", b"1", None, None], end_token_ids=[4])
NUMBER = Regex(r"[0-9]+\.[0-9]+")


def test_the_articles_example() -> None:
    matcher = Constraint(NUMBER, VOCABULARY).matcher()
    assert matcher.allowed_token_ids().tolist() == [3]
    matcher.advance(3)
    assert matcher.allowed_token_ids().tolist() == [1, 2, 3]
    matcher.advance(2)
    assert matcher.allowed_token_ids().tolist() == [3, 4]
    assert matcher.is_accepting
    assert matcher.text == b"1.2"
    assert matcher.token_ids == [3, 2]


def test_a_refused_token_changes_nothing() -> None:
    matcher = Constraint(NUMBER, VOCABULARY).matcher()
    matcher.advance(3)
    for token_id in (0, 4, 5):
        with pytest.raises(TokenError) as caught:
            matcher.advance(token_id)
        assert caught.value.token_id == token_id
    with pytest.raises(TokenError):
        matcher.advance_bytes(b".x")
    assert matcher.text == b"1"
    assert matcher.advance_many([3, 1, 0, 3]) == 2
    assert matcher.text == b"11."


def test_rollback_reset_fork() -> None:
    matcher = Constraint(NUMBER, VOCABULARY).matcher()
    matcher.advance_many([3, 3, 1])
    other = matcher.fork()
    other.advance(3)
    matcher.rollback(2)
    assert (matcher.text, other.text) == (b"1", b"11.1")
    with pytest.raises(ArgumentError):
        matcher.rollback(2)
    other.reset()
    assert other.text == b""


def test_forced() -> None:
    matcher = Constraint(StringLiteral("1.2"), VOCABULARY).matcher()
    assert matcher.forced_bytes() == b"1.2"
    matcher.advance_many([3, 2])
    assert matcher.is_finished
    assert matcher.forced_bytes() == b""


def test_explanations() -> None:
    matcher = Constraint(NUMBER, VOCABULARY).matcher()
    matcher.advance(3)
    texts = [matcher.explain(token_id).text for token_id in range(6)]
    assert texts == [
        "b'a' is not allowed: b'a' cannot follow b'1', expected is b'.' b'0'-b'9'",
        "b'.' is allowed: some member goes on with it",
        "b'.2' is allowed: some member goes on with it",
        "b'1' is allowed: some member goes on with it",
        "the end is not allowed: the text is not in the language yet, expected is b'.' b'0'-b'9'",
        "token 5 is special, and the language does not name it",
    ]
    explanation = matcher.explain(2)
    assert (explanation.allowed, explanation.viable_bytes) == (True, 2)


def test_a_wider_model() -> None:
    constraint = Constraint(NUMBER, VOCABULARY, width=40)
    matcher = constraint.matcher()
    assert matcher.mask().shape == (40,)
    assert matcher.mask().nonzero()[0].tolist() == [3]
    out = new_bitmask(1, constraint.width)
    matcher.fill_bitmask(out)
    assert out.tolist() == [[1 << 3, 0]]


def test_bitmasks_of_a_batch() -> None:
    one = Constraint(NUMBER, VOCABULARY).matcher()
    two = Constraint(StringLiteral("a"), VOCABULARY).matcher()
    out = new_bitmask(3, len(VOCABULARY))
    out[1] = -1
    fill_bitmasks([one, two], out, rows=[2, 0])
    assert out.tolist() == [[1], [-1], [8]]
    logits = np.zeros((3, 6), dtype=np.float32)
    apply_bitmask(logits, out)
    assert np.isfinite(logits).sum(axis=1).tolist() == [1, 6, 1]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_apply_bitmask(dtype: type) -> None:
    logits = np.arange(40, dtype=dtype)
    apply_bitmask(logits, np.array([5], dtype=np.int32))
    assert np.flatnonzero(np.isfinite(logits)).tolist() == [0, 2]


@pytest.mark.parametrize(
    "out",
    [
        np.zeros(1, dtype=np.int64),
        np.zeros((1, 1), dtype=np.uint32),
        np.zeros((2, 8), dtype=np.int32)[:, ::2],
        np.zeros((1, 1, 1), dtype=np.int32),
        [0],
        None,
    ],
)
def test_a_wrong_bitmask_is_refused(out: object) -> None:
    matcher = Constraint(NUMBER, VOCABULARY, width=64).matcher()
    with pytest.raises(ArgumentError):
        matcher.fill_bitmask(out)


@pytest.mark.parametrize(
    ("logits", "bitmask"),
    [
        (np.zeros(4, dtype=np.int32), np.zeros(1, dtype=np.int32)),
        (np.zeros(4), np.zeros(1, dtype=np.int64)),
        (np.zeros((2, 4)), np.zeros((3, 1), dtype=np.int32)),
        ([0.0], np.zeros(1, dtype=np.int32)),
        (np.zeros(4), [0]),
    ],
)
def test_wrong_logits_are_refused(logits: object, bitmask: object) -> None:
    with pytest.raises(ArgumentError):
        apply_bitmask(logits, bitmask)


def test_rows_out_of_range() -> None:
    matcher = Constraint(NUMBER, VOCABULARY).matcher()
    out = new_bitmask(2, len(VOCABULARY))
    with pytest.raises(ArgumentError):
        matcher.fill_bitmask(out, 2)
    with pytest.raises(ArgumentError):
        fill_bitmasks([matcher], out, rows=[5])
    with pytest.raises((ArgumentError, ConcurrencyError)):
        fill_bitmasks([matcher, matcher], out)
    for arguments in ((0, 5), (1, 0), (1.5, 3)):
        with pytest.raises(ArgumentError):
            new_bitmask(*arguments)


def test_torch_tensors_share_memory() -> None:
    torch = pytest.importorskip("torch")
    matcher = Constraint(NUMBER, VOCABULARY).matcher()
    out = torch.zeros((1, 1), dtype=torch.int32)
    matcher.fill_bitmask(out)
    assert out.tolist() == [[8]]
    fill_bitmasks([matcher], out)
    for dtype in (torch.float16, torch.bfloat16, torch.float32):
        logits = torch.zeros((1, 6), dtype=dtype)
        apply_bitmask(logits, out)
        assert torch.isfinite(logits).tolist() == [[False, False, False, True, False, False]]
    with pytest.raises(ArgumentError):
        matcher.fill_bitmask(torch.zeros((1, 1), dtype=torch.int64))
    with pytest.raises(ArgumentError):
        apply_bitmask(torch.zeros(6, dtype=torch.int32), out)


def test_a_constraint_is_a_value() -> None:
    constraint = Constraint(NUMBER, VOCABULARY, width=7)
    again = pickle.loads(pickle.dumps(constraint))  # noqa: S301
    assert again == constraint
    assert hash(again) == hash(constraint)
    assert again.width == 7
    assert constraint != Constraint(NUMBER, VOCABULARY)
    assert constraint.report.exact
    assert constraint.tokenization == "all"


def test_a_list_of_strings_is_a_choice() -> None:
    matcher = Constraint(["1", "a"], VOCABULARY).matcher()
    assert matcher.allowed_token_ids().tolist() == [0, 3]


def test_refused() -> None:
    with pytest.raises(LanguageError):
        Constraint("a", VOCABULARY)
    with pytest.raises(LanguageError):
        Constraint(Regex("a") & Regex("b"), VOCABULARY)
    for options in (
        {"tokenization": "canonic"},
        {"width": 3},
        {"width": "7"},
        {"memory_limit_bytes": 0},
        {"state_limit": -1},
    ):
        with pytest.raises(ArgumentError):
            Constraint(NUMBER, VOCABULARY, **options)
    with pytest.raises(ArgumentError):
        Constraint(NUMBER, [b"a"])


@pytest.mark.parametrize("least", [1, 40])
def test_masks_without_a_cache_are_equal(least: int) -> None:
    kept, forgotten = (
        Constraint(NUMBER, VOCABULARY, memory_limit_bytes=limit) for limit in (None, least)
    )
    one, other = kept.matcher(), forgotten.matcher()
    for token in (2, 0, 2):
        for _ in range(2):
            assert one.mask().tolist() == other.mask().tolist()
        allowed = one.allowed_token_ids().tolist()
        if not allowed:
            break
        one.advance(allowed[token % len(allowed)])
        other.advance(allowed[token % len(allowed)])
    assert forgotten.mask_count <= kept.mask_count
    assert least > 1 or forgotten.mask_count == 0


def test_shared_between_threads() -> None:
    constraint = Constraint(Regex("(a|1|[.]2?)*"), VOCABULARY)
    failures = []

    def walk(seed: int) -> None:
        generator = np.random.default_rng(seed)
        matcher = constraint.matcher()
        for _ in range(200):
            allowed = [i for i in matcher.allowed_token_ids().tolist() if i != 4]
            matcher.advance(int(generator.choice(allowed)))
        if not constraint.language.is_viable(matcher.text):
            failures.append(matcher.text)

    threads = [threading.Thread(target=walk, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_saved_constraints_merge_like_their_tokenizer() -> None:
    """Two tokenizers of the same tokens, which write "abc" in different ones."""
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "ab", "bc"]
    for merges, first in [(["a b", "b c"], "ab"), (["b c", "a b"], "a")]:
        model = {
            "type": "BPE",
            "vocab": {token: place for place, token in enumerate(tokens)},
            "merges": merges,
        }
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False}
        file = {"model": model, "pre_tokenizer": level}
        vocabulary = Vocabulary.from_tokenizer_json(file)
        made = compiled(StringLiteral("abc"), vocabulary, "canonical")
        assert made.matcher().allowed_token_ids().tolist() == [tokens.index(first)]


def test_every_public_name_of_a_matcher_is_documented() -> None:
    assert Matcher.__doc__ is not None
    for name in (name for name in dir(Matcher) if not name.startswith("_")):
        value = inspect.getattr_static(Matcher, name)
        assert value.__doc__ or Matcher.__slots__.get(name), name
        if inspect.isfunction(value):
            hints = [*inspect.signature(value).parameters.values()][1:]
            assert all(hint.annotation is not hint.empty for hint in hints), name
            assert inspect.signature(value).return_annotation is not inspect.Signature.empty, name
    assert {"advance", "fill_bitmask", "rollback", "allows"} <= {*vars(Matcher)}
