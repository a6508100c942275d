"""Text that is free but for some marks."""

from __future__ import annotations

from formalm.errors import LanguageError
from formalm.languages.algebra import Combination
from formalm.languages.choice import Choice, Literal
from formalm.languages.language import Language, text_bytes
from formalm.languages.regex import Regex

__all__ = ["checked_mark", "free_text", "until"]


def free_text(*marks: str) -> Language:
    """Every text in which none of the marks occurs; the empty one too.

    Raises
    ------
    LanguageError
        For a mark that is empty or no text.

    Examples
    --------
    >>> from formalm.languages import free_text
    >>> free_text("<tool>").matches("a <tool"), free_text("<tool>").matches("a <tool>")
    (True, False)
    """
    anything = Regex("(?s:.*)")
    if not marks:
        return anything
    return ~(anything + _one_of(marks) + anything)


def until(mark: str, *others: str) -> Language:
    """Free text and the mark at which it ends: no mark, of the others neither, ends in it before.

    Raises
    ------
    LanguageError
        For a mark that is empty or no text.

    Examples
    --------
    >>> from formalm.languages import until
    >>> until("</think>").matches("Let me see.</think>"), until("</think>").matches("</think> Yes")
    (True, False)
    """
    anything, something = Regex("(?s:.*)"), Regex("(?s:.+)")
    return (anything + Literal(checked_mark("a mark", mark))) - Combination(
        "+", anything, _one_of((mark, *others)), something
    )


def _one_of(marks: tuple[str, ...]) -> Language:
    return Choice([checked_mark("a mark", mark) for mark in marks])


def checked_mark(name: str, mark: object, *, empty: bool = False) -> str:
    """A text that stands around parts, or an error that names what it is for."""
    if not isinstance(mark, str):
        raise LanguageError(f"{name} is a str, not {type(mark).__name__}")
    if text_bytes(mark) is None:
        raise LanguageError(f"{name} has a lone surrogate, so it is not a text: {mark!r}")
    if not mark and not empty:
        raise LanguageError(f"{name} is empty, so it would be everywhere")
    return mark
