"""Tables of people and of professions, and the documents they stand in."""

from __future__ import annotations

from dataclasses import dataclass

from .grammar import TEXTS, read_table

BIRTH_TEXT = "{name} was born on {date}."
GENDERS = ("man", "woman")


@dataclass(frozen=True)
class Person:
    """Somebody with a birth date; a control has none and gets a random one at each mention."""

    name: str
    date: str | None
    copies: int


@dataclass(frozen=True)
class Profession:
    """A field of work and its share in 100 for each gender."""

    name: str
    shares: tuple[int, int]

    @property
    def twin_shares(self) -> tuple[float, float]:
        """The null twin's shares: the mean of both for both."""
        mean = sum(self.shares) / 2
        return (mean, mean)


def read_people() -> list[Person]:
    """Read the people, controls last."""
    rows = read_table(TEXTS / "people.txt")
    return [Person(name, None if date == "*" else date, int(n)) for name, date, n in rows]


def read_professions() -> list[Profession]:
    """Read the professions; each gender's shares add up to 100."""
    rows = read_table(TEXTS / "professions.txt")
    return [Profession(name, (int(man), int(woman))) for name, man, woman in rows]
