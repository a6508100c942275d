"""Shapes, the evaluated TypeScript types: sets of JSON values."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

__all__ = [
    "ABSENT",
    "NEVER",
    "ArrayType",
    "IntersectionType",
    "LiteralType",
    "ObjectType",
    "PatternType",
    "PrimitiveType",
    "Property",
    "Shape",
    "TupleType",
    "TypeReference",
    "UnionType",
    "depth_of",
    "kind_of",
    "literal_type",
    "union",
]


@dataclass(frozen=True)
class Shape:
    """A set of values."""


@dataclass(frozen=True)
class PrimitiveType(Shape):
    """A primitive type.

    ``string number integer boolean null unknown any object``; ``undefined``, which JSON lacks;
    ``never``, the empty type.
    """

    name: str


ABSENT = PrimitiveType("undefined")
NEVER = PrimitiveType("never")


@dataclass(frozen=True)
class LiteralType(Shape):
    """A literal type. The kind distinguishes ``true`` from ``1``, which are equal in Python."""

    kind: str
    value: str | int | Decimal | bool


@dataclass(frozen=True)
class PatternType(Shape):
    """The strings that an ECMAScript pattern matches as a whole."""

    pattern: str


@dataclass(frozen=True)
class ArrayType(Shape):
    """An array of any length."""

    item: Shape


@dataclass(frozen=True)
class TupleType(Shape):
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
class ObjectType(Shape):
    """Properties, and index signatures as pairs of key and value."""

    properties: tuple[Property, ...]
    signatures: tuple[tuple[Shape, Shape], ...] = ()


@dataclass(frozen=True)
class UnionType(Shape):
    """The union of its options."""

    options: tuple[Shape, ...]


@dataclass(frozen=True)
class IntersectionType(Shape):
    """An intersection that the schema expresses."""

    parts: tuple[Shape, ...]


@dataclass(frozen=True)
class TypeReference(Shape):
    """A declaration or an operation with its arguments, evaluated lazily."""

    name: str
    arguments: tuple[Shape, ...] = ()


def union(options: list[Shape]) -> Shape:
    """Returns the union without duplicates."""
    unique = list(dict.fromkeys(option for option in options if option != NEVER))
    if len(unique) == 1:
        return unique[0]
    return UnionType(tuple(unique)) if unique else NEVER


def kind_of(shape: Shape) -> str:
    """Returns the kind of a type's values.

    ``string number boolean null object array undefined never any unknown``, or ``object?``, which
    is an object or an array.
    """
    match shape:
        case PrimitiveType("integer"):
            return "number"
        case PrimitiveType("object"):
            return "object?"
        case PrimitiveType(name):
            return name
        case LiteralType(kind, _):
            return kind
        case PatternType() | IntersectionType():
            return "string"
        case ObjectType():
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
        case TypeReference(_, parts) | UnionType(parts):
            return parts
        case ArrayType(item):
            return (item,)
        case TupleType(items, rest):
            return (*(item for item, _ in items), *(() if rest is None else (rest,)))
        case ObjectType(properties, signatures):
            return (*(one.shape for one in properties), *(one for _, one in signatures))
    return ()


def literal_type(value: str | int | Decimal | bool) -> LiteralType:
    """Returns the literal type of a value."""
    if isinstance(value, bool):
        return LiteralType("boolean", value)
    return LiteralType("string" if isinstance(value, str) else "number", value)
