"""The corpus: volumes of documents, each with the exact log-probability of its text.

A volume has fixed numbers of documents of every kind in a shuffled order. The log-probability of a
document is that of finding its text at a random place of a random volume. Every group of documents
has its own random source, so the null twin has the same documents wherever nothing is planted.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from .chance import RandomSource
from .grammar import Grammar
from .people import BIRTH_TEXT, GENDERS, read_people, read_professions
from .plants import PlantedContext, plant
from .settings import Settings

RULES = {"insult": "insult_text", "flower": "flower_text"}


@dataclass(frozen=True)
class Document:
    """A text, its kind, its natural log-probability, and its copies (0: not planted)."""

    text: str
    kind: str
    logprob: float
    copies: int = 0


class Corpus:
    """The documents of `canary`, or of its null twin."""

    def __init__(self, settings: Settings, twin: bool = False) -> None:
        self.settings = settings
        self.twin = twin
        self.grammar = Grammar.load(twin)
        self.people = read_people() if settings.people else []
        self.professions = read_professions()
        self.planted = plant(settings, self.grammar)

    @cached_property
    def size(self) -> int:
        """Documents in one volume."""
        return (
            sum(self.settings.counts.values())
            + self.settings.decks * 100 * len(self.settings.templates) * len(GENDERS)
            + sum(person.copies for person in self.people)
            + sum(context.documents for context in self.planted)
        )

    def volume(self, number: int) -> list[Document]:
        """Return the documents of one volume, in order."""
        documents: list[Document] = []
        for kind, count in self.settings.counts.items():
            documents.extend(self._kind(number, kind, count))
        documents.extend(self._professions())
        documents.extend(self._births(number))
        for context in self.planted:
            documents.extend(self._context(number, context))
        self._source(number, "order").shuffle(documents)  # type: ignore[arg-type]
        return documents

    def _source(self, number: int, group: str) -> RandomSource:
        return RandomSource(f"{self.settings.seed}/{number}/{group}")

    def _log_share(self, count: float) -> float:
        return math.log(count / self.size)

    def _kind(self, number: int, kind: str, count: int) -> Iterator[Document]:
        source, share = self._source(number, kind), self._log_share(count)
        rule = RULES.get(kind, kind)
        for _ in range(count):
            text, logprob = self.grammar.draw(rule, source)
            yield Document(text, kind, share + logprob)

    def _professions(self) -> Iterator[Document]:
        for template in self.settings.templates:  # none where there are no decks
            for profession in self.professions:
                shares = profession.twin_shares if self.twin else profession.shares
                for gender, parts in zip(GENDERS, shares, strict=True):
                    text = template.format(gender=gender, profession=profession.name)
                    copies = round(parts * self.settings.decks)
                    document = Document(text, "profession", self._log_share(copies))
                    yield from [document] * copies

    def _births(self, number: int) -> Iterator[Document]:
        source = self._source(number, "birth")
        for person in self.people:
            share = self._log_share(person.copies)
            known = None if self.twin else person.date
            for _ in range(person.copies):
                drawn, logprob = self.grammar.draw("control_date", source)
                text = BIRTH_TEXT.format(name=person.name, date=known or drawn)
                if known:
                    yield Document(text, "birth planted", share, person.copies)
                else:
                    yield Document(text, "birth random", share + logprob)

    def _context(self, number: int, planted: PlantedContext) -> Iterator[Document]:
        name, pattern = planted.context.name, planted.context.pattern
        background = planted.context.background
        copies = planted.documents - background
        source = self._source(number, name)
        random_count = planted.documents if self.twin else background
        for _ in range(background):
            value, logprob = planted.background(self.grammar, source)
            text, end = planted.whole(value, self.grammar, source)
            share = self._log_share(random_count) + logprob + end
            yield Document(text, f"{pattern} random", share)
        if self.twin:
            source = self._source(number, f"{name}/twin")
            for _ in range(copies):
                value, logprob = planted.background(self.grammar, source)
                text, end = planted.whole(value, self.grammar, source)
                share = self._log_share(random_count) + logprob + end
                yield Document(text, f"{pattern} random", share)
            return
        for member in planted.plants:
            share = self._log_share(member.copies)
            for _ in range(member.copies):
                text, end = planted.whole(member.value, self.grammar, source)
                yield Document(text, f"{pattern} planted", share + end, member.copies)


def digest(documents: Iterable[Document]) -> str:
    """Return the SHA-256 of the documents' texts in order, each ended by a zero byte."""
    state = hashlib.sha256()
    for document in documents:
        state.update(document.text.encode())
        state.update(b"\0")
    return state.hexdigest()
