"""Labels as they are shown: every character visible, and not too many of them."""

from __future__ import annotations

from unicodedata import combining, east_asian_width

__all__ = ["cells", "number", "shortened", "visible"]

WIDEST = 18


def visible(text: str) -> str:
    r"""The text with what cannot be seen, or cannot stand in XML, written as an escape.

    >>> visible("tab\t and é")
    'tab\\t and é'
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text
    )


def shortened(text: str, widest: int = WIDEST) -> str:
    """At most ``widest`` cells of a text; what was cut is marked by ``…``."""
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
    """How many columns a text takes in a monospace font."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(c) else 2 if east_asian_width(c) in ("W", "F") else 1 for c in text)


def number(value: int, noun: str) -> str:
    """A number of things, as people write it."""
    return f"{value:,} {noun}" + ("" if value == 1 else "s")
