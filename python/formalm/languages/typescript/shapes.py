"""What types mean: the values they have, as far as JSON has them."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

__all__ = [
    "ABSENT",
    "NEVER",
    "Array",
    "Fixed",
    "Object",
    "Property",
    "Reference",
    "Shape",
    "Simple",
    "Spelled",
    "Together",
    "Tuple",
    "Union",
    "depth_of",
    "fixed",
    "kind_of",
    "union",
]


@dataclass(frozen=True)
class Shape:
    """A set of values."""


@dataclass(frozen=True)
class Simple(Shape):
    """A type with a name of its own.

    ``string number integer boolean null unknown any object``; ``undefined``, which JSON has not;
    ``never``, which nothing is.
    """

    name: str


ABSENT = Simple("undefined")
NEVER = Simple("never")


@dataclass(frozen=True)
class Fixed(Shape):
    """One value. The kind keeps ``true`` and ``1`` apart, which Python takes for equal."""

    kind: str
    value: str | int | Decimal | bool


@dataclass(frozen=True)
class Spelled(Shape):
    """Strings that a pattern of ECMAScript matches as a whole."""

    pattern: str


@dataclass(frozen=True)
class Array(Shape):
    """Any number of items."""

    item: Shape


@dataclass(frozen=True)
class Tuple(Shape):
    """Items in order, each with whether it is optional, and what may follow them."""

    items: tuple[tuple[Shape, bool], ...]
    rest: Shape | None = None


@dataclass(frozen=True)
class Property:
    """A member of an object."""

    name: str
    shape: Shape
    optional: bool
    comment: str | None = None


@dataclass(frozen=True)
class Object(Shape):
    """Named members, and index signatures as pairs of key and value."""

    properties: tuple[Property, ...]
    signatures: tuple[tuple[Shape, Shape], ...] = ()


@dataclass(frozen=True)
class Union(Shape):
    """What any of the options has."""

    options: tuple[Shape, ...]


@dataclass(frozen=True)
class Together(Shape):
    """What all parts have, of which the schema takes care."""

    parts: tuple[Shape, ...]


@dataclass(frozen=True)
class Reference(Shape):
    """A declaration or an operation with its arguments, worked out when it is needed."""

    name: str
    arguments: tuple[Shape, ...] = ()


def union(options: list[Shape]) -> Shape:
    """The union, without what is there twice."""
    unique = list(dict.fromkeys(option for option in options if option != NEVER))
    if len(unique) == 1:
        return unique[0]
    return Union(tuple(unique)) if unique else NEVER


def kind_of(shape: Shape) -> str:
    """What kind of values a type has.

    ``string number boolean null object array undefined never any unknown``, or ``object?``, which
    is an object or an array.
    """
    match shape:
        case Simple("integer"):
            return "number"
        case Simple("object"):
            return "object?"
        case Simple(name):
            return name
        case Fixed(kind, _):
            return kind
        case Spelled() | Together():
            return "string"
        case Object():
            return "object"
        case _:
            return "array"


def depth_of(shape: Shape, limit: int) -> int:
    """How deep types are nested in a type; counted no further than just beyond the limit."""
    depth, level = 0, [shape]
    while level and depth <= limit:
        level = [inner for one in level for inner in _inner(one)]
        depth += 1
    return depth


def _inner(shape: Shape) -> tuple[Shape, ...]:
    match shape:
        case Reference(_, parts) | Union(parts):
            return parts
        case Array(item):
            return (item,)
        case Tuple(items, rest):
            return (*(item for item, _ in items), *(() if rest is None else (rest,)))
        case Object(properties, signatures):
            return (*(one.shape for one in properties), *(one for _, one in signatures))
    return ()


def fixed(value: str | int | Decimal | bool) -> Fixed:
    """The type of one value."""
    if isinstance(value, bool):
        return Fixed("boolean", value)
    return Fixed("string" if isinstance(value, str) else "number", value)
