"""Tests of homogeneity against closed forms and against shuffling by hand."""

import math
from collections import Counter
from itertools import permutations

import numpy as np
import pytest

from formalm import ArgumentError, LimitError
from formalm.stats import homogeneity
from formalm.stats.contingency_tables import drawn_tables, every_table

SMALL = [[[3, 0], [0, 3]], [[2, 1], [1, 3]], [[2, 1, 0], [0, 1, 3]], [[2, 0], [1, 1], [0, 3]]]


def shuffled(table: list[list[int]]) -> Counter:
    """How many orders of the categories give each table, when groups keep their sizes."""
    sizes = [sum(row) for row in table]
    cards = [c for row in table for c, count in enumerate(row) for _ in range(count)]
    ways: Counter = Counter()
    for order in permutations(cards):
        rows, start = [], 0
        for size in sizes:
            hand = order[start : start + size]
            rows.append(tuple(hand.count(c) for c in range(len(table[0]))))
            start += size
        ways[tuple(rows)] += 1
    return ways


def chi_square(table) -> float:
    n, rows = sum(map(sum, table)), [sum(row) for row in table]
    columns = [sum(column) for column in zip(*table, strict=True)]
    return sum(
        (table[i][j] - r * c / n) ** 2 / (r * c / n)
        for i, r in enumerate(rows)
        for j, c in enumerate(columns)
    )


def likelihood(table) -> float:
    n, rows = sum(map(sum, table)), [sum(row) for row in table]
    columns = [sum(column) for column in zip(*table, strict=True)]
    return 2 * sum(
        cell * math.log(cell * n / (rows[i] * columns[j]))
        for i, row in enumerate(table)
        for j, cell in enumerate(row)
        if cell
    )


@pytest.mark.parametrize("table", SMALL)
@pytest.mark.parametrize("statistic", ["chi2", "g", "probability"])
def test_the_exact_p_value_counts_orders(table, statistic) -> None:
    ways = shuffled(table)
    whole, here = sum(ways.values()), tuple(map(tuple, table))

    def extreme(other) -> bool:
        if statistic == "probability":
            return ways[other] <= ways[here]
        value = chi_square if statistic == "chi2" else likelihood
        return value(other) >= value(here) - 1e-9

    found = homogeneity(table, statistic=statistic, method="exact")
    expected = sum(count for other, count in ways.items() if extreme(other)) / whole
    assert found.p_value == pytest.approx(expected, rel=1e-12)
    assert found.method == "exact"
    shown = {"chi2": chi_square, "g": likelihood, "probability": lambda t: ways[here] / whole}
    assert found.statistic == pytest.approx(shown[statistic](table))


@pytest.mark.parametrize("table", SMALL)
def test_all_tables_are_those_that_shuffling_gives(table) -> None:
    found = every_table(np.array(table), 10_000)
    listed = [tuple(map(tuple, one.tolist())) for one in found]
    assert len(set(listed)) == len(listed)
    assert set(listed) == set(shuffled(table))


def test_drawn_tables_come_as_often_as_shuffling_gives_them() -> None:
    table = SMALL[3]
    ways, draws = shuffled(table), 60_000
    counted: Counter = Counter()
    for tables in drawn_tables(np.array(table), draws, 5):
        counted.update(tuple(map(tuple, one)) for one in tables.tolist())
    assert sum(counted.values()) == draws
    for one, count in ways.items():
        share = count / sum(ways.values())
        spread = math.sqrt(draws * share * (1 - share))
        assert abs(counted[one] - draws * share) < 5 * spread


def test_the_lady_tasting_tea() -> None:
    found = homogeneity([[3, 1], [1, 3]], statistic="probability")
    assert found.p_value == pytest.approx(34 / 70)
    assert found.statistic == pytest.approx(16 / 70)


