"""Syntax tree of TypeScript types and declarations, with source positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal

__all__ = [
    "ArrayOf",
    "Declared",
    "EnumOf",
    "Fixed",
    "Indexed",
    "Intersection",
    "Item",
    "KeysOf",
    "Mapped",
    "Member",
    "Module",
    "Named",
    "Node",
    "ObjectOf",
    "Signature",
    "Template",
    "TupleOf",
    "Union",
    "Value",
    "names_in",
]

Span = tuple[int, int]
Value = str | int | Decimal | bool


@dataclass(frozen=True)
class Node:
    """A type, or a part of one."""

    span: Span


@dataclass(frozen=True)
class Named(Node):
    """``A``, ``A.B`` or ``A<B, C>``."""

    name: str
    arguments: tuple[Node, ...] = ()


@dataclass(frozen=True)
class Fixed(Node):
    """A literal type."""

    value: Value


@dataclass(frozen=True)
class Template(Node):
    """A template literal."""

    parts: tuple[str | Node, ...]


@dataclass(frozen=True)
class ArrayOf(Node):
    """``T[]``, ``[]T`` or ``Array<T>``."""

    item: Node


@dataclass(frozen=True)
class Item:
    """An item of a tuple."""

    type: Node
    optional: bool
    rest: bool


@dataclass(frozen=True)
class TupleOf(Node):
    """``[A, B?, ...C[]]``."""

    items: tuple[Item, ...]


@dataclass(frozen=True)
class Member(Node):
    """A property of an object type."""

    name: str
    type: Node
    optional: bool
    comment: str | None


@dataclass(frozen=True)
class Signature(Node):
    """``[name: key]: type``."""

    key: Node
    type: Node


@dataclass(frozen=True)
class ObjectOf(Node):
    """``{…}``: properties and index signatures."""

    members: tuple[Member, ...]
    signatures: tuple[Signature, ...] = ()


@dataclass(frozen=True)
class Mapped(Node):
    """``{[name in keys]: type}``; ``optional`` is True for ``?``, False for ``-?``."""

    name: str
    keys: Node
    type: Node
    optional: bool | None


@dataclass(frozen=True)
class Union(Node):
    """``A | B``."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class Intersection(Node):
    """``A & B``."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class KeysOf(Node):
    """``keyof T``."""

    of: Node


@dataclass(frozen=True)
class Indexed(Node):
    """``T[K]``."""

    of: Node
    key: Node


@dataclass(frozen=True)
class EnumOf(Node):
    """The members of an enum, by name."""

    values: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Declared(Node):
    """An interface, a type alias or an enum.

    Attributes
    ----------
    name, type
        Its name, and its type without what it extends.
    parameters
        Names and defaults of its type parameters.
    extends
        The types that an interface extends.
    comment
        Its documentation, or None.
    """

    name: str
    type: Node
    parameters: tuple[tuple[str, Node | None], ...] = ()
    extends: tuple[Named, ...] = ()
    comment: str | None = None


@dataclass(frozen=True)
class Module:
    """A whole text: its declarations by name, and the type it stands for, if stated."""

    source: str
    declared: dict[str, Declared]
    type: Node | None


def names_in(part: object) -> Iterator[str]:
    """Returns the names that a declaration or a type uses; for enums, without their members."""
    pending: list[object] = [part]
    while pending:
        one = pending.pop()
        if isinstance(one, Named):
            yield one.name.partition(".")[0]
        if isinstance(one, tuple):
            pending += one
        elif isinstance(one, Node | Item):
            pending += [getattr(one, each.name) for each in fields(one)]
