"""Power against exact sums and simulation, and the effects that invert it."""

import math

import numpy as np
import pytest
from scipy import stats

from formalm import ArgumentError
from formalm.stats import (
    detectable_association,
    detectable_difference,
    detectable_mean,
    homogeneity,
    power_of_association,
    power_of_difference,
    power_of_mean,
)


def exact_power(p: float, q: float, n: int, m: int) -> float:
    """The probability of all pairs of counts that the chi-square test rejects."""
    one, other = np.arange(n + 1)[:, None], np.arange(m + 1)[None]
    pooled = (one + other) / (n + m)
    with np.errstate(invalid="ignore"):
        z = (one / n - other / m) / np.sqrt(pooled * (1 - pooled) * (1 / n + 1 / m))
    rejected = np.abs(np.nan_to_num(z)) > 1.959963984540054
    weights = stats.binom.pmf(one, n, p) * stats.binom.pmf(other, m, q)
    return float((weights * rejected).sum())


@pytest.mark.parametrize(
    ("p", "q", "n", "m"),
    [(0.5, 0.6, 150, 150), (0.3, 0.3, 100, 100), (0.1, 0.2, 90, 180), (0.8, 0.5, 60, 40)],
)
def test_the_power_for_proportions_is_near_the_exact_one(p, q, n, m) -> None:
    assert abs(power_of_difference(p, q, n, other_trials=m) - exact_power(p, q, n, m)) < 0.02


def test_certain_proportions() -> None:
    assert power_of_difference(0, 1, 10) == 1
    assert power_of_difference(0, 0, 10) == 0
    assert power_of_difference(1, 1, 10) == 0


@pytest.mark.parametrize(("effect", "units"), [(0.0, 5), (0.5, 10), (-1.0, 6), (0.2, 200)])
def test_the_power_for_means_is_what_simulation_finds(effect: float, units: int) -> None:
    values = np.random.default_rng(units).normal(effect, 1, size=(40_000, units))
    t = values.mean(axis=1) / (values.std(axis=1, ddof=1) / math.sqrt(units))
    found = float((np.abs(t) > stats.t.ppf(0.975, units - 1)).mean())
    assert abs(power_of_mean(effect, units) - found) < 0.012


@pytest.mark.parametrize("degrees", [1, 2, 9, 100])
@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
def test_the_power_for_means_agrees_with_scipy(degrees: int, shift: float) -> None:
    units, critical = degrees + 1, stats.t.ppf(0.975, degrees)
    effect = shift / math.sqrt(units)
    theirs = stats.nct.sf(critical, degrees, shift) + stats.nct.cdf(-critical, degrees, shift)
    assert power_of_mean(effect, units) == pytest.approx(theirs, abs=1e-8)


def test_the_power_for_tables_is_what_simulation_finds() -> None:
    p, q, size = np.array([0.4, 0.3, 0.3]), np.array([0.3, 0.3, 0.4]), 150
    middle = (p + q) / 2
    effect = math.sqrt(float(((p - middle) ** 2 / middle).sum()))
    generator, found = np.random.default_rng(3), 0
    for _ in range(2_000):
        table = [generator.multinomial(size, p), generator.multinomial(size, q)]
        found += homogeneity(table, method="asymptotic").p_value <= 0.05
    assert abs(power_of_association(effect, 2 * size, 2) - found / 2_000) < 0.04
    assert power_of_association(0.0, 100, 3, level=0.1) == pytest.approx(0.1)


def test_detectable_effects_have_the_power_asked_for() -> None:
    for power in (0.5, 0.8, 0.99):
        more = detectable_difference(0.2, 300, power=power)
        assert power_of_difference(0.2, 0.2 + more, 300) == pytest.approx(power, abs=1e-6)
        for units in (2, 3, 10, 1_000):
            size = detectable_mean(units, power=power)
            assert power_of_mean(size, units) == pytest.approx(power, abs=1e-6)
        w = detectable_association(10_000, 9, power=power)
        assert power_of_association(w, 10_000, 9) == pytest.approx(power, abs=1e-6)


def test_effects_that_no_sample_size_detects_are_reported() -> None:
    with pytest.raises(ArgumentError, match=r"no effect reaches a power of 0\.8"):
        detectable_difference(0.9, 5)
    with pytest.raises(ArgumentError, match="must be above level"):
        detectable_mean(5, power=0.05)
    for call in (
        lambda: power_of_mean(0.5, 1),
        lambda: power_of_difference(1.5, 0.5, 10),
        lambda: power_of_association(-0.1, 10, 1),
        lambda: power_of_association(0.1, 10, 0),
        lambda: detectable_mean(5, level=0),
    ):
        with pytest.raises(ArgumentError):
            call()
