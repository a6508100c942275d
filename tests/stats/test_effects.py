"""Effect sizes against their formulas, and intervals against simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import ArgumentError
from formalm.probability import Interval
from formalm.stats import (
    counted_jensen_shannon,
    counted_log_odds_ratio,
    counted_total_variation,
    cramers_v,
    jensen_shannon,
    log_odds_ratio,
    log_ratio,
    total_variation,
)

WEIGHTS = st.lists(st.floats(0, 1), min_size=2, max_size=5).filter(lambda w: sum(w) > 0.1)


def kullback(p: np.ndarray, q: np.ndarray) -> float:
    with np.errstate(divide="ignore"):
        return float(sum(a * np.log(a / b) for a, b in zip(p, q, strict=True) if a > 0))


@given(st.integers(2, 6), st.integers(0, 10**6))
def test_distances_are_their_definitions(size: int, seed: int) -> None:
    p, q = np.random.default_rng(seed).dirichlet(np.full(size, 0.5), size=2)
    events = [sum(p[i] - q[i] for i in range(size) if e >> i & 1) for e in range(2**size)]
    assert total_variation(p, q).value == pytest.approx(max(events), abs=1e-12)
    middle = (p + q) / 2
    divergence = (kullback(p, middle) + kullback(q, middle)) / 2
    found = jensen_shannon(p, q)
    assert found.value == pytest.approx(divergence, abs=1e-12)
    assert (found.coverage, found.confidence, found.width) == ("exact", 1, 0)
    # What the interval of counts rests on.
    assert found.value <= math.log(2) / 2 * kullback(p, q) + 1e-12


@given(st.integers(2, 5), st.integers(0, 10**6), st.floats(0, 0.3))
def test_bounds_of_probabilities_give_bounds_of_distances(size, seed, wide) -> None:
    generator = np.random.default_rng(seed)
    truths = generator.dirichlet(np.ones(size), size=2)
    below, above = generator.uniform(0, wide, size=(2, 2, size))
    boxes = [
        [Interval(max(0.0, p - a), min(1.0, p + b)) for p, a, b in zip(*row, strict=True)]
        for row in zip(truths, below, above, strict=True)
    ]
    for distance in (total_variation, jensen_shannon):
        found = distance(*boxes)
        assert found.low - 1e-12 <= distance(*truths).value <= found.high + 1e-12
        assert found.low <= found.value <= found.high
    for ratio in (log_ratio, log_odds_ratio):
        found = ratio(boxes[0][0], boxes[1][0])
        truth = ratio(truths[0][0], truths[1][0]).value
        assert found.low - 1e-9 <= truth <= found.high + 1e-9


def test_ratios() -> None:
    assert log_ratio(0.3, 0.1).value == pytest.approx(math.log(3))
    assert log_odds_ratio(0.3, 0.1).value == pytest.approx(math.log((3 / 7) / (1 / 9)))
    assert log_ratio(0.0, 0.1).value == -math.inf
    assert log_odds_ratio(1.0, 0.1).value == math.inf
    bounds = log_ratio((0.0, 0.5), (0.0, 0.5))
    assert (bounds.low, bounds.high) == (-math.inf, math.inf)
    assert math.isnan(bounds.value)
    for ratio in (log_ratio, log_odds_ratio):
        with pytest.raises(ArgumentError, match="is undefined"):
            ratio(0.0, 0.0)


def trials(generator: np.random.Generator, p, q, size: int, number: int):
    return zip(
        generator.multinomial(size, p, size=number),
        generator.multinomial(size, q, size=number),
        strict=True,
    )


@pytest.mark.parametrize("size", [3, 30, 1_000])
@pytest.mark.parametrize("equal", [True, False])
def test_guaranteed_intervals_cover_at_every_size(size: int, equal: bool) -> None:
    p, q = [0.6, 0.3, 0.1, 0.0], [0.6, 0.3, 0.1, 0.0] if equal else [0.2, 0.2, 0.2, 0.4]
    truth = {f: f(p, q).value for f in (total_variation, jensen_shannon)}
    missed = [0, 0]
    for one, other in trials(np.random.default_rng(size), p, q, size, 500):
        missed[0] += truth[total_variation] not in counted_total_variation(one, other)
        missed[1] += truth[jensen_shannon] not in counted_jensen_shannon(one, other)
    assert max(missed) <= 25


@pytest.mark.parametrize("equal", [True, False])
def test_intervals_of_v_and_odds_cover(equal: bool) -> None:
    p, q = [0.6, 0.4], [0.6, 0.4] if equal else [0.4, 0.6]
    middle = (np.array(p) + q) / 2
    effect = math.sqrt(sum((np.array(p) - middle) ** 2 / middle))
    odds = log_odds_ratio(p[0], q[0]).value
    covered = np.zeros(2)
    for one, other in trials(np.random.default_rng(1), p, q, 200, 1_000):
        covered[0] += effect in cramers_v([one, other])
        covered[1] += odds in counted_log_odds_ratio([one, other])
    # With no effect an interval cannot lie below it, so only half of the level is used up.
    assert (940 if equal else 925) <= covered[0] <= 990
    assert 930 <= covered[1] <= 970


def test_v_is_what_its_formula_says() -> None:
    table = [[10, 20, 30], [30, 20, 10]]
    plain = cramers_v(table, corrected=False)
    assert plain.value == pytest.approx(math.sqrt(20 / 120))
    corrected = cramers_v(table)
    assert corrected.value == pytest.approx(math.sqrt((20 - 2) / 120))
    assert (corrected.low, corrected.high) == (plain.low, plain.high)
    assert plain.low < corrected.value < plain.value < plain.high
    perfect = cramers_v([[50, 0], [0, 50]], corrected=False)
    assert perfect.value == perfect.high == 1
    nothing = cramers_v([[50, 50], [50, 50]])
    assert (nothing.value, nothing.low) == (0, 0)
    assert nothing.high > 0


def test_the_odds_ratio_of_counts() -> None:
    found = counted_log_odds_ratio([[9, 1], [0, 10]], confidence=0.9)
    value = math.log(9.5 * 10.5 / (1.5 * 0.5))
    half = 1.6448536269514722 * math.sqrt(1 / 9.5 + 1 / 1.5 + 1 / 0.5 + 1 / 10.5)
    assert (found.value, found.low) == pytest.approx((value, value - half))


def test_one_category_has_no_distance() -> None:
    found = counted_total_variation([5], [7])
    assert (found.value, found.low, found.high) == (0, 0, 0)
    assert counted_jensen_shannon([5], [7]).high == 0


@pytest.mark.parametrize(
    ("call", "said"),
    [(lambda: total_variation([0.5, 0.4], [0.5, 0.5]), "sum to 1, got 0.9"),
     (lambda: total_variation([5, 4], [0.5, 0.5]), "probabilities from 0 to 1"),
     (lambda: total_variation([1.0], [0.5, 0.5]), "categories"),
     (lambda: total_variation([(0.6, 0.4)] * 2, [0.5, 0.5]), "lower bound above"),
     (lambda: total_variation([(0.1, 0.2)] * 2, [0.5, 0.5]), r"sum to 1, got 0.2 … 0.4"),
     (lambda: log_ratio("a", 0.1), "numbers"), (lambda: log_ratio(2, 0.1), "probabilities"),
     (lambda: counted_total_variation([0, 0], [1, 1]), "must have counts"),
     (lambda: counted_total_variation([1, 2], [1]), "categories"),
     (lambda: counted_jensen_shannon([0.5, 0.5], [1, 1]), "nonnegative integers"),
     (lambda: cramers_v([[1, 2]]), "two groups"), (lambda: cramers_v([[1, 0], [2, 0]]), "empty"),
     (lambda: counted_log_odds_ratio([[1, 2, 3], [1, 2, 3]]), "2×2")],
)  # fmt: skip
def test_wrong_arguments_are_refused(call, said) -> None:
    with pytest.raises(ArgumentError, match=said):
        call()
