"""Contingency tables with given margins: enumeration and random draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from formalm.errors import LimitError
from formalm.stats.argument_checks import Floats, Integers, scipy_part

__all__ = ["drawn_tables", "every_table", "log_factorials"]

CELLS = 4_000_000  # of the tables that are held at once
MOST_DRAWN = 10**9  # what NumPy's hypergeometric distribution takes
HINT = "use method='monte carlo', which samples tables"


def log_factorials(counts: Integers) -> Floats:
    """Returns the logarithm of each number's factorial."""
    found: Floats = scipy_part("special").gammaln(counts + 1.0)
    return found


def every_table(table: Integers, limit: int) -> Integers:
    """Returns all tables with the row and column sums of one, ``(tables, rows, columns)``.

    Raises
    ------
    LimitError
        If more than ``limit`` candidates would be examined, some of which are not valid tables.
    """
    if table.shape[0] > table.shape[1]:
        turned: Integers = every_table(table.T, limit).swapaxes(1, 2)
        return turned
    rows = table.sum(axis=1)
    # The largest column comes last, where nothing is left to choose.
    order = np.argsort(table.sum(axis=0), kind="stable")
    left, found = rows[None], np.zeros((1, len(rows), 0), dtype=np.int64)
    for total in table.sum(axis=0)[order[:-1]]:
        ways = math.comb(int(total) + len(rows) - 1, len(rows) - 1)
        if len(left) * ways > limit:
            raise LimitError("candidates for tables", len(left) * ways, limit, HINT)
        parts = _divisions(int(total), len(rows))
        rest = left[:, None, :] - parts[None]
        kept, way = np.nonzero((rest >= 0).all(axis=2))
        left = rest[kept, way]
        found = np.concatenate([found[kept], parts[way][:, :, None]], axis=2)
    whole = np.concatenate([found, left[:, :, None]], axis=2)
    tables: Integers = whole[:, :, np.argsort(order)]
    return tables


def _divisions(total: int, parts: int) -> Integers:
    """Returns all ways to write a number as a sum of nonnegative parts, ``(ways, parts)``."""
    bars = np.array(list(combinations(range(total + parts - 1), parts - 1)), dtype=np.int64)
    bars = bars.reshape(-1, parts - 1)
    ends = np.full((len(bars), 1), total + parts - 1)
    return np.diff(np.concatenate([np.full_like(ends, -1), bars, ends], axis=1), axis=1) - 1


def drawn_tables(table: Integers, number: int, seed: int) -> Iterator[Integers]:
    """Yields tables with the margins of one, as from shuffling, ``(some, rows, columns)`` at a
    time.

    Raises
    ------
    LimitError
        If the counts add up to 10⁹ or more.
    """
    if table.sum() >= MOST_DRAWN:
        raise LimitError(
            "counts in all", int(table.sum()), MOST_DRAWN - 1, "use an asymptotic method"
        )
    return _drawn(table, number, np.random.default_rng(seed))


def _drawn(table: Integers, number: int, generator: np.random.Generator) -> Iterator[Integers]:
    step = max(1, CELLS // table.size)
    for start in range(0, number, step):
        yield _shuffled(table, min(step, number - start), generator)


def _shuffled(table: Integers, number: int, generator: np.random.Generator) -> Integers:
    rows, columns = table.shape
    left = np.repeat(table.sum(axis=1)[None], number, axis=0)
    found = np.zeros((number, rows, columns), dtype=np.int64)
    for column in range(columns - 1):
        wanted = np.full(number, table[:, column].sum())
        for row in range(rows - 1):
            others = left[:, row + 1 :].sum(axis=1)
            taken = generator.hypergeometric(left[:, row], others, wanted)
            found[:, row, column] = taken
            wanted = wanted - taken
        found[:, rows - 1, column] = wanted
        left = left - found[:, :, column]
    found[:, :, columns - 1] = left
    return found
