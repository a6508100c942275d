"""Rows of logits: types, soundness, sums, draws and certified masses against definitions."""

import math
import threading
import time
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest

from formalm import (
    FunctionModel,
    ModelError,
    Query,
    Regex,
    Vocabulary,
    _core,
    generate,
    mass,
    sample,
    score,
)
from formalm.models import LogitRow, LogitRows, Session, log_softmax
from formalm.query import Decoding
from formalm.query.decoding_rules import random_numbers

TOKENS = [b"a", b"b", b"ab", b"ba", b"c", None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[5], encode=lambda text: ["abc".index(c) % 3 * 2 for c in text]
)


def logits_of(seed: int, dtype: str, scale: float = 3.0) -> FunctionModel:
    """A model whose logits are random numbers of a type, determined by the prefix."""

    def logits(prefixes: list[tuple[int, ...]]) -> npt.NDArray[np.floating]:
        rows = [
            scale * np.random.default_rng([seed, len(p), *p]).normal(size=len(TOKENS))
            for p in prefixes
        ]
        return np.array(rows).astype(dtype)

    return FunctionModel(VOCABULARY, logits)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4", "longdouble"])
@pytest.mark.parametrize("width", [1, 31, 512, 513, 5000])
def test_sums_of_every_type_agree_with_float64(dtype: str, width: int) -> None:
    values = np.random.default_rng(width).normal(size=(3, width)).astype(dtype)
    rows = LogitRows(values, is_normalized=False)
    for at in range(3):
        exact = np.logaddexp.reduce(values[at].astype(np.float64))
        assert abs(rows[at].log_sum - exact) <= rows[at].error + 1e-14
        assert np.abs(rows[at].logprobs - log_softmax(values[at].astype(np.float64))).max() < 1e-6


def test_rows_may_have_any_stride_and_alignment() -> None:
    wide = np.random.default_rng(0).normal(size=(40, 6)).astype(np.float32)
    columns = LogitRows(wide.T, is_normalized=False)
    assert columns[2].log_sum == LogitRows(wide[:, 2].copy()[None], is_normalized=False)[0].log_sum
    shifted = np.frombuffer(b"x" + wide.tobytes(), np.float32, offset=1, count=40)
    assert not shifted.flags.aligned
    assert abs(LogitRow(shifted, is_normalized=False).log_sum - np.logaddexp.reduce(shifted)) < 1e-5


def test_bfloat16_is_read_from_ml_dtypes_and_from_bits() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    values = np.random.default_rng(0).normal(size=(2, 700)).astype(ml_dtypes.bfloat16)
    rows = LogitRows(values, is_normalized=False)
    exact = np.logaddexp.reduce(values[1].astype(np.float64))
    assert abs(rows[1].log_sum - exact) < 1e-6
    assert rows[1].value(3) == float(values[1, 3])
    assert rows[1].take([3, 5]).tolist() == values[1, [3, 5]].astype(float).tolist()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_a_torch_tensor_on_the_cpu_is_read_where_it_is(dtype: str) -> None:
    torch = pytest.importorskip("torch")
    values = torch.randn(2, 600, generator=torch.Generator().manual_seed(0))
    tensor = values.to(getattr(torch, dtype))
    row = LogitRows(tensor, is_normalized=False)[1]
    exact = float(torch.logsumexp(tensor[1].double(), 0))
    assert abs(row.log_sum - exact) < 1e-6
    tensor[1, 0] = 7.0
    assert row.value(0) == 7.0


@pytest.mark.parametrize(
    ("bad", "is_normalized", "message"),
    [
        ([0.0, math.nan, 0.0], False, "finite"),
        ([0.0, math.inf, 0.0], False, "finite"),
        ([-math.inf] * 3, False, "finite"),
        ([0.0, 0.0, 0.0], True, "sum to 1, got 3"),
        ([math.nan, 0.0, -math.inf], True, "sum to 1, got nan"),
        ([-math.inf] * 3, True, "sum to 1, got 0"),
    ],
)
def test_rows_that_are_no_distribution_are_refused(
    bad: list[float], is_normalized: bool, message: str
) -> None:
    row = LogitRow(np.array(bad, dtype=np.float32), is_normalized=is_normalized)
    with pytest.raises(ModelError, match=message):
        _ = row.log_sum


def test_unsound_logits_are_refused_by_every_driver() -> None:
    model = FunctionModel(VOCABULARY, lambda prefixes: np.full((len(prefixes), 6), np.nan))
    for call in (
        lambda: generate(model, None, Regex("[abc]+"), max_tokens=3, seed=1),
        lambda: mass(model, Regex("[abc]"), event="complete"),
        lambda: sample(model, Regex("[abc]"), event="complete", seed=1),
        lambda: score(model, ["a"]),
        lambda: Session(model).start([]),
    ):
        with pytest.raises(ModelError, match="finite"):
            call()


