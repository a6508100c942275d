"""Marks that delimit the parts of a structure: strings, special tokens, and tuples of them."""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import TypeAlias

from formalm.automata.text_of_bytes import SPECIAL
from formalm.errors import LanguageError, lone_surrogate
from formalm.languages.algebra import Combination
from formalm.languages.choice import StringLiteral
from formalm.languages.language import Language, text_bytes
from formalm.languages.special_tokens import SpecialToken
from formalm.vocabulary import Vocabulary

__all__ = [
    "Mark",
    "check_marks",
    "checked_mark",
    "find_mark",
    "joined",
    "mark_bytes",
    "mark_language",
    "marks_in",
    "pieces_of_mark",
]

#: A string, a special token, or a sequence of them.
Mark: TypeAlias = "str | SpecialToken | tuple[str | SpecialToken, ...]"


def pieces_of_mark(mark: Mark) -> tuple[str | SpecialToken, ...]:
    """Returns the strings and special tokens of a mark."""
    if isinstance(mark, tuple):
        return mark
    return () if mark == "" else (mark,)


def mark_bytes(mark: Mark) -> bytes:
    """Returns the bytes of a mark in a member."""
    pieces = pieces_of_mark(mark)
    return b"".join(one.encode() if isinstance(one, str) else one.data for one in pieces)


def mark_language(mark: Mark) -> Language:
    """Returns the language of a mark alone."""
    parts = [StringLiteral(one) if isinstance(one, str) else one for one in pieces_of_mark(mark)]
    if len(parts) > 1:
        return Combination("+", *parts)
    return parts[0] if parts else StringLiteral("")


def joined(*marks: Mark) -> Mark:
    """Returns the concatenation of marks."""

    def add(
        row: tuple[str | SpecialToken, ...], one: str | SpecialToken
    ) -> tuple[str | SpecialToken, ...]:
        if row and isinstance(one, str) and isinstance(row[-1], str):
            return (*row[:-1], row[-1] + one)
        return (*row, one)

    start: tuple[str | SpecialToken, ...] = ()
    row = reduce(add, (one for mark in marks for one in pieces_of_mark(mark) if one != ""), start)
    if not row:
        return ""
    return row[0] if len(row) == 1 else row


def find_mark(data: bytes, mark: bytes, at: int = 0) -> int:
    """Returns the position of a mark in a text; -1 if absent.

    The search begins at a position outside special tokens.
    """
    found = data.find(mark, at)
    while found >= 0:
        if not data.count(SPECIAL, at, found) % 2:
            return found
        # Inside a special token, whose name is not text.
        at = data.index(SPECIAL, found) + 1
        found = data.find(mark, at)
    return -1


def checked_mark(name: str, mark: object, *, empty: bool = False) -> Mark:
    """Returns a valid mark; otherwise raises an error that names its use."""
    pieces = mark if isinstance(mark, tuple) else (mark,)
    for one in pieces:
        if not isinstance(one, (str, SpecialToken)):
            hint = "a mark is a text, a SpecialToken, or a tuple of them"
            raise LanguageError(f"{name} must be a str, got {type(one).__name__}", hint=hint)
        if isinstance(one, str) and text_bytes(one) is None:
            message, hint, _ = lone_surrogate(name, one)
            raise LanguageError(message, hint=hint)
    whole = joined(*pieces)
    if whole == "" and not empty:
        raise LanguageError(f"{name} must not be empty")
    return whole


def marks_in(language: Language) -> Iterator[Mark]:
    """Returns the marks of all structures inside a language."""
    seen: set[int] = set()
    rest = [language]
    while rest:
        one = rest.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield from one._own_marks()
        rest += one._parts


def check_marks(language: Language, vocabulary: Vocabulary) -> None:
    """Refuses string marks that contain the name of a special token.

    The model writes that token instead of spelling its name, so with any mask the mark could not
    occur as the model means it.

    Raises
    ------
    LanguageError
        With the mark and the token.
    """
    pieces = (one for mark in marks_in(language) for one in pieces_of_mark(mark))
    marks = [one for one in pieces if isinstance(one, str)]
    if not marks:
        return
    for name in vocabulary.special_tokens:
        for mark in marks:
            if name and name in mark:
                raise LanguageError(
                    f"the mark {mark!r} has {name!r} in it as text, which is a special token here:"
                    " the model writes the token and not its name",
                    hint=f"pass SpecialToken({name!r}), or a tuple of texts and special tokens",
                )
