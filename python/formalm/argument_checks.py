"""Shared checks of arguments."""

from __future__ import annotations

import math
from operator import index
from typing import Literal

from formalm.errors import ArgumentError

__all__ = [
    "Relation",
    "Unit",
    "checked_flag",
    "checked_integer",
    "checked_seconds",
    "counts_characters",
    "is_inclusion",
    "shown",
]

#: Units of length.
Unit = Literal["characters", "bytes"]

#: Relations of two languages.
Relation = Literal["equivalence", "inclusion"]

MOST_SECONDS = 1 << 33
"""Bound of every option in seconds, 272 years: nanoseconds up to it fit into 64 bits."""


def checked_flag(name: str, value: object) -> bool:
    """Returns ``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise ArgumentError(f"{name} must be True or False, got {value!r:.80}")
    return value


def checked_integer(name: str, value: object, least: int = 0) -> int:
    """Returns ``value`` as an integer of at least ``least`` that the core can represent."""
    try:
        # A bool is an index too, but hardly meant as one.
        number = index(value) if not isinstance(value, bool) else None  # type: ignore[arg-type]
    except TypeError:
        number = None
    if number is None:
        raise ArgumentError(f"{name} must be an integer, got {type(value).__name__}")
    if not least <= number < 1 << 62:
        raise ArgumentError(f"{name} must be an integer from {least} to 2^62, got {shown(number)}")
    return number


def checked_seconds(
    name: str, value: object, *, otherwise: Literal["None", "0"] = "None"
) -> float | None:
    """Returns ``value`` as a positive number of seconds; or ``otherwise``, which means no time."""
    if value is None and otherwise == "None":
        return None
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if otherwise == "0" and is_number and value == 0:
        return 0.0
    if not is_number or not 0 < value < MOST_SECONDS:  # type: ignore[operator]
        hint = "pass None for no limit" if otherwise == "None" else None
        if is_number and 0 < value < math.inf:  # type: ignore[operator]
            what = f"{name} must be below {MOST_SECONDS:,} seconds (272 years), got {value!r:.60}"
            raise ArgumentError(what, hint=hint)
        raise ArgumentError(
            f"{name} must be a positive number of seconds or {otherwise}, got {value!r:.60}",
            hint=hint,
        )
    # A deadline cannot be shorter than the resolution of the clock.
    return max(float(value), 1e-9)  # type: ignore[arg-type]


def shown(number: int) -> str:
    """Returns a number for a message; Python refuses to print very long ones."""
    sign = "-" if number < 0 else ""
    return str(number) if number.bit_length() < 256 else f"{sign}2^{number.bit_length() - 1} or so"


def counts_characters(unit: str) -> bool:
    """Returns whether lengths count characters; otherwise bytes."""
    if unit not in ("characters", "bytes"):
        raise ArgumentError(f"unit must be 'characters' or 'bytes', got {unit!r}")
    return unit == "characters"


def is_inclusion(relation: str) -> bool:
    """Returns whether the relation is inclusion; otherwise equivalence."""
    if relation not in ("equivalence", "inclusion"):
        raise ArgumentError(f"relation must be 'equivalence' or 'inclusion', got {relation!r}")
    return relation == "inclusion"