@pytest.mark.parametrize("statistic", ["chi2", "g"])
def test_p_values_of_one_and_two_degrees_have_closed_forms(statistic) -> None:
    value = {"chi2": chi_square, "g": likelihood}[statistic]
    two = [[30, 20], [25, 45]]
    found = homogeneity(two, statistic=statistic, method="asymptotic")
    assert found.statistic == pytest.approx(value(two))
    assert found.p_value == pytest.approx(math.erfc(math.sqrt(value(two) / 2)))
    three = [[30, 20, 31], [25, 45, 28]]
    found = homogeneity(three, statistic=statistic)
    assert (found.degrees, found.method) == (2, "asymptotic")
    assert found.p_value == pytest.approx(math.exp(-value(three) / 2))


def test_small_expected_counts_are_refused_or_done_otherwise() -> None:
    with pytest.raises(ArgumentError, match=r"smallest expected count .* 5 .* got 2\.5"):
        homogeneity([[3, 2], [2, 3]], method="asymptotic")
    with pytest.raises(ArgumentError, match="at most a fifth"):
        homogeneity([[3, 4, 20], [4, 3, 20]], method="asymptotic")
    with pytest.raises(ArgumentError, match="at least 1,"):
        homogeneity([[1, 0, 20, 30, 40, 50], [0, 0, 20, 30, 40, 50]], method="asymptotic")
    assert homogeneity([[3, 4, 20], [4, 3, 20]]).method == "exact"


def test_tables_too_many_to_enumerate_are_sampled() -> None:
    table = [[1] * 30 + [0] * 30, [0] * 30 + [1] * 30]
    with pytest.raises(LimitError):
        homogeneity(table, method="exact")
    found = homogeneity(table, seed=3, resamples=999)
    assert (found.method, found.resamples, found.seed) == ("monte carlo", 999, 3)
    assert found == homogeneity(table, seed=3, resamples=999)
    # All tables with these sums have the same statistic, so every draw is as extreme.
    assert found.p_value == 1


def test_drawing_is_near_counting() -> None:
    table = [[4, 1, 2], [1, 5, 3]]
    exact = homogeneity(table, method="exact").p_value
    drawn = homogeneity(table, method="monte carlo", resamples=20_000)
    assert abs(drawn.p_value - exact) < 4 * drawn.monte_carlo_error
    assert homogeneity(table, method="exact").monte_carlo_error == 0


def test_empty_columns_are_dropped_with_a_note() -> None:
    found = homogeneity([[30, 0, 20], [25, 0, 45], [0, 0, 0]])
    assert found.p_value == homogeneity([[30, 20], [25, 45]]).p_value
    assert found.notes == (
        "1 groups without counts omitted",
        "1 categories without counts omitted",
    )
    nothing = homogeneity([[5, 0], [7, 0]])
    assert nothing.p_value == 1
    assert "nothing to compare" in nothing.notes[-1]


@pytest.mark.parametrize(
    ("counts", "options", "said"),
    [([[0.5, 0.5], [0.3, 0.7]], {}, "total_variation"), ([1, 2], {}, "2-dimensional"),
     ([[1, -1], [2, 2]], {}, "nonnegative integers"), ([[1, 2], [3]], {}, "counts must be numbers"),
     ([[1, float("nan")]], {}, "must be finite"), ([["a"]], {}, "numbers"), ("ab", {}, "sequence"),
     ([[1, 2], [2, 1]], {"method": "fast"}, "method must be one of"),
     ([[1, 2], [2, 1]], {"statistic": "t"}, "statistic must be one of"),
     ([[1, 2], [2, 1]], {"seed": -1}, "seed"), ([[1, 2], [2, 1]], {"resamples": 0}, "resamples"),
     ([[1, 2], [2, 1]], {"statistic": "probability", "method": "asymptotic"}, "no asymptotic")],
)  # fmt: skip
def test_untestable_tables_are_refused(counts, options, said) -> None:
    with pytest.raises(ArgumentError, match=said):
        homogeneity(counts, **options)


def test_counts_too_large_to_sample_exceed_a_limit() -> None:
    with pytest.raises(LimitError, match="counts in all"):
        homogeneity([[10**9, 1], [10**9, 0]], method="monte carlo")
