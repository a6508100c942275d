"""Slots and templates of a suite, and the languages of partially filled templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from string import Formatter
from typing import NamedTuple

from formalm.errors import ArgumentError
from formalm.languages import JsonSchema, Language, Regex, StringLiteral

__all__ = ["Piece", "Slot", "Template", "language_of", "resolved"]

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Slot:
    """The values of a placeholder in a template: listed strings, a pattern, or another source.

    Attributes
    ----------
    name
        Its name.
    texts
        The strings; None with another source.
    pattern
        A pattern, in Python's dialect.
    file
        The source file of the strings, as named in the suite; None if they are in the suite.
    words_of
        A column of the query's rows, whose words are the strings.
    schema
        A JSON Schema, whose instances are the strings.
    without
        Another slot, whose strings are excluded.
    """

    name: str
    texts: tuple[str, ...] | None = None
    pattern: str | None = None
    file: str | None = None
    words_of: str | None = None
    schema: str | None = None
    without: str | None = None

    @property
    def group(self) -> str:
        """A pattern for the slot, as a group of its name."""
        if self.texts is None:
            return f"(?P<{self.name}>{self.pattern})"
        return f"(?P<{self.name}>{'|'.join(map(re.escape, self.texts))})"


@dataclass(frozen=True)
class Piece:
    """A piece of a template: text, or a slot."""

    text: str
    is_slot: bool


@dataclass(frozen=True)
class Template:
    """A text with slots: ``"The {gender} was trained in {profession}"``; ``{{`` is a brace."""

    name: str
    text: str

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Its pieces in order.

        Raises
        ------
        ArgumentError
            If braces do not match, a slot has no valid name, or a slot occurs twice.
        """
        pieces = tuple(self._parsed())
        names = [piece.text for piece in pieces if piece.is_slot]
        for name in names:
            if not NAME.fullmatch(name):
                raise ArgumentError(f"{{{name}}} is not a slot name", hint="escape a brace as {{")
            if names.count(name) > 1:
                raise ArgumentError(f"the slot {{{name}}} must not occur twice")
        return pieces

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of its slots in order."""
        return tuple(piece.text for piece in self.pieces if piece.is_slot)

    def filled(self, values: Mapping[str, str]) -> str:
        """Returns its text with a value for every slot."""
        return "".join(values[one.text] if one.is_slot else one.text for one in self.pieces)

    def _parsed(self) -> Iterator[Piece]:
        try:
            for text, name, form, conversion in Formatter().parse(self.text):
                if text:
                    yield Piece(text, False)
                if name is not None:
                    if form or conversion:
                        raise ArgumentError(f"the slot {{{name}}} must not have a format")
                    yield Piece(name, True)
        except ValueError as error:
            hint = "escape braces as {{ and }}"
            raise ArgumentError(f"the template is invalid: {error}", hint=hint) from None


def resolved(slot: Slot, slots: Mapping[str, Slot], row: Mapping[str, str]) -> Slot:
    """Returns a slot for one row, with its words listed and those of ``without`` removed.

    Raises
    ------
    ArgumentError
        If no word is left.
    """
    barred = () if slot.without is None else slots[slot.without].texts or ()
    if slot.pattern is not None:
        if not barred:
            return slot
        words = "|".join(map(re.escape, barred))
        return replace(slot, pattern=rf"(?!(?:{words})\b)(?:{slot.pattern})")
    texts = slot.texts
    if slot.words_of is not None:
        texts = tuple(dict.fromkeys(re.findall(r"\w+", row[slot.words_of])))
    if texts is not None and barred:
        texts = tuple(text for text in texts if text not in barred)
    if texts == ():
        raise ArgumentError(f"the slot {slot.name!r} must have a word in the row {dict(row)!r:.60}")
    return replace(slot, texts=texts)


class Filled(NamedTuple):
    """A template with some slots filled.

    Attributes
    ----------
    language
        The language.
    start
        The text before the first open slot, without trailing space, which belongs to the next
        token.
    open
        The names of the open slots.
    """

    language: Language
    start: str
    open: tuple[str, ...] = ()


def language_of(template: Template, slots: Mapping[str, Slot], fixed: Mapping[str, str]) -> Filled:
    """Returns the language of a template with some slots filled.

    Open slots are groups of their names.
    """
    pattern, start, names = "", "", []
    parts: list[Language] = []
    for piece in template.pieces:
        if piece.is_slot and piece.text not in fixed:
            names.append(piece.text)
            schema = slots[piece.text].schema
            if schema is None:
                pattern += slots[piece.text].group
                continue
            parts += [Regex(pattern), JsonSchema(json.loads(schema))]
            pattern = ""
            continue
        text = fixed[piece.text] if piece.is_slot else piece.text
        pattern += re.escape(text)
        if not names:
            start += text
    if not names:
        return Filled(StringLiteral(start), start)
    parts = [part for part in [*parts, Regex(pattern)] if part != Regex("")]
    language = parts[0]
    for part in parts[1:]:
        language = language + part
    return Filled(language, start.rstrip(), tuple(names))
