"""Requests that never repeat: members with names, items and numbers of their own.

A constraint that keeps what it reads grows with every one of them.
"""

from __future__ import annotations

import json
import random

__all__ = [
    "distinct_numbers",
    "distinct_strings",
    "dumped",
    "integer",
    "prefixed_record",
    "record",
    "word",
]


def word(draw: random.Random) -> str:
    """Draw 3 to 7 letters."""
    return "".join(draw.choice("abcdefgh") for _ in range(draw.randint(3, 7)))


def integer(draw: random.Random) -> int:
    """Draw an integer of up to 6 digits."""
    return draw.randint(-9999, 999_999)


def dumped(value: object) -> str:
    """Return a value as JSON without whitespace."""
    return json.dumps(value, separators=(",", ":"))


def record(draw: random.Random) -> str:
    """Draw an object of 3 integers."""
    return dumped({word(draw): integer(draw) for _ in range(3)})


def prefixed_record(draw: random.Random) -> str:
    """Draw an object of 3 integers whose names begin with an x."""
    return dumped({f"x{word(draw)}": integer(draw) for _ in range(3)})


def distinct_strings(draw: random.Random) -> str:
    """Draw an array of up to 4 strings."""
    return dumped(list({word(draw): None for _ in range(4)}))


def distinct_numbers(draw: random.Random) -> str:
    """Draw an array of up to 4 integers."""
    return dumped(list({integer(draw): None for _ in range(4)}))
