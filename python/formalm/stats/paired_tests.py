"""Paired comparison of two models on the same questions: McNemar's test and odds ratio."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from formalm.errors import ArgumentError
from formalm.stats.argument_checks import checked_choice, checked_number, checked_values, scipy_part
from formalm.stats.proportions import clopper_pearson
from formalm.stats.statistic_results import Quantity, Significance

__all__ = ["mcnemar", "paired_odds_ratio"]

METHODS = ("exact", "mid-p", "asymptotic")
LEAST = 25


def mcnemar(one: Iterable[bool], other: Iterable[bool], *, method: str = "exact") -> Significance:
    """Tests whether two models, or two settings, are right equally often on the same questions.

    Only questions on which they differ count. Two models that agree on most questions are therefore
    distinguished with far fewer questions than two proportions would need.

    Parameters
    ----------
    one, other
        Whether each question was answered correctly, in the same order.
    method
        ``"exact"``: binomial. ``"mid-p"``: the same with half of the observed count, which is less
        conservative. ``"asymptotic"``: chi-square, refused with fewer than 25 differing pairs.

    Returns
    -------
    Significance
        The statistic is the number of questions that only the first got right, minus the number
        that only the second did.

    Raises
    ------
    ArgumentError
        For answers that are neither right nor wrong, or of different number.

    Examples
    --------
    >>> from formalm.stats import mcnemar
    >>> print(mcnemar([True] * 8 + [False] * 2, [False] * 6 + [True] * 4))
    McNemar: 4, p = 0.289 (exact)
    """
    checked_choice("method", method, METHODS)
    only_one, only_other = _discordant(one, other)
    differ, fewer = only_one + only_other, min(only_one, only_other)
    notes: tuple[str, ...] = (f"{differ:,} discordant pairs",)
    special = scipy_part("special")
    if method == "asymptotic":
        if differ < LEAST:
            raise ArgumentError(
                f"at least {LEAST} pairs must differ, got {differ}",
                hint="method='exact' has no such requirement",
            )
        p = float(special.chdtrc(1, (only_one - only_other) ** 2 / differ))
    else:
        p = 2 * float(special.bdtr(fewer, differ, 0.5))
        if method == "mid-p":
            log = special.gammaln
            here = log(differ + 1) - log(fewer + 1) - log(differ - fewer + 1)
            p -= math.exp(here - differ * math.log(2))
    degrees = 1 if method == "asymptotic" else None
    return Significance("McNemar", only_one - only_other, min(1.0, p), degrees, method, notes=notes)


def paired_odds_ratio(
    one: Iterable[bool], other: Iterable[bool], *, confidence: float = 0.95
) -> Quantity:
    """Returns how many times more often only the first is right than only the other.

    Parameters
    ----------
    one, other
        As in :func:`mcnemar`.
    confidence
        Between 0 and 1.

    Returns
    -------
    Quantity
        With the interval of the exact test: it contains 1 iff that test does not reject.

    Raises
    ------
    ArgumentError
        If no pair differs.

    Examples
    --------
    >>> from formalm.stats import paired_odds_ratio
    >>> print(paired_odds_ratio([True] * 8 + [False] * 2, [False] * 6 + [True] * 4))
    odds ratio of pairs 3, 0.5364 … 30.39 (0.95)
    """
    confidence = checked_number("confidence", confidence, 0, 1)
    only_one, only_other = _discordant(one, other)
    differ = only_one + only_other
    if not differ:
        raise ArgumentError("at least one pair must differ")
    share = clopper_pearson(only_one, differ, confidence=confidence)
    return Quantity(
        "odds ratio of pairs",
        _odds(only_one / differ),
        _odds(share.low),
        _odds(share.high),
        confidence,
        "guaranteed",
        "Clopper-Pearson on pairs that differ",
        differ,
    )


def _odds(share: float) -> float:
    return share / (1 - share) if share < 1 else math.inf


def _discordant(one: Iterable[bool], other: Iterable[bool]) -> tuple[int, int]:
    first, second = checked_values("one", one), checked_values("other", other)
    if len(first) != len(second):
        raise ArgumentError(
            f"one and other must have equally many answers, got {len(first):,} and {len(second):,}"
        )
    for values in (first, second):
        if not np.isin(values, (0, 1)).all():
            raise ArgumentError("answers must be True or False")
    only_one = int(((first == 1) & (second == 0)).sum())
    return only_one, int(((first == 0) & (second == 1)).sum())
