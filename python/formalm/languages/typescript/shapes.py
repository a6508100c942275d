"""Shapes, the evaluated TypeScript types: sets of JSON values."""

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
    """A primitive type.

    ``string number integer boolean null unknown any object``; ``undefined``, which JSON lacks;
    ``never``, the empty type.
    """

    name: str


ABSENT = Simple("undefined")
NEVER = Simple("never")


@dataclass(frozen=True)
class Fixed(Shape):
    """A literal type. The kind distinguishes ``true`` from ``1``, which are equal in Python."""

    kind: str
    value: str | int | Decimal | bool


@dataclass(frozen=True)
class Spelled(Shape):
    """The strings that an ECMAScript pattern matches as a whole."""

    pattern: str


@dataclass(frozen=True)
class Array(Shape):
    """An array of any length."""

    item: Shape


@dataclass(frozen=True)
class Tuple(Shape):
    """Items in order, each optional or not, and the rest type."""

    items: tuple[tuple[Shape, bool], ...]
    rest: Shape | None = None


@dataclass(frozen=True)
class Property:
    """A property of an object."""

    name: str
    shape: Shape
    optional: bool
    comment: str | None = None


@dataclass(frozen=True)
class Object(Shape):
    """Properties, and index signatures as pairs of key and value."""

    properties: tuple[Property, ...]
    signatures: tuple[tuple[Shape, Shape], ...] = ()


@dataclass(frozen=True)
class Union(Shape):
    """The union of its options."""

    options: tuple[Shape, ...]


@dataclass(frozen=True)
class Together(Shape):
    """An intersection that the schema expresses."""

    parts: tuple[Shape, ...]


@dataclass(frozen=True)
class Reference(Shape):
    """A declaration or an operation with its arguments, evaluated lazily."""

    name: str
    arguments: tuple[Shape, ...] = ()


def union(options: list[Shape]) -> Shape:
    """Returns the union without duplicates."""
    unique = list(dict.fromkeys(option for option in options if option != NEVER))
    if len(unique) == 1:
        return unique[0]
    return Union(tuple(unique)) if unique else NEVER


def kind_of(shape: Shape) -> str:
    """Returns the kind of a type's values.

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
    """Returns the nesting depth of a type, counted at most just beyond the limit."""
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
    """Returns the literal type of a value."""
    if isinstance(value, bool):
        return Fixed("boolean", value)
    return Fixed("string" if isinstance(value, str) else "number", value)
