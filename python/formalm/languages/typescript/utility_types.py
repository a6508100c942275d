"""Utility types and type operators of TypeScript: ``Partial``, ``Pick``, ``keyof`` and others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from formalm.languages.typescript.intersections import defer_intersection
from formalm.languages.typescript.types import (
    ABSENT,
    ArrayType,
    LiteralType,
    ObjectType,
    PatternType,
    PrimitiveType,
    Property,
    Shape,
    TupleType,
    TypeReference,
    kind_of,
    union,
)

if TYPE_CHECKING:
    from formalm.languages.typescript.resolve import TypeResolver

__all__ = ["OPERATIONS", "apply_utility_type"]

#: The number of arguments of each.
OPERATIONS = {
    "Partial": 1,
    "Required": 1,
    "Readonly": 1,
    "NonNullable": 1,
    "Record": 2,
    "Pick": 2,
    "Omit": 2,
    "Exclude": 2,
    "Extract": 2,
}


def apply_utility_type(reference: TypeReference, types: TypeResolver) -> Shape:
    """Applies an operation to its arguments."""
    first, *rest = reference.arguments
    match reference.name:
        case "Partial" | "Required" | "Readonly" as name:
            return union([_modified(name, one, types) for one in types.options(first)])
        case "NonNullable":
            return union([one for one in types.options(first) if one not in EMPTY])
        case "Record":
            return _record(first, rest[0], types)
        case "Pick" | "Omit" as name:
            return _picked(name, first, _names(rest[0], types), types)
        case "Exclude" | "Extract" as name:
            return _filtered(name, first, rest[0], types)
        case "keyof":
            return _keys(first, types)
    return _member(first, rest[0], types)


EMPTY = (ABSENT, PrimitiveType("null"))


def _modified(name: str, of: Shape, types: TypeResolver) -> Shape:
    """Returns an object with all properties optional, or all required."""
    found = types.resolve(of)
    if name == "Readonly":
        return found
    if isinstance(found, ArrayType | TupleType):
        types.refuse(f"{name} of an array is not supported")
    if not isinstance(found, ObjectType):
        return of
    properties = found.properties
    if name == "Partial":
        return replace(found, properties=tuple(replace(p, optional=True) for p in properties))
    if found.signatures:
        types.refuse("Required of an object with an index signature is not supported")
    required = [
        replace(
            one,
            optional=False,
            # The question mark is what adds undefined, so it is taken away with it.
            shape=union([option for option in types.options(one.shape) if option != ABSENT])
            if one.optional
            else one.shape,
        )
        for one in properties
    ]
    return replace(found, properties=tuple(required))


def _record(keys: Shape, value: Shape, types: TypeResolver) -> Shape:
    properties, signatures = [], []
    for key in types.options(keys):
        if isinstance(key, LiteralType) and key.kind != "boolean":
            properties.append(Property(str(key.value), value, False))
        elif isinstance(key, PrimitiveType | PatternType) and kind_of(key) == "string":
            signatures.append((key, value))
        elif kind_of(key) == "number":
            types.refuse(
                "Record with number keys is not supported",
                "use string, or `${bigint}` for integers",
            )
        else:
            types.refuse("the keys of a Record must be strings")
    return ObjectType(tuple(properties), tuple(signatures))


def _names(keys: Shape, types: TypeResolver) -> list[str]:
    found = []
    for key in types.options(keys):
        if not isinstance(key, LiteralType) or key.kind == "boolean":
            types.refuse("property names must be strings")
        found.append(str(key.value))
    return found


def _object(of: Shape, what: str, types: TypeResolver) -> ObjectType:
    found = types.resolve(of)
    if not isinstance(found, ObjectType):
        types.refuse(f"{what} requires a single object type")
    return found


def _picked(name: str, of: Shape, names: list[str], types: TypeResolver) -> Shape:
    found = _object(of, name, types)
    if found.signatures:
        types.refuse(f"{name} of an object with an index signature is not supported")
    known = {one.name for one in found.properties}
    for each in names:
        if name == "Pick" and each not in known:
            types.refuse(f"the type has no property {each!r}")
    kept = [one for one in found.properties if (one.name in names) == (name == "Pick")]
    return ObjectType(tuple(kept))


def _filtered(name: str, of: Shape, by: Shape, types: TypeResolver) -> Shape:
    options, others = types.options(of), types.options(by)
    for one in (*options, *others):
        if not isinstance(one, LiteralType) and one not in EMPTY:
            types.refuse(f"{name} applies to literals, null and undefined only")
    return union([one for one in options if (one in others) == (name == "Extract")])


def _keys(of: Shape, types: TypeResolver) -> Shape:
    found = _object(of, "keyof", types)
    if found.signatures:
        types.refuse("keyof an object with an index signature is not supported")
    return union([LiteralType("string", one.name) for one in found.properties])


def _member(of: Shape, key: Shape, types: TypeResolver) -> Shape:
    """Returns the type of a property by name; the union for several names."""
    found = types.resolve(of)
    if isinstance(found, ArrayType) and types.options(key) == [PrimitiveType("number")]:
        return found.item
    if not isinstance(found, ObjectType) or found.signatures:
        types.refuse(
            "indexed access requires an object type without index signatures, and T[number]"
            " requires"
            " an array"
        )
    properties = {one.name: one for one in found.properties}
    shapes = []
    for name in _names(key, types):
        if name not in properties:
            types.refuse(f"the type has no property {name!r}")
        one = properties[name]
        shapes.append(union([one.shape, ABSENT]) if one.optional else one.shape)
    return union(shapes)


def bind(member: Property, signatures: tuple[tuple[Shape, Shape], ...]) -> Property:
    """Returns a property intersected with the index signatures of its object."""
    for key, value in signatures:
        if key == PrimitiveType("string"):
            member = replace(member, shape=defer_intersection(member.shape, value))
    return member
