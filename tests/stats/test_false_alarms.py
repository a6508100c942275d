"""How often tests reject what is true: 10,000 seeded trials at a level of 5 %.

Published results have compared two samples of categories by taking one of them for the truth. The
first test shows what that does; the others, that no test of ours does it.
"""

import numpy as np
import pytest
from scipy import stats

from formalm.stats import holm, homogeneity, mcnemar, permutation, sign_flips

TRIALS = 10_000
MOST, LEAST = 570, 430  # 5 % and 4.5 standard deviations or less


def samples(size: int, categories: int = 10):
    """Pairs of samples of one distribution."""
    generator = np.random.default_rng(20231)
    draws = generator.multinomial(size, np.full(categories, 1 / categories), size=(TRIALS, 2))
    yield from draws


def rejected(p_values) -> int:
    return sum(p <= 0.05 for p in p_values)


def test_one_sample_taken_for_the_truth_rejects_half_the_time() -> None:
    draws = np.array(list(samples(5_000)))
    p = stats.chisquare(draws[:, 0], f_exp=draws[:, 1], axis=1).pvalue
    assert 0.44 <= (p <= 0.05).mean() <= 0.50


@pytest.mark.parametrize("statistic", ["chi2", "g"])
def test_homogeneity_keeps_its_level(statistic: str) -> None:
    found = rejected(
        homogeneity(pair, statistic=statistic, method="asymptotic").p_value
        for pair in samples(5_000)
    )
    assert LEAST <= found <= MOST


def test_sparse_tables_keep_the_level() -> None:
    """The chi-square distribution does not hold here, so tables are drawn or counted."""
    drawn = (
        homogeneity(pair, method="monte carlo", resamples=99, seed=seed)
        for seed, pair in enumerate(samples(12, 5))
    )
    assert rejected(result.p_value for result in drawn) <= MOST
    small = [homogeneity(pair, statistic="probability") for pair in samples(8, 2)]
    assert {result.method for result in small} == {"exact"}
    assert rejected(result.p_value for result in small) <= MOST


def test_rearrangements_keep_the_level() -> None:
    generator = np.random.default_rng(20232)
    values = generator.standard_t(3, size=(TRIALS, 8))
    assert rejected(sign_flips(row).p_value for row in values) <= MOST
    assert rejected(permutation(row[:4], row[4:]).p_value for row in values) <= MOST
    # With few draws the level holds on average over seeds, so each trial has its own.
    drawn = [sign_flips(row, resamples=99, seed=seed) for seed, row in enumerate(values)]
    assert rejected(result.p_value for result in drawn) <= MOST


def test_a_margin_keeps_the_level_at_its_edge() -> None:
    values = np.random.default_rng(20233).normal(0.15, 0.1, size=(TRIALS, 8))
    found = rejected(sign_flips(row, margin=0.15).p_value for row in values)
    assert found <= MOST
    # A hypothesis of no difference at all is false here, and rejected.
    assert rejected(sign_flips(row).p_value for row in values[:1_000]) > 900


def test_pairs_keep_the_level() -> None:
    right = np.random.default_rng(20234).random((TRIALS, 2, 300)) < 0.7
    for method in ("exact", "mid-p"):
        assert rejected(mcnemar(*pair, method=method).p_value for pair in right) <= MOST
    asymptotic = rejected(mcnemar(*pair, method="asymptotic").p_value for pair in right)
    assert LEAST <= asymptotic <= MOST


def test_many_tests_have_one_level() -> None:
    """Ten true hypotheses each: how often any of them is rejected."""
    p_values = np.random.default_rng(20235).random((TRIALS, 10))
    assert rejected(holm(row).min() for row in p_values) <= MOST
    assert rejected(row.min() for row in p_values) > 3_500
