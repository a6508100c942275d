"""Checks of statistics arguments, and the deferred import of SciPy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError

__all__ = [
    "Floats",
    "Integers",
    "checked_choice",
    "checked_counts",
    "checked_integer",
    "checked_number",
    "checked_p_values",
    "checked_values",
    "scipy_part",
]

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


#: Beyond this, sums and squares may overflow.
LARGEST = 1e150


def scipy_part(name: str) -> Any:
    """Returns a part of SciPy, imported on first use.

    Raises
    ------
    ArgumentError
        If SciPy is not installed.
    """
    try:
        return import_module(f"scipy.{name}")
    except ImportError:
        raise ArgumentError(
            "statistics require the package scipy", hint="pip install 'formalm[stats]'"
        ) from None


def checked_number(
    name: str, value: object, low: float, high: float, *, inclusive: bool = False
) -> float:
    """Returns a number between two bounds, which it may equal only if ``inclusive``."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if number and not isinstance(value, bool):
        found = float(value)  # type: ignore[arg-type]
        if low < found < high or (inclusive and low <= found <= high):
            return found
    where = f"from {low:g} to {high:g}" if inclusive else f"between {low:g} and {high:g}"
    raise ArgumentError(f"{name} must be a number {where}, got {value!r:.60}")


def checked_integer(name: str, value: object, least: int) -> int:
    """Returns an integer of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise ArgumentError(f"{name} must be an integer of at least {least}, got {value!r:.60}")
    return int(value)


def checked_choice(name: str, value: object, choices: Sequence[str]) -> str:
    """Returns one of the allowed strings."""
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(map(repr, choices))
        raise ArgumentError(f"{name} must be one of {known}, got {value!r:.60}")
    return value


def checked_values(name: str, values: object, dimensions: Sequence[int] = (1,)) -> Floats:
    """Returns finite numbers as an array with one of the allowed numbers of dimensions."""
    try:
        array: Floats = np.asarray(_listed(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"{name} must be numbers: {error}") from None
    if array.ndim not in dimensions:
        shape = " or ".join(f"{n}-dimensional" for n in dimensions)
        raise ArgumentError(f"{name} must be {shape}, got shape {array.shape}")
    if not array.size:
        raise ArgumentError(f"{name} must not be empty")
    if not np.isfinite(array).all():
        raise ArgumentError(f"{name} must be finite")
    if np.abs(array).max() > LARGEST:
        raise ArgumentError(f"{name} must not exceed {LARGEST:g}, beyond which sums overflow")
    return array


def checked_counts(name: str, counts: object, dimensions: int) -> Integers:
    """Returns nonnegative integers; floats with integer values are accepted."""
    values = checked_values(name, counts, (dimensions,))
    if (values < 0).any() or (values != np.floor(values)).any():
        raise ArgumentError(
            f"{name} must be nonnegative integers",
            hint="probabilities have no sampling error; compare them with total_variation",
        )
    if values.sum() >= 2**53:
        raise ArgumentError(f"{name} must sum to at most 2⁵³")
    return values.astype(np.int64)


def checked_p_values(values: object) -> Floats:
    """Returns numbers from 0 to 1."""
    array = checked_values("p-values", values)
    if (array < 0).any() or (array > 1).any():
        wrong = array[(array < 0) | (array > 1)][0]
        raise ArgumentError(f"p-values must be from 0 to 1, got {wrong:g}")
    return array


def _listed(values: object) -> object:
    """Returns a value that NumPy can convert to an array; iterates over a generator once."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise ArgumentError(f"values must be a sequence of numbers, got {values!r:.60}")
    return values if hasattr(values, "__array__") else list(values)
