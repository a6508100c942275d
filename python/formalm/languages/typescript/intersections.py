"""Intersections of TypeScript types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from formalm.errors import LanguageError, LimitError
from formalm.languages.typescript.types import (
    NEVER,
    ArrayType,
    IntersectionType,
    LiteralType,
    ObjectType,
    PrimitiveType,
    Property,
    Shape,
    TupleType,
    TypeReference,
    kind_of,
    union,
)

__all__ = ["MAX_OPTIONS", "defer_intersection", "intersect"]

#: Maximum options of a union; an intersection has the pairs of both sides.
MAX_OPTIONS = 10_000

Options = Callable[[Shape], list[Shape]]
Resolve = Callable[[Shape], Shape]


def defer_intersection(*shapes: Shape) -> Shape:
    """Returns a lazy intersection, because all parts may refer to themselves."""
    parts = tuple(dict.fromkeys(part for shape in shapes for part in _joined(shape)))
    return parts[0] if len(parts) == 1 else TypeReference("&", parts)


def _joined(shape: Shape) -> tuple[Shape, ...]:
    """Returns the flattened parts of an intersection, so that self-references terminate."""
    match shape:
        case TypeReference("&", parts):
            return parts
    return (shape,)


def intersect(left: Shape, right: Shape, options: Options, resolve: Resolve) -> Shape:
    """Returns the intersection of two types.

    Parameters
    ----------
    left, right
        The types.
    options
        A function that returns the options of a union.
    resolve
        A function that resolves a reference.

    Raises
    ------
    LanguageError
        For tuples, whose intersections are not supported.
    LimitError
        If both are unions with too many pairs of options.
    """
    lefts, rights = options(left), options(right)
    if len(lefts) * len(rights) > MAX_OPTIONS:
        raise LimitError("options of an intersection", len(lefts) * len(rights), MAX_OPTIONS)
    return union([_intersect(resolve(a), resolve(b)) for a in lefts for b in rights])


def _intersect(left: Shape, right: Shape) -> Shape:
    """Returns the intersection of two types that are not unions."""
    if left == right:
        return left
    one, other = kind_of(left), kind_of(right)
    for first, second, kind in ((left, right, one), (right, left, other)):
        if kind == "any":
            return first
        if kind == "unknown":
            return second
        if kind == "object?" and kind_of(second) in ("object", "array"):
            return second
    if one != other:
        return NEVER
    match left, right:
        case ObjectType(), ObjectType():
            return _intersect_objects(left, right)
        case ArrayType(a), ArrayType(b):
            return ArrayType(defer_intersection(a, b))
        case (TupleType(), _) | (_, TupleType()):
            raise LanguageError("intersections of tuples are not supported")
    return _intersect_scalars(left, right)


def _intersect_scalars(left: Shape, right: Shape) -> Shape:
    match left, right:
        case LiteralType(), LiteralType():
            return NEVER
        case (LiteralType(_, value) as literal_type, PrimitiveType("integer")) | (
            PrimitiveType("integer"),
            LiteralType(_, value) as literal_type,
        ):
            return literal_type if value == int(value) else NEVER
        case (PrimitiveType("integer" | "string"), PrimitiveType()) | (_, PrimitiveType("string")):
            return left
        case (PrimitiveType(), _) | (_, PrimitiveType("integer")):
            return right
        case _, PrimitiveType():
            return left
    parts = [each for side in (left, right) for each in _parts(side)]
    return IntersectionType(tuple(dict.fromkeys(parts)))


def _parts(shape: Shape) -> tuple[Shape, ...]:
    return shape.parts if isinstance(shape, IntersectionType) else (shape,)


def _intersect_objects(left: ObjectType, right: ObjectType) -> ObjectType:
    """Returns the properties of both objects; those of the same name are intersected."""
    found: dict[str, Property] = {each.name: each for each in left.properties}
    for each in right.properties:
        known = found.get(each.name)
        if known is None:
            found[each.name] = each
        else:
            found[each.name] = replace(
                known,
                shape=defer_intersection(known.shape, each.shape),
                optional=known.optional and each.optional,
                comment=known.comment or each.comment,
            )
    signatures = dict(left.signatures)
    for key, value in right.signatures:
        signatures[key] = defer_intersection(signatures[key], value) if key in signatures else value
    return ObjectType(tuple(found.values()), tuple(signatures.items()))
