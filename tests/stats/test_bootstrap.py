"""Bootstrap and clustered intervals against enumeration and closed forms."""

import math
from itertools import product

import numpy as np
import pytest
from scipy import stats

from formalm import ArgumentError
from formalm.stats import bootstrap, clustered_mean


def test_percentiles_are_those_of_all_resamples() -> None:
    values = np.array([0.0, 1.0, 3.0, 7.0, 20.0])
    every = [np.mean(chosen) for chosen in product(values, repeat=5)]
    found = bootstrap(values, method="percentile", confidence=0.9, resamples=40_000, seed=2)
    assert found.value == values.mean()
    for end, level in ((found.low, 0.05), (found.high, 0.95)):
        # The drawn quantile lies between quantiles of nearly the same level.
        assert np.quantile(every, level - 0.01) <= end <= np.quantile(every, level + 0.01)


def test_bca_agrees_with_scipy() -> None:
    values = np.random.default_rng(8).exponential(size=40)
    ours = bootstrap(values, resamples=40_000)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=40_000, rng=1).confidence_interval
    assert ours.low == pytest.approx(theirs.low, abs=0.01)
    assert ours.high == pytest.approx(theirs.high, abs=0.01)


def test_pairs_stay_together() -> None:
    generator = np.random.default_rng(3)
    ability = generator.normal(0, 10, size=50)
    one, other = ability + generator.normal(0.5, 0.3, size=50), ability
    found = bootstrap(np.stack([one, other], axis=1), seed=1)
    plain = bootstrap(one - other, seed=1)
    assert (found.low, found.high) == (plain.low, plain.high)
    assert found.low > 0.3
    assert found.name == "mean difference"


def test_a_statistic_of_its_own_gets_whole_rows() -> None:
    rows = np.random.default_rng(4).normal(size=(12, 2))
    ours = bootstrap(rows, resamples=500, seed=7)
    theirs = bootstrap(rows, lambda r: float((r[:, 0] - r[:, 1]).mean()), resamples=500, seed=7)
    assert (ours.low, ours.high) == pytest.approx((theirs.low, theirs.high))
    three = np.random.default_rng(4).normal(size=(12, 3))
    with pytest.raises(ArgumentError, match="statistic must be given for rows of 3 numbers"):
        bootstrap(three)


def test_clusters_of_equal_numbers_are_one_number_each() -> None:
    values = [0.1, 0.5, 0.7, 0.2, 0.9, 0.4]
    repeated, names = [x for x in values for _ in range(5)], [i for i in range(6) for _ in range(5)]
    once, many = bootstrap(values), bootstrap(repeated, clusters=names)
    assert (once.low, once.high) == pytest.approx((many.low, many.high))
    assert many.units == 6
    assert "only" in many.notes[0]
    single, clustered = clustered_mean(values), clustered_mean(repeated, names)
    assert (single.low, single.high) == pytest.approx((clustered.low, clustered.high))
    assert clustered_mean(repeated).width < clustered.width / 2


def test_clusters_of_one_give_the_t_interval() -> None:
    values = np.random.default_rng(5).normal(3, 2, size=25)
    found = clustered_mean(values, confidence=0.9)
    half = stats.t.ppf(0.95, 24) * values.std(ddof=1) / math.sqrt(25)
    assert (found.low, found.high) == pytest.approx((values.mean() - half, values.mean() + half))
    assert found.notes == ()


def test_the_sandwich_is_what_its_formula_says() -> None:
    generator = np.random.default_rng(6)
    names = generator.integers(0, 7, size=40)
    values = generator.normal(size=40) + names
    found = clustered_mean(values, [f"template {n}" for n in names])
    mean, total = values.mean(), 0.0
    for name in set(names.tolist()):
        total += sum(x - mean for x, n in zip(values, names, strict=True) if n == name) ** 2
    error = math.sqrt(7 / 6 * total) / 40
    assert found.width == pytest.approx(2 * stats.t.ppf(0.975, 6) * error)
    assert found.units == 7


def test_intervals_of_clusters_cover() -> None:
    generator, covered, naive = np.random.default_rng(9), 0, 0
    names = np.repeat(np.arange(15), 6)
    for _ in range(1_000):
        values = generator.normal(size=15)[names] + generator.normal(size=90)
        covered += 0.0 in clustered_mean(values, names)
        naive += 0.0 in clustered_mean(values)
    assert 930 <= covered <= 975
    assert naive < 800


def test_bootstrap_intervals_cover() -> None:
    generator, covered = np.random.default_rng(10), 0
    for seed in range(400):
        covered += 1.0 in bootstrap(generator.exponential(size=60), resamples=999, seed=seed)
    assert 360 <= covered <= 395


@pytest.mark.parametrize(
    ("call", "said"),
    [(lambda: bootstrap([1.0, 1.0, 1.0]), "wilson"), (lambda: bootstrap([1.0]), "two clusters"),
     (lambda: clustered_mean([1.0, 1.0]), "wilson"),
     (lambda: clustered_mean([0.1, 0.3, 0.1, 0.3], "aabb"), "differ in their means"),
     (lambda: clustered_mean([1.0, 2.0], "a"), r"one name per value \(2\), got 1"),
     (lambda: clustered_mean([1.0, 2.0], "aa"), "two clusters"),
     (lambda: clustered_mean([1.0, 2.0], [[1], [2]]), "comparable"),
     (lambda: bootstrap([1.0, 2.0], resamples=10), "resamples"),
     (lambda: bootstrap([1.0, 2.0], method="t"), "method"),
     (lambda: bootstrap([1.0, 2.0], lambda x: math.nan), "the statistic"),
     (lambda: bootstrap([[[1.0]]]), "dimensional")],
)  # fmt: skip
def test_samples_without_spread_and_invalid_arguments_are_refused(call, said) -> None:
    with pytest.raises(ArgumentError, match=said):
        call()
