"""Slots, and templates with slots in them."""

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
    """What may stand in a place of a template: one of some texts, or what a pattern matches.

    Attributes
    ----------
    name
        Its name.
    texts
        The texts; None if there is something else.
    pattern
        A pattern, in Python's dialect.
    file
        The file that the texts came from, as the suite names it; None if they are in the suite.
    words_of
        A column of the query's rows, whose words are the texts.
    schema
        A JSON Schema, whose instances are the texts.
    without
        Another slot, whose texts are no words of this one.
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
        """A pattern for it, as a group of its name."""
        if self.texts is None:
            return f"(?P<{self.name}>{self.pattern})"
        return f"(?P<{self.name}>{'|'.join(map(re.escape, self.texts))})"


@dataclass(frozen=True)
class Piece:
    """A part of a template: text, or a slot."""

    text: str
    is_slot: bool


@dataclass(frozen=True)
class Template:
    """A text with slots: ``"The {gender} was trained in {profession}"``; ``{{`` is a brace."""

    name: str
    text: str

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """Its parts in order.

        Raises
        ------
        ArgumentError
            If braces do not match, a slot has no name or anything but a name, or stands twice.
        """
        pieces = tuple(self._parsed())
        names = [piece.text for piece in pieces if piece.is_slot]
        for name in names:
            if not NAME.fullmatch(name):
                raise ArgumentError(f"{{{name}}} is no name of a slot", hint="write {{ for a brace")
            if names.count(name) > 1:
                raise ArgumentError(f"the slot {{{name}}} stands twice in it")
        return pieces

    @property
    def slots(self) -> tuple[str, ...]:
        """The names of its slots in order."""
        return tuple(piece.text for piece in self.pieces if piece.is_slot)

    def filled(self, values: Mapping[str, str]) -> str:
        """Its text with a value for every slot."""
        return "".join(values[one.text] if one.is_slot else one.text for one in self.pieces)

    def _parsed(self) -> Iterator[Piece]:
        try:
            for text, name, form, conversion in Formatter().parse(self.text):
                if text:
                    yield Piece(text, False)
                if name is not None:
                    if form or conversion:
                        raise ArgumentError(f"the slot {{{name}}} takes no format")
                    yield Piece(name, True)
        except ValueError as error:
            hint = "write {{ and }} for braces"
            raise ArgumentError(f"the template has {error}", hint=hint) from None


def resolved(slot: Slot, slots: Mapping[str, Slot], row: Mapping[str, str]) -> Slot:
    """A slot for one row: its words listed, and those of ``without`` taken out.

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
        raise ArgumentError(f"the slot {slot.name!r} has no word in the row {dict(row)!r:.60}")
    return replace(slot, texts=texts)


class Filled(NamedTuple):
    """A template with some slots filled.

    Attributes
    ----------
    language
        The language.
    start
        The text before the first open slot, without the space at its end: that belongs to the
        token that follows.
    open
        The names of the open slots.
    """

    language: Language
    start: str
    open: tuple[str, ...] = ()


def language_of(template: Template, slots: Mapping[str, Slot], fixed: Mapping[str, str]) -> Filled:
    """The language of a template with some slots filled.

    Open slots are groups of their name.
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
