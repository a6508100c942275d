"""Bounded parsing of JSON from a server: counts values and containers before building any.

``json.loads`` takes the last of two values of one key, reads integers of any length (in quadratic
time) and makes up to 30 bytes of objects from each byte of text: 243 MiB of ``[[],[],…]`` take
5.8 GB. This module counts the characters that start values before anything is built.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from reprlib import Repr
from typing import Any

__all__ = ["Bound", "parsed", "shown"]

BASE_BYTES = 16 << 20
BASE_VALUES = 1_000_000
BASE_CONTAINERS = 200_000
TOKEN_BYTES, TOKEN_VALUES, TOKEN_CONTAINERS = 1024, 32, 4
"""Of one token that is shown. The largest form known, an entry with the token's id, text, bytes and
log-probability, has about 100 bytes, 10 values and 2 containers at the mean length of tokens."""
MOST_BYTES = 256 << 20
INTEGER_DIGITS = 20
"""Most digits of an integer: those of 64 bits. Every field that is read is smaller."""
FLOAT_CHARACTERS = 400
"""Most characters of another number. Exact doubles between 0.1 and 1 have up to 55; a reader that
pads them has no reason for more."""


@dataclass(frozen=True)
class Bound:
    """The maximum size of a reply: a fixed part, and a part for each token requested."""

    tokens: int = 0

    @property
    def bytes(self) -> int:
        """Maximum number of bytes."""
        return min(MOST_BYTES, BASE_BYTES + self.tokens * TOKEN_BYTES)

    @property
    def values(self) -> int:
        """Maximum number of values. Commas inside strings count, so the bound is not tight."""
        return BASE_VALUES + self.tokens * TOKEN_VALUES

    @property
    def containers(self) -> int:
        """Maximum number of lists and objects; brackets inside strings count."""
        return BASE_CONTAINERS + self.tokens * TOKEN_CONTAINERS


def parsed(data: bytes, bound: Bound) -> Any:
    """Parses JSON.

    Raises
    ------
    ValueError
        If it is not JSON, exceeds ``bound``, or has two values for one key.
    """
    if len(data) > bound.bytes:
        raise ValueError(f"more than {bound.bytes:,} bytes")
    containers = data.count(b"[") + data.count(b"{")
    if containers > bound.containers or containers + data.count(b",") > bound.values:
        raise ValueError("many more values than requested")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"not UTF-8 at byte {error.start:,}") from None
    try:
        return json.loads(text, parse_int=_integer, parse_float=_float, object_pairs_hook=_object)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{error.msg} at character {error.pos:,}") from None


def _integer(text: str) -> int:
    if len(text) > INTEGER_DIGITS:
        raise ValueError(f"an integer of {len(text):,} digits")
    return int(text)


def _float(text: str) -> float:
    value = float(text) if len(text) <= FLOAT_CHARACTERS else math.inf
    if math.isinf(value):
        raise ValueError(f"the number {text[:20]}… is out of range")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: dict[str, Any] = {}
        for name, value in pairs:
            # Parts of characters all look alike. Their values are not used under this key.
            if name in seen and seen[name] != value and "\ufffd" not in name:
                raise ValueError(f"two different values of {shown(name)}")
            seen[name] = value
    return found


_SHORT = Repr()
_SHORT.maxlevel, _SHORT.maxlist, _SHORT.maxdict = 3, 4, 4
_SHORT.maxstring = _SHORT.maxother = 60


def shown(value: object) -> str:
    """Returns a short form of a value from a reply; ``repr`` of all of it can take long, or
    fail.
    """
    return _SHORT.repr(value)
