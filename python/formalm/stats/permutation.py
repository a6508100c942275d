"""Tests that rearrange the data, with nothing assumed about its distribution."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations, product

import numpy as np

from formalm.stats.arguments import (
    Floats,
    checked_choice,
    checked_integer,
    checked_number,
    checked_values,
)
from formalm.stats.result import Significance

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
    """Test whether two samples come from one distribution, by dealing their numbers out anew.

    Parameters
    ----------
    one, other
        Two samples of independent numbers. Numbers that belong together in pairs go to
        :func:`sign_flips`.
    statistic
        A function of the two samples; the difference of their means by default.
    alternative
        ``"greater"`` if a large statistic speaks against one distribution, ``"less"`` if a small
        one does, or ``"two-sided"``.
    resamples
        All ways to deal are counted if there are at most so many, otherwise so many are drawn.
    seed
        Of the draws.

    Raises
    ------
    ArgumentError
        For samples that are none, and a statistic that is not finite.

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
    """Test whether paired differences are centered within a margin, by turning their signs round.

    The differences are the sampling units: one for each template, prompt or model, each of them the
    mean of what belongs to it.

    Parameters
    ----------
    differences
        One number for each unit. They are taken to be symmetric about their center.
    margin
        What does not count as a difference. Exact probabilities make tiny differences significant;
        a margin says what matters. With ``"two-sided"`` the hypothesis is that the center is at
        most so far from 0, and rejected if either side of it is at half the level.
    alternative, resamples, seed
        As in :func:`permutation`.

    Raises
    ------
    ArgumentError
        For numbers that are none.

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
    """The one-sided test that the center is 0; the same signs for the same seed."""
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
    """The share of arrangements at least as extreme; a drawn one counts the observed as well."""
    slack = RELATIVE * max(float(np.abs(found).max()), abs(observed))
    extra = 0 if seed is None else 1
    greater = (int((found >= observed - slack).sum()) + extra) / (len(found) + extra)
    less = (int((found <= observed + slack).sum()) + extra) / (len(found) + extra)
    p = {"greater": greater, "less": less, "two-sided": min(1.0, 2 * min(greater, less))}
    method = "exact" if seed is None else "monte carlo"
    drawn = None if seed is None else len(found)
    return Significance(name, observed, p[alternative], None, method, drawn, seed)


def _every_hand(pooled: Floats, size: int) -> Iterator[Floats]:
    """Every way to deal, with the first sample's numbers in front."""
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
    """A statistic of two samples as one of many hands."""

    def value(hands: Floats, size: int) -> Floats:
        found = [statistic(hand[:size], hand[size:]) for hand in hands]
        return np.array([checked_number("the statistic", one, -1e308, 1e308) for one in found])

    return value
