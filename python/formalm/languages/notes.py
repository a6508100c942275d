"""What is said of the text of a grammar beside that it is one."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Note"]


class Note(NamedTuple):
    """Something in a grammar that means less than one may think.

    Attributes
    ----------
    message
        One sentence.
    span
        ``(start, end)`` in characters of the grammar's text, or None.
    """

    message: str
    span: tuple[int, int] | None
