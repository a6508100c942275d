"""Intervals of proportions against their definitions, in exact arithmetic."""

import math
from fractions import Fraction
from statistics import NormalDist

import pytest

from formalm import ArgumentError
from formalm.stats import clopper_pearson, wilson

CASES = [(0, 1), (1, 1), (0, 7), (3, 7), (7, 7), (1, 100), (40, 90), (99, 100)]


def probability(hits: int, trials: int, p: Fraction) -> Fraction:
    return math.comb(trials, hits) * p**hits * (1 - p) ** (trials - hits)


@pytest.mark.parametrize(("hits", "trials"), CASES)
@pytest.mark.parametrize("confidence", [0.8, 0.95, 0.999])
def test_an_end_of_clopper_pearson_leaves_half_the_level_in_a_binomial_tail(
    hits: int, trials: int, confidence: float
) -> None:
    found = clopper_pearson(hits, trials, confidence=confidence)
    tail = (1 - confidence) / 2
    low, high = Fraction(found.low), Fraction(found.high)
    above = float(sum(probability(k, trials, low) for k in range(hits, trials + 1)))
    below = float(sum(probability(k, trials, high) for k in range(hits + 1)))
    assert found.low == 0 if hits == 0 else above == pytest.approx(tail, rel=1e-9)
    assert found.high == 1 if hits == trials else below == pytest.approx(tail, rel=1e-9)


def test_clopper_pearson_covers_every_proportion() -> None:
    for trials in (5, 20):
        intervals = [clopper_pearson(k, trials, confidence=0.9) for k in range(trials + 1)]
        for p in [Fraction(n, 200) for n in range(201)]:
            covered = sum(
                probability(k, trials, p) for k, found in enumerate(intervals) if float(p) in found
            )
            assert covered >= Fraction(9, 10)


@pytest.mark.parametrize(("hits", "trials"), CASES)
def test_the_ends_of_wilson_are_where_the_score_test_rejects(hits: int, trials: int) -> None:
    found = wilson(hits, trials, confidence=0.9)
    z, share = NormalDist().inv_cdf(0.95), hits / trials
    for end in (found.low, found.high):
        if 0 < end < 1:
            score = abs(share - end) / math.sqrt(end * (1 - end) / trials)
            assert score == pytest.approx(z, rel=1e-9)
    assert found.low == 0 if hits == 0 else found.low > 0
    assert found.high == 1 if hits == trials else found.high < 1
    assert found.value == share
    assert found.width > 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [((3, 2), r"trials \(2\), got 3"), ((-1, 2), "successes"), ((0, 0), "trials"),
     ((1.5, 2), "successes"), ((True, 2), "successes")],
)  # fmt: skip
@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_invalid_proportions_are_refused(interval, arguments, said) -> None:
    with pytest.raises(ArgumentError, match=said):
        interval(*arguments)
    for confidence in (0, 1, float("nan"), "0.9"):
        with pytest.raises(ArgumentError, match="confidence"):
            interval(1, 2, confidence=confidence)
