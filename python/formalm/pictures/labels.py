"""Formatting of labels: invisible characters as escapes, shortening, widths."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

__all__ = ["cells", "number", "shortened", "visible"]

WIDEST = 18


def visible(text: str) -> str:
    r"""Returns the text with characters that are invisible or invalid in XML as escapes.

    >>> visible("tab\t and é")
    'tab\\t and é'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def shortened(text: str, widest: int = WIDEST) -> str:
    """Returns at most ``widest`` columns of a text; ``…`` marks what was cut."""
    if cells(text) <= widest:
        return text
    kept, used = "", 1
    for character in text:
        used += cells(character)
        if used > widest:
            break
        kept += character
    return kept + "…"


def cells(text: str) -> int:
    """Returns the number of columns of a text in a monospace font."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in ("W", "F") else 1 for c in text)


def number(value: int, noun: str) -> str:
    """Formats a count of things."""
    return f"{value:,} {noun}" + ("" if value == 1 else "s")
