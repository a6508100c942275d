"""Sections of a structure, and the pieces into which a member is split."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from formalm.errors import ArgumentError, LanguageError
from formalm.languages.algebra import Combination, as_language
from formalm.languages.language import Language
from formalm.languages.structure.delimiters import (
    Mark,
    checked_mark,
    find_mark,
    mark_bytes,
    mark_language,
)

__all__ = ["Piece", "Section", "check_triggers", "checked_sections", "one_of"]


@dataclass(frozen=True)
class Section:
    """A constrained part of a text, after the trigger that begins it.

    Attributes
    ----------
    trigger
        The mark that begins the section wherever it occurs in free text: a string, a
        :class:`~formalm.SpecialToken`, or a tuple of them.
    language
        The language of the section: a language, a list of strings or a type.
    end
        The mark that ends the section, of the same kinds as the trigger. Without an end, members of
        the language must show where they end, as JSON objects do; otherwise texts may be ambiguous.

    Raises
    ------
    LanguageError
        For an empty trigger, and languages without a member, for which the machine is built.
    """

    trigger: Mark
    language: Language
    end: Mark = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "trigger", checked_mark("a trigger", self.trigger))
        end = checked_mark("the end of a section", self.end, empty=True)
        object.__setattr__(self, "end", end)
        object.__setattr__(self, "language", as_language(self.language))
        # A union would silently drop it.
        if self.language.is_empty():
            raise LanguageError(f"the language after {self.trigger!r} is empty")

    @cached_property
    def after_trigger(self) -> Language:
        """The language of everything after the trigger, including the end."""
        if self.end == "":
            return self.language
        return Combination("+", self.language, mark_language(self.end))


class Piece(NamedTuple):
    """A piece of a member of a structure.

    Attributes
    ----------
    kind
        ``"free"``, ``"section"`` or ``"reasoning"``.
    text
        The text, without trigger and end.
    value
        Its value in the section's language; for other pieces, the text.
    section
        The section; None for other pieces.
    """

    kind: str
    text: str
    value: object
    section: Section | None = None


def checked_sections(sections: object) -> tuple[Section, ...]:
    """Returns the sections of a structure; raises if they are invalid."""
    if isinstance(sections, (str, bytes)) or not isinstance(sections, Iterable):
        raise ArgumentError(f"sections must be a list of Section, got {type(sections).__name__}")
    listed = tuple(sections)
    for one in listed:
        if not isinstance(one, Section):
            raise ArgumentError(f"sections must contain only Section, got {type(one).__name__}")
    if not listed:
        raise ArgumentError(
            "sections must have at least one Section, got none",
            hint="free text alone is free_text()",
        )
    return listed


def check_triggers(triggers: tuple[Mark, ...]) -> None:
    """Refuses triggers that would not determine what follows."""
    for one in triggers:
        for other in triggers:
            if one != other and find_mark(mark_bytes(other), mark_bytes(one)) >= 0:
                raise LanguageError(
                    f"the trigger {one!r} occurs in the trigger {other!r}, which could never"
                    " be recognized",
                    hint="use the shorter trigger, and make the rest part of the sections",
                )


def one_of(languages: Sequence[Language]) -> Language:
    """Returns the union of at least one language."""
    return languages[0] if len(languages) == 1 else Combination("|", *languages)
