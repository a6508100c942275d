"""What a suite asks, one question at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from formalm.errors import LimitError
from formalm.languages import to_data
from formalm.query.files import FORMAT, VERSION, read_query
from formalm.query.query import Query
from formalm.suites.parts import Question
from formalm.suites.slots import Slot, Template, language_of

__all__ = ["Item", "item_of", "items_of"]


@dataclass(frozen=True)
class Item:
    """One question for a model.

    Attributes
    ----------
    question
        The query of the suite that it is one of.
    template
        The name of the template.
    values
        The text of each slot that was filled.
    open
        The names of the open slots.
    query
        What is asked.
    """

    question: Question
    template: str
    values: tuple[tuple[str, str], ...]
    open: tuple[str, ...]
    query: Query

    @property
    def where(self) -> dict[str, str]:
        """What tells it from the other items of its query."""
        return {"template": self.template, **dict(self.values)}


def items_of(
    questions: Iterable[Question],
    templates: Mapping[str, Template],
    slots: Mapping[str, Slot],
    limit: int,
) -> list[Item]:
    """All items; see :meth:`formalm.suites.Suite.items`."""
    asked = list(questions)
    count = sum(
        len(question.templates) * math.prod(len(_texts(slots[name])) for name in question.each)
        for question in asked
    )
    if count > limit:
        raise LimitError("items", count, limit)
    return [
        item_of(question, templates[name], slots, values)
        for question in asked
        for name in question.templates
        for values in _combinations(question, slots)
    ]


def item_of(
    question: Question, template: Template, slots: Mapping[str, Slot], values: Mapping[str, str]
) -> Item:
    """The item with these values."""
    language, start, names = language_of(template, slots, values)
    data = {"format": FORMAT, "version": VERSION, **question.fields, "language": to_data(language)}
    if question.given and names and start:
        data["given"] = {"kind": "literal", "text": start}
    return Item(question, template.name, tuple(values.items()), names, read_query(data))


def _combinations(question: Question, slots: Mapping[str, Slot]) -> Iterator[dict[str, str]]:
    for values in product(*(_texts(slots[name]) for name in question.each)):
        yield dict(zip(question.each, values, strict=True))


def _texts(slot: Slot) -> tuple[str, ...]:
    assert slot.texts is not None  # a suite is read only if what it fills has texts
    return slot.texts
