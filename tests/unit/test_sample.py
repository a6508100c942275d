"""sample: exact, weighted and without replacement, against enumeration at fixed seeds."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    Limits,
    Query,
    Regex,
    TableModel,
    Vocabulary,
    sample,
    score,
    search,
)
from formalm.probability import distortion
from formalm.query import Decoding
from formalm.sampling import Samples
from formalm.sampling.mean_estimate import bounded_mean
from tests.support.tiny_models import AB_VOCABULARY

SEVENTEEN = Query(Regex("a+b?b?a?"), max_tokens=5, event="complete")
LONGER = Vocabulary.from_tokens(
    [b"a", b"b", b"ab", b"ba", None],
    end_token_ids=[4],
    encode=lambda text: [int(c == "b") for c in text],
)
CASES = [
    (TableModel.random(AB_VOCABULARY, seed=7, order=2), SEVENTEEN),
    (
        TableModel.random(LONGER, seed=11, order=1),
        Query(Regex("(a|b)*ab"), event="complete", max_tokens=4),
    ),
    (
        TableModel.random(LONGER, seed=12, order=3),
        Query(
            Regex("a(b|a)+"),
            given=Choice(["a", "ab"]),
            event="complete",
            max_tokens=3,
            prefix_weights={"a": 1, "ab": 2},
            decoding=Decoding(0.8, top_k=4),
        ),
    ),
]


def exact(model: TableModel, query: Query) -> dict:
    """The probability of each sequence, by listing them."""
    weights = {"a": 1 / 3, "ab": 2 / 3} if query.given is not None else {"": 1.0}
    plain = Query(
        query.language,
        given=query.given,
        max_tokens=query.max_tokens,
        decoding=query.decoding,
        event="complete",
        unique="tokens",
    )
    return {
        (hit.given, hit.token_ids): weights[hit.given] * math.exp(hit.logprob)
        for hit in search(model, plain)
    }


def keys(drawn: Samples) -> Counter:
    return Counter((one.given, one.token_ids) for one in drawn if one.logprob > -math.inf)


def fits(counts: Counter, probabilities: dict) -> bool:
    """A chi-square test at 1e-3, with cells of fewer than five expected draws put together."""
    total, count = sum(probabilities.values()), sum(counts.values())
    assert set(counts) <= set(probabilities)
    cells = [(count * p / total, counts[key]) for key, p in probabilities.items()]
    rare = [cell for cell in cells if cell[0] < 5]
    cells = [cell for cell in cells if cell[0] >= 5]
    if rare:
        cells.append(tuple(map(sum, zip(*rare, strict=True))))
    statistic = sum((seen - expected) ** 2 / expected for expected, seen in cells)
    degrees = len(cells) - 1
    # Wilson and Hilferty's approximation of the quantile.
    critical = degrees * (1 - 2 / (9 * degrees) + 3.0902 * math.sqrt(2 / (9 * degrees))) ** 3
    return statistic < critical


def test_the_example_has_seventeen_members() -> None:
    assert len(exact(*CASES[0])) == 17


@pytest.mark.parametrize("count", [4000, pytest.param(50_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("model", "query"), CASES)
def test_posterior_draws_fit_and_local_ones_do_not(
    model: TableModel, query: Query, count: int
) -> None:
    probabilities = exact(model, query)
    posterior = sample(model, query, n=count, seed=4)
    assert len(posterior) == count
    assert posterior.status == "done"
    assert fits(keys(posterior), probabilities)
    local = sample(model, query, n=count, target="local", seed=4)
    assert not fits(keys(local), probabilities)
    for one in list(posterior)[:50]:
        assert one.logprob == pytest.approx(
            math.log(probabilities[(one.given, one.token_ids)]), abs=1e-9
        )
        assert one.log_weight == 0
        assert query.effective_language.matches(one.text)


@pytest.mark.parametrize(("model", "query"), CASES)
def test_local_weights_are_without_bias(model: TableModel, query: Query) -> None:
    probabilities = exact(model, query)
    mass = math.fsum(probabilities.values())
    drawn = sample(model, query, n=20_000, target="local", seed=1)
    weights = np.exp(drawn.log_weights)
    error = weights.std() / math.sqrt(len(weights))
    assert abs(weights.mean() - mass) < 4 * error + 1e-12
    estimate = drawn.mass(0.999)
    assert estimate.low <= mass <= estimate.high
    assert estimate.value == pytest.approx(weights.mean())
    assert 0 < drawn.effective_size <= len(drawn)


def test_intervals_cover_the_truth() -> None:
    runs, size = 1000, 40
    for model, query in CASES:
        mass = math.fsum(exact(model, query).values())
        weights = np.exp(sample(model, query, n=runs * size, target="local", seed=9).log_weights)
        covered = 0
        for run in range(runs):
            low, high = bounded_mean(weights[run * size : (run + 1) * size], 0.95)
            covered += low <= mass <= high
        assert covered >= 0.93 * runs
    generator = np.random.default_rng(3)
    for p in (0.01, 0.5):
        intervals = [bounded_mean(generator.random(60) < p, 0.9) for _ in range(300)]
        assert sum(low <= p <= high for low, high in intervals) >= 0.88 * 300
        assert min(high - low for low, high in intervals) < 0.5


@pytest.mark.parametrize("runs", [200, pytest.param(1000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("target", ["posterior", "local"])
@pytest.mark.parametrize(("model", "query"), CASES)
def test_intervals_of_means_cover_the_truth(
    model: TableModel, query: Query, target: str, runs: int
) -> None:
    probabilities = exact(model, query)
    total = math.fsum(probabilities.values())
    spelled = {key: key[0] + model.vocabulary.decode(key[1]).decode() for key in probabilities}
    ends = [p for key, p in probabilities.items() if spelled[key].endswith("a")]
    truth = math.fsum(ends) / total
    size = 30
    drawn = sample(model, query, n=runs * size, target=target, seed=8)
    covered = 0
    for run in range(runs):
        part = replace(drawn, draws=drawn.draws[run * size : (run + 1) * size])
        found = part.mean(lambda text: text.endswith("a"))
        covered += found.low <= truth <= found.high
    assert covered >= 0.93 * runs


@pytest.mark.parametrize("runs", [250, pytest.param(1500, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("model", "query"), CASES)
def test_without_replacement_nothing_comes_twice(
    model: TableModel, query: Query, runs: int
) -> None:
    probabilities = exact(model, query)
    mass = math.fsum(probabilities.values())
    everything = sample(model, query, n=10_000, target="without_replacement", seed=1)
    assert everything.status == "exhausted"
    assert set(keys(everything)) == set(probabilities)
    assert max(keys(everything).values()) == 1
    assert np.exp(everything.log_weights).sum() == pytest.approx(mass, abs=1e-12)
    estimates = []
    first: Counter = Counter()
    for seed in range(runs):
        drawn = sample(model, query, n=3, target="without_replacement", seed=seed)
        assert max(keys(drawn).values()) == 1
        estimates.append(float(np.exp(drawn.log_weights).sum()))
        first[(drawn[0].given, drawn[0].token_ids)] += 1
    error = np.std(estimates) / math.sqrt(len(estimates))
    assert abs(np.mean(estimates) - mass) < 4 * error
    assert fits(first, probabilities)


@pytest.mark.parametrize("target", ["local", "posterior", "without_replacement"])
def test_the_batch_size_does_not_change_the_result(target: str) -> None:
    for model, query in CASES:
        one, many = (
            sample(model, query, n=10, target=target, seed=5, batch_size=size) for size in (1, 64)
        )
        assert one.draws == many.draws
        assert sample(model, query, n=10, target=target, seed=6).draws != many.draws


def test_the_first_draws_stay_the_first() -> None:
    model, query = CASES[0]
    for target in ("local", "posterior"):
        few, more = (sample(model, query, n=n, target=target, seed=2) for n in (3, 90))
        assert few.draws == more.draws[:3]


def test_dead_ends_are_evaluated_once() -> None:
    rare = TableModel(AB_VOCABULARY, {}, default=[0.01, 0.98, 0.01])
    drawn = sample(rare, ["aa"], event="complete", n=500, seed=1)
    assert {one.text for one in drawn} == {"aa"}
    assert drawn.forwards <= 4
    assert drawn.attempts < 500 + 64 * 4
    never = TableModel(AB_VOCABULARY, {}, default=[0.5, 0.5, 0.0])
    for target in ("posterior", "without_replacement"):
        nothing = sample(never, ["ab"], event="complete", n=5, target=target, seed=1)
        assert (len(nothing), nothing.status) == (0, "exhausted")
    dead = sample(never, ["ab"], event="complete", n=5, target="local", seed=1)
    assert dead.mass().value == 0.0
    assert {one.logprob for one in dead} == {-math.inf}


def test_uniform_draws_leave_the_model_out() -> None:
    model = TableModel.random(LONGER, seed=11, order=1)
    texts = [left + right for left in ("", "a", "ab", "abb") for right in ("", "a", "aa") if left]
    drawn = sample(model, texts, n=4000, target="uniform", seed=1)
    assert drawn.status == "done"
    counts = Counter(one.text for one in drawn)
    assert fits(counts, dict.fromkeys(set(texts), 1.0))
    scores = {one.text: one for one in score(model, sorted(set(texts)), event="complete")}
    for one in drawn[:100]:
        assert one.log_weight == 0
        assert one.token_ids == scores[one.text].token_ids
        assert one.logprob == pytest.approx(scores[one.text].logprob, abs=1e-9)
    found = drawn.mean(lambda text: text.startswith("ab"), 0.999)
    assert found.low <= 6 / 9 <= found.high
    few = sample(model, texts, n=7, target="uniform", seed=1, batch_size=1)
    assert few.draws == drawn.draws[:7]


def test_uniform_draws_continue_given() -> None:
    # The cells of the published example: each beginning alike, whatever goes on from it.
    model = TableModel.random(LONGER, seed=3, order=1)
    query = Query(Regex("(a|b{1,3})a?"), given=Regex("a|b{1,3}"), event="complete")
    drawn = sample(model, query, n=8000, target="uniform", seed=2)
    counts = Counter((one.given, one.text) for one in drawn)
    expected = {}
    for given in ("a", "b", "bb", "bbb"):
        every = ("a", "aa", "b", "ba", "bb", "bba", "bbb", "bbba")
        members = [text for text in every if text.startswith(given)]
        expected |= {(given, text): 1 / 4 / len(members) for text in members}
    assert fits(counts, expected)
    weighed = replace(query, prefix_weights={"a": 3, "b": 1, "bb": 0, "bbb": 0})
    counts = Counter(one.given for one in sample(model, weighed, n=4000, target="uniform", seed=2))
    assert fits(counts, {"a": 0.75, "b": 0.25})


def test_prefixes_are_drawn_uniformly_however_many_continuations_they_have() -> None:
    model = TableModel.random(LONGER, seed=3, order=1)
    query = Query(Regex("(a|b{1,3})a?"), given=Regex("a|b{1,3}"), event="complete")
    for weights, shares in (
        ("strings", dict.fromkeys(("a", "b", "bb", "bbb"), 0.25)),
        ({"a": 4, "b": 3, "bb": 2, "bbb": 1}, {"a": 0.4, "b": 0.3, "bb": 0.2, "bbb": 0.1}),
    ):
        asked = replace(query, prefix_weights=weights)
        drawn = sample(model, asked, n=8000, target="local", seed=5)
        assert fits(Counter(one.given for one in drawn), shares)


def test_uniform_draws_without_probability_or_room() -> None:
    model = TableModel(LONGER, {}, default=[0.5, 0.0, 0.2, 0.2, 0.1], context_length=2)
    drawn = sample(model, ["a", "b", "aaa"], n=60, target="uniform", seed=1)
    assert (drawn.status, drawn.truncated_by) == ("truncated", "context")
    assert {one.text for one in drawn} == {"a", "b"}
    assert {one.logprob for one in drawn if one.text == "b"} == {-math.inf}
    cut = sample(model, ["a", "b"], n=60, target="uniform", seed=1, limits=Limits(forwards=1))
    assert (len(cut), cut.truncated_by, cut.forwards) == (0, "forwards", 1)
    best = Query(["aa", "ab"], decoding=Decoding(top_k=1))
    logprobs = {
        one.text: one.logprob for one in sample(model, best, n=20, target="uniform", seed=1)
    }
    assert logprobs["ab"] == -math.inf
    with pytest.raises(ArgumentError, match="target='uniform' requires a finite language, got an"):
        sample(model, Regex("a*"), n=3, target="uniform")
    with pytest.raises(ArgumentError, match="max_tokens"):
        sample(model, Query(Regex("a"), max_tokens=3), n=3, target="uniform")


def test_limits_and_context() -> None:
    model = TableModel(AB_VOCABULARY, {}, default=[0.5, 0.4, 0.1], context_length=3)
    drawn = sample(model, Regex("[ab]*"), event="complete", n=50, seed=1)
    assert drawn.truncated_by == "context"
    assert max(len(one.token_ids) for one in drawn) <= 3
    cut = sample(
        model,
        Regex("[ab]*"),
        event="complete",
        n=5000,
        seed=1,
        limits=Limits(forwards=5),
        batch_size=1,
    )
    assert cut.status == "done" or cut.truncated_by == "forwards"
    assert cut.forwards <= 5


def test_means() -> None:
    model, query = CASES[0]
    probabilities = exact(model, query)
    mass = math.fsum(probabilities.values())
    truth = sum(p for (_, ids), p in probabilities.items() if ids[-1] == 0) / mass
    for target in ("local", "posterior"):
        drawn = sample(model, query, n=3000, target=target, seed=3)
        found = drawn.mean(lambda text: text.endswith("a"), 0.999)
        assert found.low <= truth <= found.high
        assert found.high - found.low < 0.2
        with pytest.raises(ArgumentError, match="from 0 to 1"):
            drawn.mean(len)
        with pytest.raises(ArgumentError, match="confidence"):
            drawn.mean(lambda text: 0.5, 2)
    with pytest.raises(ArgumentError, match="require target='local'"):
        sample(model, query, n=3, seed=1).mass()


@pytest.mark.parametrize(
    "options",
    [
        {"target": "uniform"},
        {"n": 0},
        {"seed": -1},
        {"batch_size": 0},
        {"limits": Limits(hits=1)},
        {"query": Query(Regex("a"), event="prefix"), "target": "uniform"},
        {"query": Query(Regex("a"), event="complete", unique="tokens")},
        {"query": Query(Regex("a"), given="a", event="complete", prefix_cost="joint")},
    ],
)
def test_wrong_options_are_refused(options: dict) -> None:
    query = options.pop("query", SEVENTEEN)
    with pytest.raises(ArgumentError):
        sample(CASES[0][0], query, **{"n": 2, **options})


@pytest.mark.parametrize("target", ["posterior", "local"])
def test_wrong_means_are_refused(target: str) -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    drawn = sample(
        TableModel.random(vocabulary, seed=1),
        Regex("a|b"),
        event="complete",
        n=5,
        target=target,
        seed=1,
    )
    for function in (str, lambda _: None, lambda _: 2, lambda _: math.nan, lambda _: [1]):
        with pytest.raises(ArgumentError, match="values from 0 to 1, got"):
            drawn.mean(function)
    with pytest.raises(
        ArgumentError, match="function must be a callable that takes a string, got 'a'"
    ):
        drawn.mean("a")
    for confidence in ("a", None, True, 5, 0, math.nan):
        with pytest.raises(ArgumentError, match=f"confidence .*got {confidence!r}"):
            drawn.mean(lambda _: 1, confidence=confidence)
    assert drawn.mean(lambda text: text == "a").high <= 1
    with pytest.raises(ArgumentError, match=r"confidence .*got 5"):
        distortion(
            TableModel.random(vocabulary, seed=1), Regex("a|b"), event="complete", confidence=5
        )
