"""Intersections of TypeScript types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from formalm.errors import LanguageError, LimitError
from formalm.languages.typescript.types import (
    NEVER,
    Array,
    Fixed,
    Object,
    Property,
    Reference,
    Shape,
    Simple,
    Together,
    Tuple,
    kind_of,
    union,
)

__all__ = ["MAX_OPTIONS", "meet", "meet_later"]

#: Options of a union; those of an intersection are the pairs of both sides.
MAX_OPTIONS = 10_000

Options = Callable[[Shape], list[Shape]]
Resolve = Callable[[Shape], Shape]


def meet_later(*shapes: Shape) -> Shape:
    """Returns a lazy intersection, because all parts may refer to themselves."""
    parts = tuple(dict.fromkeys(part for shape in shapes for part in _joined(shape)))
    return parts[0] if len(parts) == 1 else Reference("&", parts)


def _joined(shape: Shape) -> tuple[Shape, ...]:
    """Returns the flattened parts of an intersection, so that self-references terminate."""
    match shape:
        case Reference("&", parts):
            return parts
    return (shape,)


def meet(left: Shape, right: Shape, options: Options, resolve: Resolve) -> Shape:
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
    return union([_meet(resolve(a), resolve(b)) for a in lefts for b in rights])


def _meet(left: Shape, right: Shape) -> Shape:
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
        case Object(), Object():
            return _meet_objects(left, right)
        case Array(a), Array(b):
            return Array(meet_later(a, b))
        case (Tuple(), _) | (_, Tuple()):
            raise LanguageError("intersections of tuples are not supported")
    return _meet_scalars(left, right)


def _meet_scalars(left: Shape, right: Shape) -> Shape:
    match left, right:
        case Fixed(), Fixed():
            return NEVER
        case (Fixed(_, value) as fixed, Simple("integer")) | (
            Simple("integer"),
            Fixed(_, value) as fixed,
        ):
            return fixed if value == int(value) else NEVER
        case (Simple("integer" | "string"), Simple()) | (_, Simple("string")):
            return left
        case (Simple(), _) | (_, Simple("integer")):
            return right
        case _, Simple():
            return left
    parts = [each for side in (left, right) for each in _parts(side)]
    return Together(tuple(dict.fromkeys(parts)))


def _parts(shape: Shape) -> tuple[Shape, ...]:
    return shape.parts if isinstance(shape, Together) else (shape,)


def _meet_objects(left: Object, right: Object) -> Object:
    """Returns the properties of both objects; those of the same name are intersected."""
    found: dict[str, Property] = {each.name: each for each in left.properties}
    for each in right.properties:
        known = found.get(each.name)
        if known is None:
            found[each.name] = each
        else:
            found[each.name] = replace(
                known,
                shape=meet_later(known.shape, each.shape),
                optional=known.optional and each.optional,
                comment=known.comment or each.comment,
            )
    signatures = dict(left.signatures)
    for key, value in right.signatures:
        signatures[key] = meet_later(signatures[key], value) if key in signatures else value
    return Object(tuple(found.values()), tuple(signatures.items()))
