"""Permutations, sign flips and pairs against counting by hand."""

import math
from fractions import Fraction
from itertools import combinations, product
from statistics import fmean, median

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import ArgumentError
from formalm.stats import clopper_pearson, mcnemar, paired_odds_ratio, permutation, sign_flips

NUMBERS = st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=5)


def by_hand(one: list[float], other: list[float], alternative: str) -> float:
    pooled, ways = one + other, list(combinations(range(len(one) + len(other)), len(one)))

    def value(chosen: tuple[int, ...]) -> float:
        rest = [x for place, x in enumerate(pooled) if place not in chosen]
        return fmean([pooled[place] for place in chosen]) - fmean(rest)

    observed = value(tuple(range(len(one))))
    greater = sum(value(way) >= observed - 1e-9 for way in ways) / len(ways)
    less = sum(value(way) <= observed + 1e-9 for way in ways) / len(ways)
    return {"greater": greater, "less": less}.get(alternative, min(1, 2 * min(greater, less)))


@given(NUMBERS, NUMBERS, st.sampled_from(["two-sided", "greater", "less"]))
def test_permutations_are_counted(one: list[float], other: list[float], alternative: str) -> None:
    found = permutation(one, other, alternative=alternative)
    assert found.method == "exact"
    assert found.p_value == pytest.approx(by_hand(one, other, alternative))


@given(st.lists(st.integers(-20, 20).map(float), min_size=1, max_size=8))
def test_sign_flips_are_counted(differences: list[float]) -> None:
    signs = list(product((1, -1), repeat=len(differences)))
    sums = [sum(s * d for s, d in zip(sign, differences, strict=True)) for sign in signs]
    greater = sum(total >= sum(differences) for total in sums) / len(sums)
    less = sum(total <= sum(differences) for total in sums) / len(sums)
    assert sign_flips(differences, alternative="greater").p_value == greater
    assert sign_flips(differences, alternative="less").p_value == less
    assert sign_flips(differences).p_value == min(1, 2 * min(greater, less))


def test_a_margin_is_tested_from_both_sides() -> None:
    differences = [0.3, 0.25, 0.35, 0.28, 0.32, 0.31, 0.27, 0.29]
    assert sign_flips(differences).p_value == pytest.approx(2 / 2**8)
    inside = sign_flips(differences, margin=0.4)
    assert inside.p_value == 1
    beyond = sign_flips(differences, margin=0.2)
    assert beyond.p_value == pytest.approx(2 / 2**8)
    assert sign_flips([-d for d in differences], margin=0.2).p_value == beyond.p_value
    assert beyond.statistic == pytest.approx(fmean(differences))
    # Either side of the margin is a one-sided test of its own.
    shifted = sign_flips([d - 0.28 for d in differences], alternative="greater").p_value
    found = sign_flips(differences, margin=0.28)
    assert found.p_value == pytest.approx(2 * shifted)


def test_drawn_arrangements_count_the_observed_one() -> None:
    one, other = list(range(20)), list(range(100, 120))
    found = permutation(one, other, resamples=199, seed=4)
    assert found.p_value == pytest.approx(2 / 200)
    assert (found.method, found.resamples, found.seed) == ("monte carlo", 199, 4)
    flipped = sign_flips([1.0] * 30, resamples=199)
    assert flipped.p_value == pytest.approx(2 / 200)


def test_drawing_is_near_counting() -> None:
    generator = np.random.default_rng(2)
    one, other = generator.normal(size=7), generator.normal(1, size=6)
    exact = permutation(one, other)
    drawn = permutation(one, other, resamples=1_700)
    assert (exact.method, drawn.method) == ("exact", "monte carlo")
    assert abs(drawn.p_value - exact.p_value) < 8 * drawn.monte_carlo_error
    differences = generator.normal(0.3, size=12)
    exact, drawn = sign_flips(differences), sign_flips(differences, resamples=4_000)
    assert abs(drawn.p_value - exact.p_value) < 8 * drawn.monte_carlo_error


def test_any_statistic_will_do() -> None:
    one, other = [1.0, 2.0, 9.0], [3.0, 4.0, 8.0]

    def medians(first: np.ndarray, second: np.ndarray) -> float:
        return median(first) - median(second)

    found = permutation(one, other, statistic=medians, alternative="less")
    values = []
    for chosen in combinations(one + other, 3):
        rest = [x for x in one + other if x not in chosen]
        values.append(median(chosen) - median(rest))
    assert found.p_value == sum(value <= -2 for value in values) / len(values)
    with pytest.raises(ArgumentError, match="the statistic"):
        permutation(one, other, statistic=lambda a, b: float("nan"))


@pytest.mark.parametrize(("only_one", "only_other"), [(0, 0), (6, 2), (2, 6), (5, 5), (30, 12)])
def test_mcnemar_is_binomial(only_one: int, only_other: int) -> None:
    one = [True] * only_one + [False] * only_other + [True, False]
    other = [False] * only_one + [True] * only_other + [True, False]
    differ, fewer = only_one + only_other, min(only_one, only_other)
    tail = sum(Fraction(math.comb(differ, k), 2**differ) for k in range(fewer + 1))
    found = mcnemar(one, other)
    assert found.p_value == pytest.approx(float(min(1, 2 * tail)))
    assert found.statistic == only_one - only_other
    middle = 2 * tail - Fraction(math.comb(differ, fewer), 2**differ)
    assert mcnemar(one, other, method="mid-p").p_value == pytest.approx(float(min(1, middle)))


def test_mcnemar_for_large_counts() -> None:
    one, other = [True] * 40 + [False] * 22, [False] * 40 + [True] * 22
    found = mcnemar(one, other, method="asymptotic")
    assert found.p_value == pytest.approx(math.erfc(math.sqrt(18**2 / 62 / 2)))
    with pytest.raises(ArgumentError, match="at least 25 pairs must differ, got 3"):
        mcnemar([True] * 3, [False] * 3, method="asymptotic")


def test_the_odds_ratio_of_pairs_belongs_to_the_test() -> None:
    for only_one, only_other in [(6, 2), (9, 1), (10, 1), (1, 12), (0, 9), (4, 4), (9, 0)]:
        one = [True] * only_one + [False] * only_other
        other = [not right for right in one]
        ratio = paired_odds_ratio(one, other)
        assert (1 in ratio) == (mcnemar(one, other).p_value > 0.05)
        share = clopper_pearson(only_one, only_one + only_other)
        assert ratio.low == pytest.approx(share.low / (1 - share.low))
    assert paired_odds_ratio([True], [False]).high == math.inf
    with pytest.raises(ArgumentError, match="one pair must differ"):
        paired_odds_ratio([True], [True])


@pytest.mark.parametrize(
    ("call", "said"),
    [(lambda: permutation([], [1]), "empty"), (lambda: permutation([1], [math.inf]), "finite"),
     (lambda: permutation([[1]], [1]), "1-dimensional"), (lambda: permutation(1, [1]), "sequence"),
     (lambda: permutation([1], [2], alternative="up"), "alternative"),
     (lambda: sign_flips([1], margin=-1), "margin"), (lambda: sign_flips(["x"]), "numbers"),
     (lambda: mcnemar([True], [True, False]), "equally"), (lambda: mcnemar([2], [1]), "True or"),
     (lambda: mcnemar([True], [False], method="t"), "method")],
)  # fmt: skip
def test_wrong_arguments_are_refused(call, said) -> None:
    with pytest.raises(ArgumentError, match=said):
        call()
