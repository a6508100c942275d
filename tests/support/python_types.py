"""Types for tests: thirty-odd of Python, each with whether JSON shows its values unchanged."""

from __future__ import annotations

import collections
import datetime
import enum
import ipaddress
import pathlib
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, Optional, TypeVar, Union

from pydantic import (
    UUID4,
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    NaiveDatetime,
    RootModel,
    StringConstraints,
)
from typing_extensions import NotRequired, TypedDict


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: int = 0


@dataclass
class Tree:
    label: str
    children: list[Tree] = field(default_factory=list)


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    first: int
    second: str = "x"


class Address(BaseModel):
    street: str
    number: Annotated[int, Field(ge=1, le=99)]


class Person(BaseModel):
    """A person."""

    name: str = Field(alias="fullName", min_length=1, max_length=5)
    born: datetime.date
    address: Optional[Address] = None  # noqa: UP045
    friends: list[Person] = []
    color: Color = Color.RED


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    a: bool


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]


class Animal(BaseModel):
    animal: Annotated[Union[Cat, Dog], Field(discriminator="kind")]  # noqa: UP007


class Numbers(RootModel[list[float]]):
    pass


T = TypeVar("T")


class Page(BaseModel, Generic[T]):
    items: list[T]
    following: int | None


#: A type, and whether the JSON of a value is the JSON that it was made from: data classes add
#: their defaults, times and numbers have several spellings.
TYPES: list[tuple[Any, bool]] = [
    (str, True),
    (int, True),
    (float, True),
    (bool, True),
    (type(None), True),
    (bytes, True),
    (Any, True),
    (list[int], True),
    (list[list[bool]], True),
    (tuple[int, str], True),
    (tuple[bool, ...], True),
    (set[int], False),
    (frozenset[str], False),
    (dict[str, int], True),
    (dict[int, bool], True),
    (dict[Color, int], True),
    (dict[datetime.date, None], True),
    (Mapping[str, float], True),
    (Sequence[str], True),
    (collections.deque[int], True),
    (Literal["a", 1, True], True),
    (Color, True),
    (Level, True),
    (int | str | None, True),
    (Optional[bool], True),  # noqa: UP045
    (Annotated[int, Field(gt=3, lt=20, multiple_of=4)], True),
    (Annotated[float, Field(ge=0, le=1)], True),
    (Annotated[str, Field(pattern="^[a-z]+[0-9]$", max_length=6)], True),
    (Annotated[str, StringConstraints(strip_whitespace=True, min_length=2, max_length=4)], True),
    (Annotated[list[int], Field(min_length=2, max_length=3)], True),
    (Annotated[bytes, Field(max_length=3)], True),
    (datetime.date, True),
    (datetime.time, False),
    (datetime.datetime, False),
    (AwareDatetime, False),
    (NaiveDatetime, False),
    (datetime.timedelta, False),
    (uuid.UUID, False),
    (UUID4, False),
    (Decimal, False),
    (Annotated[Decimal, Field(gt=0, max_digits=5, decimal_places=2)], False),
    (ipaddress.IPv4Address, True),
    (pathlib.PurePosixPath, False),
    (Point, False),
    (Tree, False),
    (Movie, True),
    (Pair, False),
    (Address, True),
    (Person, True),
    (Open, True),
    (Animal, True),
    (Numbers, True),
    (Page[Point], False),
    (Page[Page[str]], True),
    (list[Cat | Dog], True),
]
