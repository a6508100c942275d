"""Adjusted p-values against the procedures they stand for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import ArgumentError
from formalm.stats import benjamini_hochberg, holm

P_VALUES = st.lists(st.integers(0, 40).map(lambda n: n / 40), min_size=1, max_size=12)
LEVELS = st.floats(0.001, 0.999)


def step_down(p_values: list[float], level: float) -> set[int]:
    """Holm's procedure: the smallest first, until one is not rejected."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    rejected: set[int] = set()
    for done, place in enumerate(order):
        if p_values[place] * (len(p_values) - done) > level:
            break
        rejected.add(place)
    return rejected


def step_up(p_values: list[float], level: float) -> set[int]:
    """Benjamini and Hochberg's procedure: the largest first, until one is rejected."""
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    for size in range(len(order), 0, -1):
        if p_values[order[size - 1]] * len(order) / size <= level:
            return set(order[:size])
    return set()


@pytest.mark.parametrize(
    ("adjust", "procedure"), [(holm, step_down), (benjamini_hochberg, step_up)]
)
@given(P_VALUES, LEVELS)
def test_an_adjusted_value_is_the_least_level_that_rejects(adjust, procedure, given, level) -> None:
    adjusted = adjust(given)
    assert {i for i, p in enumerate(adjusted) if p <= level} == procedure(given, level)
    assert all(p <= a <= 1 for p, a in zip(given, adjusted, strict=True))


@pytest.mark.parametrize("wrong", [[], [1.2], [-0.1], [float("nan")], "0.1", 0.1, [[0.1]]])
def test_invalid_p_values_are_refused(wrong) -> None:
    for adjust in (holm, benjamini_hochberg):
        with pytest.raises(ArgumentError):
            adjust(wrong)
