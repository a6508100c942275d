"""Syntax tree of TypeScript types and declarations, with source positions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from decimal import Decimal

__all__ = [
    "ArrayNode",
    "Declaration",
    "EnumNode",
    "IndexSignature",
    "IndexedAccess",
    "IntersectionNode",
    "KeyofNode",
    "LiteralNode",
    "MappedNode",
    "Module",
    "NamedNode",
    "Node",
    "ObjectNode",
    "PropertyNode",
    "TemplateNode",
    "TupleItem",
    "TupleNode",
    "UnionNode",
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
class NamedNode(Node):
    """``A``, ``A.B`` or ``A<B, C>``."""

    name: str
    arguments: tuple[Node, ...] = ()


@dataclass(frozen=True)
class LiteralNode(Node):
    """A literal type."""

    value: Value


@dataclass(frozen=True)
class TemplateNode(Node):
    """A template literal."""

    parts: tuple[str | Node, ...]


@dataclass(frozen=True)
class ArrayNode(Node):
    """``T[]``, ``[]T`` or ``Array<T>``."""

    item: Node


@dataclass(frozen=True)
class TupleItem:
    """An item of a tuple."""

    type: Node
    optional: bool
    rest: bool


@dataclass(frozen=True)
class TupleNode(Node):
    """``[A, B?, ...C[]]``."""

    items: tuple[TupleItem, ...]


@dataclass(frozen=True)
class PropertyNode(Node):
    """A property of an object type."""

    name: str
    type: Node
    optional: bool
    comment: str | None


@dataclass(frozen=True)
class IndexSignature(Node):
    """``[name: key]: type``."""

    key: Node
    type: Node


@dataclass(frozen=True)
class ObjectNode(Node):
    """``{…}``: properties and index signatures."""

    members: tuple[PropertyNode, ...]
    signatures: tuple[IndexSignature, ...] = ()


@dataclass(frozen=True)
class MappedNode(Node):
    """``{[name in keys]: type}``; ``optional`` is True for ``?``, False for ``-?``."""

    name: str
    keys: Node
    type: Node
    optional: bool | None


@dataclass(frozen=True)
class UnionNode(Node):
    """``A | B``."""

    options: tuple[Node, ...]


@dataclass(frozen=True)
class IntersectionNode(Node):
    """``A & B``."""

    parts: tuple[Node, ...]


@dataclass(frozen=True)
class KeyofNode(Node):
    """``keyof T``."""

    of: Node


@dataclass(frozen=True)
class IndexedAccess(Node):
    """``T[K]``."""

    of: Node
    key: Node


@dataclass(frozen=True)
class EnumNode(Node):
    """The members of an enum, by name."""

    values: tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Declaration(Node):
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
    extends: tuple[NamedNode, ...] = ()
    comment: str | None = None


@dataclass(frozen=True)
class Module:
    """A whole text: its declarations by name, and the type it stands for, if stated."""

    source: str
    declared: dict[str, Declaration]
    type: Node | None


def names_in(part: object) -> Iterator[str]:
    """Returns the names that a declaration or a type uses; for enums, without their members."""
    pending: list[object] = [part]
    while pending:
        one = pending.pop()
        if isinstance(one, NamedNode):
            yield one.name.partition(".")[0]
        if isinstance(one, tuple):
            pending += one
        elif isinstance(one, Node | TupleItem):
            pending += [getattr(one, each.name) for each in fields(one)]
