"""Languages of text without certain marks, and of text up to a mark."""

from __future__ import annotations

from formalm.argument_checks import checked_integer
from formalm.languages.algebra import Combination
from formalm.languages.choice import Choice, StringLiteral
from formalm.languages.language import Language
from formalm.languages.regex import Regex
from formalm.languages.structure.delimiters import (
    Mark,
    checked_mark,
    joined,
    mark_language,
    pieces_of_mark,
)

__all__ = ["free_text", "until"]


def free_text(*marks: Mark) -> Language:
    """Returns the language of all texts in which none of the marks occurs, including the empty one.

    Special tokens are not text, so none of them occurs either.

    Raises
    ------
    LanguageError
        For a mark that is empty or not text.

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


def until(mark: Mark, *others: Mark, max_chars: int | None = None) -> Language:
    """Returns the language of free text that ends with ``mark``, with no earlier mark in it.

    Parameters
    ----------
    mark
        The mark at the end.
    *others
        Marks that the text must not contain either.
    max_chars
        Maximum number of characters before the mark; None is unlimited. Once they are used up, only
        the mark may follow.

    Raises
    ------
    LanguageError
        For a mark that is empty or not text.

    Examples
    --------
    >>> from formalm.languages import until
    >>> until("</think>").matches("Let me see.</think>"), until("</think>").matches("</think> Yes")
    (True, False)
    >>> short = until("</think>", max_chars=5)
    >>> short.matches("I see</think>"), short.is_viable("I see."), short.is_viable("I see</")
    (True, False, True)
    """
    mark = checked_mark("a mark", mark)
    anything, something = Regex("(?s:.*)"), Regex("(?s:.+)")
    most = anything
    if max_chars is not None:
        most = Regex(f"(?s:.{{0,{checked_integer('max_chars', max_chars)}}})")
    if isinstance(mark, str):
        return (most + StringLiteral(mark)) - Combination(
            "+", anything, Choice([mark, *_texts(others)]), something
        )
    # A mark with a special token cannot occur elsewhere, so only its leading text matters.
    pieces = pieces_of_mark(mark)
    first = pieces[0]
    if not isinstance(first, str):
        text = free_text(*others) if max_chars is None else free_text(*others) & most
        return Combination("+", text, mark_language(mark))
    front = (most + StringLiteral(first)) & free_text(*others)
    return Combination("+", front, mark_language(joined(*pieces[1:])))


def _texts(marks: tuple[Mark, ...]) -> list[str]:
    """Returns the marks that are strings."""
    checked = [checked_mark("a mark", mark) for mark in marks]
    return [mark for mark in checked if isinstance(mark, str)]
