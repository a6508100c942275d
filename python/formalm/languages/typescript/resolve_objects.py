"""Evaluation of object types, mapped types and tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.types import (
    ArrayType,
    LiteralType,
    ObjectType,
    PatternType,
    PrimitiveType,
    Property,
    Shape,
    TupleType,
    kind_of,
)

if TYPE_CHECKING:
    from formalm.languages.typescript.resolve import Names, TypeResolver

__all__ = ["mapped_shape", "object_shape", "tuple_shape"]

NUMBER_KEYS = "use string, or `${bigint}` for integers"


def object_shape(node: syntax_tree.ObjectNode, names: Names, types: TypeResolver) -> Shape:
    """Evaluates properties and index signatures."""
    properties = [
        Property(one.name, types.shape(one.type, names), one.optional, one.comment)
        for one in node.members
    ]
    signatures: dict[Shape, Shape] = {}
    for signature in node.signatures:
        key = _key(signature.key, names, types)
        if key in signatures:
            refuse(types.source, signature.span, "two index signatures have the same key")
        signatures[key] = types.shape(signature.type, names)
    return ObjectType(tuple(properties), tuple(signatures.items()))


def _key(node: syntax_tree.Node, names: Names, types: TypeResolver) -> Shape:
    key = types.resolve(types.shape(node, names))
    if kind_of(key) == "number":
        refuse(
            types.source,
            node.span,
            "index signatures with number keys are not supported",
            hint=NUMBER_KEYS,
        )
    if not isinstance(key, PrimitiveType | PatternType) or kind_of(key) != "string":
        refuse(types.source, node.span, "the key of an index signature must be a string")
    return key


def mapped_shape(node: syntax_tree.MappedNode, names: Names, types: TypeResolver) -> Shape:
    """Evaluates a mapped type to properties (literal keys) and index signatures (other keys)."""
    if node.optional is False or isinstance(node.keys, syntax_tree.KeyofNode):
        message = "mapped types over the keys of a type are not supported"
        hint = "use Partial, Required, Pick or Omit"
        refuse(types.source, node.span, message, hint=hint)
    properties, signatures = [], []
    for key in types.options(types.shape(node.keys, names)):
        value = types.shape(node.type, {**names, node.name: key})
        if isinstance(key, LiteralType) and key.kind != "boolean":
            properties.append(Property(str(key.value), value, bool(node.optional)))
        elif isinstance(key, PrimitiveType | PatternType) and kind_of(key) == "string":
            signatures.append((key, value))
        else:
            unsure = NUMBER_KEYS if kind_of(key) == "number" else None
            refuse(
                types.source,
                node.keys.span,
                "the keys of a mapped type must be strings",
                hint=unsure,
            )
    return ObjectType(tuple(properties), tuple(signatures))


def tuple_shape(node: syntax_tree.TupleNode, names: Names, types: TypeResolver) -> Shape:
    """Evaluates items and rest; spread tuples become items."""
    items: list[tuple[Shape, bool]] = []
    rest: Shape | None = None
    for item in node.items:
        shape = types.shape(item.type, names)
        if rest is not None:
            refuse(types.source, item.type.span, "items after a rest item are not supported")
        if not item.rest:
            if not item.optional and any(optional for _, optional in items):
                refuse(types.source, item.type.span, "optional items must come last")
            items.append((shape, item.optional))
            continue
        spread = types.resolve(shape)
        if isinstance(spread, ArrayType):
            rest = spread.item
        elif isinstance(spread, TupleType) and not any(optional for _, optional in items):
            items += spread.items
            rest = spread.rest
        else:
            refuse(
                types.source, item.type.span, "a rest item of a tuple must be an array or a tuple"
            )
    return TupleType(tuple(items), rest)
