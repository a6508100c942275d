"""Text that is free but for some marks."""

from __future__ import annotations

from formalm.languages.algebra import Combination
from formalm.languages.choice import Choice, StringLiteral
from formalm.languages.language import Language
from formalm.languages.regex import Regex
from formalm.languages.structure.marks import (
    Mark,
    checked_mark,
    joined,
    mark_language,
    pieces_of_mark,
)

__all__ = ["free_text", "until"]


def free_text(*marks: Mark) -> Language:
    """Every text in which none of the marks occurs; the empty one too.

    Special tokens are no text, so that none of them occurs in it either.

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
    anything, texts = Regex("(?s:.*)"), _texts(marks)
    if not texts:
        return anything
    return ~(anything + Choice(texts) + anything)


def until(mark: Mark, *others: Mark) -> Language:
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
    mark = checked_mark("a mark", mark)
    anything, something = Regex("(?s:.*)"), Regex("(?s:.+)")
    if isinstance(mark, str):
        return (anything + StringLiteral(mark)) - Combination(
            "+", anything, Choice([mark, *_texts(others)]), something
        )
    # Where it has a special token it can be nowhere else: only what is text in front matters.
    pieces = pieces_of_mark(mark)
    first = pieces[0]
    if not isinstance(first, str):
        return Combination("+", free_text(*others), mark_language(mark))
    front = (anything + StringLiteral(first)) & free_text(*others)
    return Combination("+", front, mark_language(joined(*pieces[1:])))


def _texts(marks: tuple[Mark, ...]) -> list[str]:
    """The marks that are texts."""
    checked = [checked_mark("a mark", mark) for mark in marks]
    return [mark for mark in checked if isinstance(mark, str)]
