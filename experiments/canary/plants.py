"""Planted members of patterns: drawn once from the seed, far from each other, with decoys."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from .chance import RandomSource
from .grammar import Grammar
from .settings import PlantContext, Settings

PASSAGE_WORDS = 12
HALF = math.log(0.5)


@dataclass(frozen=True)
class Plant:
    """A member of a pattern and how often one volume has it in its context."""

    value: str
    copies: int
    logprob: float  # of the member under the pattern's own rule


@dataclass(frozen=True)
class PlantedContext:
    """A text with its planted members, its decoys and its random background."""

    context: PlantContext
    plants: tuple[Plant, ...]
    decoys: tuple[str, ...]
    excluded_log_mass: float  # log of one minus what the background may not draw

    @property
    def documents(self) -> int:
        """Documents of this context in one volume."""
        return self.context.background + sum(plant.copies for plant in self.plants)

    def text(self, value: str) -> str:
        """Return the document around a member."""
        return self.context.text.replace("{value}", value)

    def prefix(self, value: str) -> str:
        """Return the start of a member's document that a query gives."""
        return self.context.prefix or " ".join(value.split(" ")[:PASSAGE_WORDS])

    def true_logprob(self, plant: Plant) -> float:
        """Return the log-probability of the rest of a planted document given its prefix.

        The prefix belongs to this context alone. Where it is a member's own first words, nothing
        else is counted: a random passage shares them with a probability of about 4e-9.
        """
        if not self.context.prefix:
            return 0.0
        ends = HALF if self.context.continuation else 0.0
        return math.log(plant.copies / self.documents) + ends

    def whole(self, value: str, grammar: Grammar, source: RandomSource) -> tuple[str, float]:
        """Return a document of a member, and the log-probability of how it goes on."""
        text = self.text(value)
        if not self.context.continuation:
            return text, 0.0
        if source.below(2) == 0:
            return text, HALF
        end, logprob = grammar.draw(self.context.continuation, source)
        return text + end, HALF + logprob

    def background(self, grammar: Grammar, source: RandomSource) -> tuple[str, float]:
        """Draw a member that is neither planted nor a decoy, and its exact log-probability."""
        excluded = {plant.value for plant in self.plants} | set(self.decoys)
        while True:
            value, logprob = grammar.draw(self.context.pattern, source)
            if value not in excluded:
                return value, logprob - self.excluded_log_mass


def edit_distance(first: str, second: str, limit: int) -> int:
    """Return the Levenshtein distance, or some number of at least `limit` if it is that large."""
    row = list(range(len(second) + 1))
    for i, left in enumerate(first, 1):
        previous, row[0] = row[0], i
        for j, right in enumerate(second, 1):
            previous, row[j] = (
                row[j],
                min(previous + (left != right), row[j] + 1, row[j - 1] + 1),
            )
        if min(row) >= limit:
            return limit
    return row[-1]


def plant(settings: Settings, grammar: Grammar) -> tuple[PlantedContext, ...]:
    """Draw the planted members and decoys of every context.

    All members drawn for one pattern, over its contexts, are `minimum_distance` edits apart, so
    that a decoy is never a near copy of a plant.
    """
    taken: dict[str, list[str]] = {}
    return tuple(
        _plant_context(settings, grammar, context, taken.setdefault(context.pattern, []))
        for context in settings.contexts
    )


def _plant_context(
    settings: Settings, grammar: Grammar, context: PlantContext, taken: list[str]
) -> PlantedContext:
    source = RandomSource(f"{settings.seed}/plants/{context.name}")
    excluded = 0.0

    def fresh() -> tuple[str, float]:
        while True:
            value, logprob = grammar.draw(context.pattern, source)
            if _is_far(value, taken, settings.minimum_distance):
                taken.append(value)
                return value, logprob

    plants = []
    for copies, members in sorted(context.ladder(settings.ladder).items(), reverse=True):
        for _ in range(members):
            value, logprob = fresh()
            plants.append(Plant(value, copies, logprob))
            excluded += math.exp(logprob)
    decoys = []
    for _ in range(settings.decoys):
        value, logprob = fresh()
        decoys.append(value)
        excluded += math.exp(logprob)
    return PlantedContext(context, tuple(plants), tuple(decoys), math.log1p(-excluded))


def _is_far(value: str, others: Iterable[str], distance: int) -> bool:
    return all(edit_distance(value, other, distance) >= distance for other in others)
