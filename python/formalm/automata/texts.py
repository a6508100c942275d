"""Texts as bytes and back, and the checks that arguments of this room share."""

from __future__ import annotations

from formalm.errors import ArgumentError

__all__ = ["as_text", "checked_integer", "counts_characters", "shown", "text_bytes"]


def text_bytes(text: str | bytes) -> bytes | None:
    """UTF-8 bytes of a text; None if it has none, as a lone surrogate does not."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise ArgumentError(f"a text is str or bytes, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def as_text(data: bytes) -> str | bytes:
    """A member as users read it: a str where it is UTF-8, else its bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def checked_integer(name: str, value: object, least: int = 0) -> int:
    """``value`` as an integer from ``least`` on that the core can count with."""
    if type(value) is not int:
        raise ArgumentError(f"{name} is an integer, not {type(value).__name__}")
    if not least <= value < 1 << 62:
        raise ArgumentError(f"{name} is an integer from {least} on, not {shown(value)}")
    return value


def shown(number: int) -> str:
    """A number in a message; Python refuses to write very long ones."""
    sign = "-" if number < 0 else ""
    return str(number) if number.bit_length() < 256 else f"{sign}2^{number.bit_length() - 1} or so"


def counts_characters(unit: str) -> bool:
    """Whether lengths are in characters; else they are in bytes."""
    if unit not in ("characters", "bytes"):
        raise ArgumentError(f"unit is 'characters' or 'bytes', not {unit!r}")
    return unit == "characters"
