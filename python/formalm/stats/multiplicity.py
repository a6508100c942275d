"""Multiple testing: p-values adjusted for the number of tests."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from formalm.stats.argument_checks import Floats, checked_p_values

__all__ = ["benjamini_hochberg", "holm"]


def holm(p_values: Iterable[float]) -> Floats:
    """Returns adjusted p-values that bound the probability of *any* false rejection.

    Reject if the adjusted value is at most the level. The tests may depend on each other in any
    way.

    Parameters
    ----------
    p_values
        One for each test; all tests that were made, not only the interesting ones.

    Returns
    -------
    ndarray
        ``(len(p_values),)``, in the same order.

    Raises
    ------
    ArgumentError
        For numbers that are not probabilities.

    Examples
    --------
    >>> from formalm.stats import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    given = checked_p_values(p_values)
    order = np.argsort(given, kind="stable")
    scaled = given[order] * np.arange(len(given), 0, -1)
    return _placed(np.minimum(1.0, np.maximum.accumulate(scaled)), order)


def benjamini_hochberg(p_values: Iterable[float]) -> Floats:
    """Returns adjusted p-values that bound the expected share of false rejections among all.

    For tests that are independent, or depend positively on each other.

    Parameters
    ----------
    p_values
        As in :func:`holm`.

    Returns
    -------
    ndarray
        ``(len(p_values),)``, in the same order.

    Raises
    ------
    ArgumentError
        For numbers that are not probabilities.

    Examples
    --------
    >>> from formalm.stats import benjamini_hochberg
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """
    given = checked_p_values(p_values)
    order = np.argsort(given, kind="stable")
    scaled = given[order] * len(given) / np.arange(1, len(given) + 1)
    least = np.minimum.accumulate(scaled[::-1])[::-1]
    # Rounding must not take an adjusted value below the given one.
    return _placed(np.clip(least, given[order], 1.0), order)


def _placed(values: Floats, order: npt.NDArray[np.intp]) -> Floats:
    found = np.empty_like(values)
    found[order] = values
    return found
