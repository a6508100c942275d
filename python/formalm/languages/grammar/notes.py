"""Notes on grammars: warnings about constructs that allow less than they seem to."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Note"]


class Note(NamedTuple):
    """A construct of a grammar that allows less than it seems to.

    Attributes
    ----------
    message
        One sentence.
    span
        ``(start, end)`` in characters of the grammar's text, or None.
    """

    message: str
    span: tuple[int, int] | None