def definition(
    model: FunctionModel, language: Regex, decoding: Decoding, seed: int, length: int
) -> list[int]:
    """Draws tokens by the definition of a decoding rule, in float64."""
    from formalm import Constraint

    matcher = Constraint(language, VOCABULARY).matcher()
    random, found = random_numbers(seed, 0), []
    while len(found) < length and not matcher.is_finished:
        (row,) = model.next_logits([tuple(found)])
        logprobs = log_softmax(row.astype(np.float64))
        logprobs[~matcher.mask()] = -np.inf
        token_id = decoding.choose(logprobs, random)
        found.append(token_id)
        if token_id in VOCABULARY.end_token_ids:
            break
        matcher.advance(token_id)
    return found


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "decoding",
    [
        Decoding(),
        Decoding(temperature=0.6),
        Decoding(temperature=0),
        Decoding(top_k=2),
        Decoding(top_p=0.7),
        Decoding(min_p=0.2),
        Decoding(temperature=1.5, top_k=4, top_p=0.8, min_p=0.1),
    ],
    ids=str,
)
def test_a_seed_gives_the_draws_of_the_definition(dtype: str, decoding: Decoding) -> None:
    language = Regex("[abc]{1,12}")
    for seed in range(20):
        model = logits_of(seed, dtype)
        expected = definition(model, language, decoding, seed, 12)
        rules = {
            "temperature": decoding.temperature,
            "top_k": decoding.top_k,
            "top_p": decoding.top_p,
            "min_p": decoding.min_p,
        }
        found = generate(model, None, language, max_tokens=12, seed=seed, **rules)
        assert list(found.token_ids) == expected
        rows = [
            log_softmax(model.next_logits([tuple(expected[:at])])[0].astype(np.float64))
            for at in range(len(expected))
        ]
        own = [row[token] for row, token in zip(rows, expected, strict=True)]
        assert np.abs(found.logprobs - own).max() < 1e-6


def truth(model: FunctionModel, language: Regex, length: int) -> float:
    """The probability of a member, by summing over all token sequences in float64."""
    total = 0.0
    waiting: list[tuple[tuple[int, ...], float]] = [((), 0.0)]
    while waiting:
        prefix, logprob = waiting.pop()
        row = log_softmax(model.next_logits([prefix])[0].astype(np.float64))
        text = b"".join(TOKENS[token] or b"" for token in prefix)
        if language.matches(text):
            total += math.exp(logprob + row[5])
        if len(prefix) < length:
            waiting += [((*prefix, token), logprob + row[token]) for token in range(5)]
    return total


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("seed", range(6))
def test_masses_contain_the_truth(dtype: str, seed: int) -> None:
    language = Regex("[ab]{1,3}")
    model = logits_of(seed, dtype, scale=[1.0, 5.0, 20.0][seed % 3])
    found = mass(model, language, event="complete", tolerance=0)
    exact = truth(model, language, 3)
    assert found.low <= exact <= found.high
    assert found.width <= 2e-5 * max(exact, 1e-9) + 1e-15
    (own,) = score(model, ["a"], event="complete")
    whole = truth(model, Regex("a"), 1)
    assert own.marginal.low <= math.log(whole) <= own.marginal.high


@pytest.mark.parametrize("target", ["local", "posterior"])
def test_samples_report_the_log_probabilities_of_float64(target: str) -> None:
    model = logits_of(3, "float32")
    query = Query(Regex("[ab]{1,4}"), event="complete")
    for draw in sample(model, query, n=20, seed=5, target=target):
        ids = (*draw.token_ids, 5)
        rows = [
            log_softmax(model.next_logits([tuple(ids[:at])])[0].astype(np.float64))
            for at in range(len(ids))
        ]
        assert abs(draw.logprob - sum(r[t] for r, t in zip(rows, ids, strict=True))) < 1e-5


def test_replacing_next_logprobs_of_a_model_takes_effect() -> None:
    class Certain(FunctionModel):
        def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> npt.NDArray[np.float64]:
            rows = np.full((len(prefixes), 6), -np.inf)
            rows[:, 4] = 0.0
            return rows

    model = Certain(VOCABULARY, lambda prefixes: np.zeros((len(prefixes), 6)))
    found = generate(model, None, Regex("[abc]{3}"), seed=1, max_tokens=9)
    assert found.text == "ccc"
    assert found.logprob == 0.0


def test_other_threads_run_while_kernels_do() -> None:
    rows = [np.zeros(4_000_000, dtype=np.float32) for _ in range(4)]
    ticks: list[float] = []
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        inside = 0
        for _ in range(20):
            start = time.perf_counter()
            _core.log_sums(rows, False)
            end = time.perf_counter()
            inside += sum(start < one < end for one in ticks)
            if inside > 100:
                break
    finally:
        done.set()
        thread.join()
    assert inside > 100


@pytest.mark.parametrize(
    "rules",
    [
        (1.0, None, None, None),
        (0.7, None, None, None),
        (0.0, None, None, None),
        (1.0, 5, None, None),
        (1.3, None, 0.8, None),
        (1.0, None, None, 0.1),
        (0.9, 40, 0.9, 0.05),
    ],
    ids=str,
)
@pytest.mark.parametrize("ties", [False, True])
def test_a_step_on_a_device_is_that_of_the_native_kernels(
    rules: tuple[float, int | None, float | None, float | None], ties: bool
) -> None:
    torch = pytest.importorskip("torch")
    from formalm.models.transformers.device_rows import device_step

    random = np.random.default_rng(7)
    rows = random.normal(size=(24, 1000)).astype(np.float32) * 3
    rows = np.round(rows) if ties else rows
    masks = [
        None if at % 5 == 0 else random.integers(-(2**31), 2**31, 32).astype(np.int32)
        for at in range(24)
    ]
    masks[3] = np.zeros(32, dtype=np.int32)
    uniforms = random.random(24).tolist()
    expected = _core.generation_step(
        list(rows), False, 990, [None] * 24, None, masks, [], rules, uniforms
    )
    found = device_step(torch.from_numpy(rows), False, 990, masks, None, rules, uniforms)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours[0] == theirs[0]
        assert ours[5] == theirs[5] == 0
        assert np.allclose(ours[1:4], theirs[1:4], atol=2e-6, equal_nan=True)
