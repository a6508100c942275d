"""Items of a suite: one query for one template and one combination of slot values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

from formalm.errors import LimitError
from formalm.languages import to_data
from formalm.query.query import Query
from formalm.query.serialization import FORMAT, VERSION, query_data, read_query
from formalm.suites.fact_rows import Rows
from formalm.suites.slots_and_templates import Slot, Template, language_of, resolved
from formalm.suites.suite_parts import Question

__all__ = ["Item", "item_of", "items_of"]

NO_ROW: dict[str, str] = {}


@dataclass(frozen=True)
class Item:
    """One question for a model.

    Attributes
    ----------
    question
        The query of the suite it belongs to.
    template
        The name of the template.
    values
        The string of each slot filled from ``each``.
    open
        The names of the open slots.
    query
        The query to evaluate.
    start
        The text before the first open slot, given or not.
    label, row
        The label of its row of facts, and the row; None and empty without rows.
    written
        The template.
    schemas
        The texts of the JSON Schemas of its open slots.
    patterns
        The patterns of its other open slots, if there are schemas.
    """

    question: Question
    template: str
    values: tuple[tuple[str, str], ...]
    open: tuple[str, ...]
    query: Query
    start: str = ""
    label: str | None = None
    row: Mapping[str, str] = field(default_factory=dict)
    written: Template = field(default=Template("", ""), repr=False)
    schemas: tuple[str, ...] = field(default=(), repr=False)
    patterns: tuple[str, ...] = field(default=(), repr=False)

    def query_data(self) -> dict[str, Any]:
        """Returns the query as data; a language with schemas by its parts."""
        if not self.schemas:
            return query_data(self.query)
        fixed = {name: self.row[name] for name in self.written.slots if name in self.row}
        fixed |= self.values
        made: list[object] = [self.written.text, *self.schemas]
        if fixed or self.patterns:
            made.append({"filled": fixed, "patterns": list(self.patterns)})
        return query_data(self.query, language=made)

    @property
    def where(self) -> dict[str, str]:
        """The coordinates that distinguish it from the other items of its query."""
        row = {} if self.label is None else {"row": self.label}
        return {"template": self.template, **row, **dict(self.values)}

    def filled(self, text: str) -> str:
        """Returns the whole text with a string in its single open slot."""
        return self.written.filled({**self.row, **dict(self.values), self.open[0]: text})

    @property
    def targets(self) -> tuple[str, ...]:
        """The strings to be scored."""
        answer = self.question.answer
        return self.question.targets if answer is None else (self.row[answer],)


def items_of(
    questions: Iterable[Question],
    templates: Mapping[str, Template],
    slots: Mapping[str, Slot],
    rows: Mapping[str, Rows],
    limit: int,
) -> list[Item]:
    """Returns all items; see :meth:`formalm.suites.Suite.items`."""
    listed = list(questions)
    count = sum(
        len(question.templates)
        * math.prod(len(_texts(slots[name])) for name in question.each)
        * (1 if question.rows is None else len(rows[question.rows].rows))
        for question in listed
    )
    if count > limit:
        raise LimitError("items", count, limit)
    return [
        item_of(question, templates[name], slots, values, label, row)
        for question in listed
        for name in question.templates
        for label, row in _labeled(question, rows)
        for values in _combinations(question, slots)
    ]


def item_of(
    question: Question,
    template: Template,
    slots: Mapping[str, Slot],
    values: Mapping[str, str],
    label: str | None = None,
    row: Mapping[str, str] = NO_ROW,
) -> Item:
    """Returns the item with these values."""
    fixed = {**{name: row[name] for name in template.slots if name in row}, **values}
    filled = {
        name: resolved(slots[name], slots, row) for name in template.slots if name not in fixed
    }
    language, start, names = language_of(template, filled, fixed)
    if question.begins is not None:
        start = question.begins
    elif isinstance(question.given, str):
        start = _up_to(question.given, template, fixed)
    data: dict[str, Any] = {"format": FORMAT, "version": VERSION, **question.fields}
    says = isinstance(question.given, str) or question.begins is not None
    if question.given and start and (names or says):
        data["given"] = {"kind": "literal", "text": start}
    pairs = tuple(values.items())
    opened = [filled[name] for name in names]
    schemas = tuple(slot.schema for slot in opened if slot.schema is not None)
    patterns = tuple(slot.group for slot in opened if slot.schema is None) if schemas else ()
    # Parse the other fields first, with a placeholder for the language.
    data["language"] = {"kind": "literal", "text": start} if schemas else to_data(language)
    query = read_query(data)
    if schemas:
        query = replace(query, language=language)
    fields = (question, template.name, pairs, names, query, start, label, row, template)
    return Item(*fields, schemas, patterns)


def _up_to(name: str, template: Template, fixed: Mapping[str, str]) -> str:
    """Returns the text up to and including a filled slot."""
    text = ""
    for piece in template.pieces:
        text += fixed[piece.text] if piece.is_slot else piece.text
        if piece.is_slot and piece.text == name:
            break
    return text.rstrip()


def _labeled(
    question: Question, rows: Mapping[str, Rows]
) -> Iterator[tuple[str | None, Mapping[str, str]]]:
    if question.rows is None:
        return iter([(None, NO_ROW)])
    return iter(rows[question.rows].labeled())


def _combinations(question: Question, slots: Mapping[str, Slot]) -> Iterator[dict[str, str]]:
    for values in product(*(_texts(slots[name]) for name in question.each)):
        yield dict(zip(question.each, values, strict=True))


def _texts(slot: Slot) -> tuple[str, ...]:
    assert slot.texts is not None  # a suite is read only if what it fills has texts
    return slot.texts
