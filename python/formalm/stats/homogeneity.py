"""Tests of homogeneity: whether groups of counts come from one distribution."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from formalm.errors import ArgumentError, LimitError
from formalm.stats.argument_checks import (
    Floats,
    Integers,
    checked_choice,
    checked_counts,
    checked_integer,
    scipy_part,
)
from formalm.stats.contingency_tables import drawn_tables, every_table, log_factorials
from formalm.stats.statistic_results import Significance

__all__ = ["expected_counts", "homogeneity"]

NAMES = {"chi2": "chi-square", "g": "G", "probability": "Fisher-Freeman-Halton"}
METHODS = ("auto", "asymptotic", "exact", "monte carlo")
RELATIVE = 1e-9


def homogeneity(
    counts: Iterable[Iterable[int]],
    *,
    statistic: str = "chi2",
    method: str = "auto",
    resamples: int = 9_999,
    seed: int = 0,
    table_limit: int = 200_000,
) -> Significance:
    """Tests whether several samples of categories come from one distribution.

    All samples are treated as random. A test of one sample against the frequencies of another, as
    if those were known probabilities, rejects true hypotheses too often: with two equally large
    samples of ten categories, nearly half of the time at a level of 5%.

    Parameters
    ----------
    counts
        ``(groups, categories)`` integers: how often each group had each category. Draws must be
        independent: counts of exact probabilities or of correlated texts are not a sample.
    statistic
        ``"chi2"`` (Pearson), ``"g"`` (likelihood ratio) or ``"probability"`` (of the table:
        Fisher's test for two groups and two categories).
    method
        ``"asymptotic"``: the chi-square distribution, refused if expected counts are too small.
        ``"exact"``: enumerates all tables with the same margins. ``"monte carlo"``: draws tables
        with the same margins. ``"auto"``: the first of them that is possible.
    resamples, seed
        For ``"monte carlo"``.
    table_limit
        For ``"exact"``: maximum number of tables.

    Returns
    -------
    Significance
        Empty categories and groups without counts are omitted, with a note.

    Raises
    ------
    ArgumentError
        If expected counts are too small for ``"asymptotic"``, with the numbers.
    LimitError
        If there are more tables than ``table_limit``.

    Notes
    -----
    The rule for expected counts is Cochran's: none below 1 and at most a fifth below 5; in a
    two-by-two table none below 5.

    Examples
    --------
    >>> from formalm.stats import homogeneity
    >>> print(homogeneity([[30, 20], [20, 30]]))
    chi-square: 4, p = 0.0455 (asymptotic)
    >>> print(homogeneity([[3, 0], [0, 3]], statistic="probability"))
    Fisher-Freeman-Halton: 0.05, p = 0.1 (exact)
    """
    checked_choice("statistic", statistic, tuple(NAMES))
    checked_choice("method", method, METHODS)
    checked_integer("resamples", resamples, 1)
    checked_integer("seed", seed, 0)
    checked_integer("table_limit", table_limit, 1)
    checked = checked_counts("counts", counts, 2)
    if not checked.any():
        raise ArgumentError("counts must not all be 0")
    table, notes = _without_empty(checked)
    if statistic == "probability" and method == "asymptotic":
        raise ArgumentError("the table probability has no asymptotic distribution")
    degrees = (table.shape[0] - 1) * (table.shape[1] - 1)
    if not degrees:
        notes = (
            *notes,
            "fewer than two groups or categories have counts, so there is nothing to compare",
        )
        return Significance(NAMES[statistic], 0.0, 1.0, 0, "exact", notes=notes)
    cells = _cells(statistic, expected_counts(table))
    observed = float(cells(table[None])[0])
    too_small = _too_small(expected_counts(table))
    if method == "asymptotic" and too_small:
        raise ArgumentError(too_small, hint="method='auto' uses an exact test in this case")
    if method in ("auto", "asymptotic") and not too_small and statistic != "probability":
        p = float(scipy_part("special").chdtrc(degrees, observed))
        return Significance(NAMES[statistic], observed, p, degrees, "asymptotic", notes=notes)
    shown = observed if statistic != "probability" else float(np.exp(_log_probability(table)))
    least = observed - RELATIVE * max(1.0, abs(observed))
    if method != "monte carlo":
        try:
            p = _exact(table, cells, least, table_limit)
            return Significance(NAMES[statistic], shown, p, degrees, "exact", notes=notes)
        except LimitError:
            if method == "exact":
                raise
    drawn = drawn_tables(table, resamples, seed)
    extreme = sum(int((cells(tables) >= least).sum()) for tables in drawn)
    p = (1 + extreme) / (resamples + 1)
    return Significance(NAMES[statistic], shown, p, degrees, "monte carlo", resamples, seed, notes)


def expected_counts(counts: Integers) -> Floats:
    """Returns the expected count of each cell if all groups had one distribution."""
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    expected: Floats = np.outer(rows, columns) / counts.sum()
    return expected


def _cells(statistic: str, expected: Floats) -> Callable[[Integers], Floats]:
    """Returns the statistic of each table ``(tables, groups, categories)``; larger is rarer."""

    def chi2(tables: Integers) -> Floats:
        found: Floats = ((tables - expected) ** 2 / expected).sum(axis=(1, 2))
        return found

    def likelihood(tables: Integers) -> Floats:
        ratio = np.log(np.maximum(tables, 1) / expected)
        found: Floats = 2 * (tables * ratio).sum(axis=(1, 2))
        return found

    def improbability(tables: Integers) -> Floats:
        found: Floats = log_factorials(tables).sum(axis=(1, 2))
        return found

    return {"chi2": chi2, "g": likelihood, "probability": improbability}[statistic]


def _exact(table: Integers, cells: Callable[[Integers], Floats], least: float, limit: int) -> float:
    tables = every_table(table, limit)
    weights = -log_factorials(tables).sum(axis=(1, 2))
    shares = np.exp(weights - weights.max())
    return float(min(1.0, shares[cells(tables) >= least].sum() / shares.sum()))


def _log_probability(table: Integers) -> float:
    """Returns the log-probability of this table among all with its margins."""
    margins = [*table.sum(axis=0), *table.sum(axis=1)]
    whole = log_factorials(table.sum())
    inside = log_factorials(table).sum()
    return float(log_factorials(np.array(margins)).sum() - whole - inside)


def _too_small(expected: Floats) -> str | None:
    """Returns why expected counts rule out the chi-square distribution, or None."""
    least, below = float(expected.min()), int((expected < 5).sum())
    if expected.shape == (2, 2):
        if below:
            return (
                f"the smallest expected count must be at least 5 for a 2×2 table, got {least:.3g}"
            )
        return None
    if least < 1:
        return f"the smallest expected count must be at least 1, got {least:.3g}"
    if below > expected.size / 5:
        return (
            f"at most a fifth of the expected counts may be below 5, got {below} of {expected.size}"
        )
    return None


def _without_empty(counts: Integers) -> tuple[Integers, tuple[str, ...]]:
    rows, columns = counts.sum(axis=1) > 0, counts.sum(axis=0) > 0
    notes = []
    for kept, what in ((rows, "groups"), (columns, "categories")):
        if not kept.all():
            notes.append(f"{int((~kept).sum())} {what} without counts omitted")
    return counts[rows][:, columns], tuple(notes)
