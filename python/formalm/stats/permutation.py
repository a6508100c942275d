"""Permutation and sign-flip tests, without assumptions about the distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from formalm.stats.argument_checks import (
    Floats,
    checked_choice,
    checked_integer,
    checked_number,
    checked_values,
)
from formalm.stats.statistic_results import Significance

__all__ = ["permutation", "sign_flips"]

Statistic = Callable[[Floats, Floats], float]
ALTERNATIVES = ("two-sided", "greater", "less")
RELATIVE = 1e-9
CELLS = 4_000_000  # of the arrangements that are held at once


def permutation(
    one: Iterable[float],
    other: Iterable[float],
    *,
    statistic: Statistic | None = None,
    alternative: str = "two-sided",
    resamples: int = 9_999,
    seed: int = 0,
) -> Significance:
    """Tests whether two samples come from one distribution, by permuting their numbers.

    Parameters
    ----------
    one, other
        Two samples of independent numbers. For paired numbers use :func:`sign_flips`.
    statistic
        A function of the two samples; the difference of their means by default.
    alternative
        ``"greater"`` if a large statistic is evidence against one distribution, ``"less"`` if a
        small one is, or ``"two-sided"``.
    resamples
        All permutations are enumerated if there are at most this many; otherwise this many are
        drawn.
    seed
        The seed of the draws.

    Raises
    ------
    ArgumentError
        For invalid samples, and a statistic that is not finite.

    Examples
    --------
    >>> from formalm.stats import permutation
    >>> print(permutation([1, 2, 3], [4, 5, 6]))
    permutation: -3, p = 0.1 (exact)
    """
    first, second = checked_values("one", one), checked_values("other", other)
    checked_choice("alternative", alternative, ALTERNATIVES)
    number, seed = checked_integer("resamples", resamples, 1), checked_integer("seed", seed, 0)
    pooled, size = np.concatenate([first, second]), len(first)
    ways = math.comb(len(pooled), size)
    exact = ways <= number
    hands = _every_hand(pooled, size) if exact else _dealt(pooled, number, seed)
    value = _mean_difference if statistic is None else _each(statistic)
    observed = float(value(pooled[None], size)[0])
    found = np.concatenate([value(some, size) for some in hands])
    return _significance("permutation", observed, found, alternative, None if exact else seed)


def sign_flips(
    differences: Iterable[float],
    *,
    margin: float = 0.0,
    alternative: str = "two-sided",
    resamples: int = 9_999,
    seed: int = 0,
) -> Significance:
    """Tests whether paired differences are centered within a margin, by flipping their signs.

    The differences are the sampling units: one for each template, prompt or model, each the mean of
    its own results.

    Parameters
    ----------
    differences
        One number for each unit. They are assumed to be symmetric about their center.
    margin
        The largest difference that does not matter. Exact probabilities make tiny differences
        significant; a margin says what matters. With ``"two-sided"``, the hypothesis is that the
        center is at most that far from 0. It is rejected if one of its sides is rejected at half
        the level.
    alternative, resamples, seed
        As in :func:`permutation`.

    Raises
    ------
    ArgumentError
        For invalid numbers.

    Examples
    --------
    >>> from formalm.stats import sign_flips
    >>> differences = [0.41, 0.39, 0.45, 0.38, 0.40, 0.42]
    >>> print(sign_flips(differences))
    sign flips: 0.4083, p = 0.0312 (exact)
    >>> sign_flips(differences, margin=0.5).p_value
    1.0
    """
    values = checked_values("differences", differences)
    margin = checked_number("margin", margin, 0, math.inf, inclusive=True)
    checked_choice("alternative", alternative, ALTERNATIVES)
    number, seed = checked_integer("resamples", resamples, 1), checked_integer("seed", seed, 0)
    chosen = None if 2 ** len(values) <= number else seed
    above = _flipped(values - margin, "greater", number, chosen)
    below = _flipped(values + margin, "less", number, chosen)
    p = {
        "greater": above.p_value,
        "less": below.p_value,
        "two-sided": min(1.0, 2 * min(above.p_value, below.p_value)),
    }[alternative]
    notes = (f"differences up to {margin:g} do not count",) if margin else ()
    return replace(above, statistic=float(values.mean()), p_value=p, notes=notes)


def _flipped(values: Floats, alternative: str, number: int, seed: int | None) -> Significance:
    """Returns the one-sided test that the center is 0; the same signs for the same seed."""
    found = np.concatenate(
        [(signs * values).mean(axis=1) for signs in _signs(len(values), number, seed)]
    )
    return _significance("sign flips", float(values.mean()), found, alternative, seed)


def _signs(length: int, number: int, seed: int | None) -> Iterator[Floats]:
    if seed is None:
        yield np.array(list(product((1.0, -1.0), repeat=length)))
        return
    generator = np.random.default_rng(seed)
    step = max(1, CELLS // length)
    for start in range(0, number, step):
        yield generator.choice((1.0, -1.0), size=(min(step, number - start), length))


def _significance(
    name: str, observed: float, found: Floats, alternative: str, seed: int | None
) -> Significance:
    """Returns the share of arrangements at least as extreme; among drawn ones, the observed counts
    too.
    """
    slack = RELATIVE * max(float(np.abs(found).max()), abs(observed))
    extra = 0 if seed is None else 1
    greater = (int((found >= observed - slack).sum()) + extra) / (len(found) + extra)
    less = (int((found <= observed + slack).sum()) + extra) / (len(found) + extra)
    p = {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}
    method = "exact" if seed is None else "monte carlo"
    drawn = None if seed is None else len(found)
    return Significance(name, observed, p[alternative], None, method, drawn, seed)


def _every_hand(pooled: Floats, size: int) -> Iterator[Floats]:
    """Yields every split of the numbers, with the first sample's numbers first."""
    chosen = np.array(list(combinations(range(len(pooled)), size)), dtype=np.int64)
    rest = np.ones((len(chosen), len(pooled)), dtype=np.bool_)
    np.put_along_axis(rest, chosen, False, axis=1)
    others = np.nonzero(rest)[1].reshape(len(chosen), -1)
    yield pooled[np.concatenate([chosen, others], axis=1)]


def _dealt(pooled: Floats, number: int, seed: int) -> Iterator[Floats]:
    generator = np.random.default_rng(seed)
    step = max(1, CELLS // len(pooled))
    for start in range(0, number, step):
        yield generator.permuted(np.tile(pooled, (min(step, number - start), 1)), axis=1)


def _mean_difference(hands: Floats, size: int) -> Floats:
    found: Floats = hands[:, :size].mean(axis=1) - hands[:, size:].mean(axis=1)
    return found


def _each(statistic: Statistic) -> Callable[[Floats, int], Floats]:
    """Returns a statistic of two samples as a function of many splits."""

    def value(hands: Floats, size: int) -> Floats:
        found = [statistic(hand[:size], hand[size:]) for hand in hands]
        return np.array([checked_number("the statistic", one, -1e308, 1e308) for one in found])

    return value
