"""Conversion between strings and bytes, display of members, and shared checks of arguments."""

from __future__ import annotations

import math
from operator import index
from typing import Literal
from unicodedata import category

from formalm.errors import ArgumentError, TokenError

__all__ = [
    "SPECIAL",
    "Relation",
    "Unit",
    "as_text",
    "checked_integer",
    "counts_characters",
    "escaped",
    "is_inclusion",
    "not_a_member",
    "shown",
    "shown_bytes",
    "shown_text",
    "text_bytes",
]

#: Units of length.
Unit = Literal["characters", "bytes"]

#: Relations of two languages.
Relation = Literal["equivalence", "inclusion"]

#: The byte before and after the name of a special token.
SPECIAL = b"\xfe"

JOINERS = "\u200c\u200d"
"""Format characters that letters and emoji are made with."""


def text_bytes(text: str | bytes) -> bytes | None:
    """Returns the UTF-8 bytes of a string; None if it has none because of a lone surrogate."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise ArgumentError(f"text must be str or bytes, got {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def not_a_member() -> TokenError:
    """Returns the error of a text that must be a member."""
    return TokenError("text must be a member, and this one is not", hint="ask matches(text) first")


def as_text(data: bytes) -> str | bytes:
    """Returns a member as a str if it is UTF-8, otherwise as bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def shown_bytes(data: bytes) -> bytes:
    """Returns bytes in which special tokens are only their names."""
    if SPECIAL not in data:
        return data
    pieces = data.split(SPECIAL)
    # A name lies between two such bytes; an unpaired byte is left unchanged.
    odd = len(pieces) % 2 == 0
    shown = b"".join(pieces[: -1 if odd else len(pieces)])
    return shown + SPECIAL + pieces[-1] if odd else shown


def shown_text(data: bytes) -> str:
    """Returns the text to display: special tokens as names, invalid UTF-8 as U+FFFD."""
    return shown_bytes(data).decode(errors="replace")


def escaped(text: str, *, keep: str = "") -> str:
    r"""Returns the text with control characters as escapes, which is safe to print on a terminal.

    Parameters
    ----------
    text
        Any text.
    keep
        Control characters to keep, such as line breaks and tabs of a text that is printed alone.

    Examples
    --------
    >>> from formalm.automata.text_and_argument_checks import escaped
    >>> escaped("a\x1b[31mb\u202ec é")
    'a\\x1b[31mb\\u202ec é'
    """
    if text.isprintable():
        return text
    return "".join(one if one in keep or _is_safe(one) else _escape(one) for one in text)


def _is_safe(character: str) -> bool:
    kind = category(character)
    # Cc: controls, Cf: among them those that reverse the direction, Cs: halves of characters,
    # Zl, Zp: line ends of Unicode.
    return kind not in ("Cc", "Cf", "Cs", "Zl", "Zp") or character in JOINERS


def _escape(character: str) -> str:
    return repr(character)[1:-1]


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


MOST_SECONDS = 1 << 33
"""Bound of every option in seconds, 272 years: nanoseconds up to it fit into 64 bits."""


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
