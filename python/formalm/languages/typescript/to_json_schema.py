"""Lowering of evaluated TypeScript types to a JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NoReturn

from formalm.errors import LanguageError, LimitError
from formalm.languages.typescript.resolve import TypeResolver
from formalm.languages.typescript.types import (
    ABSENT,
    ArrayType,
    IntersectionType,
    LiteralType,
    ObjectType,
    PatternType,
    PrimitiveType,
    Property,
    Shape,
    TupleType,
    TypeReference,
    UnionType,
)
from formalm.languages.typescript.utility_types import bind

__all__ = ["SchemaBuilder"]

Schema = dict[str, Any]

#: Maximum levels of a schema without references.
MAX_LEVELS = 60

SIMPLE: dict[str, Schema] = {
    **{name: {"type": name} for name in ("string", "number", "integer", "boolean", "null")},
    "any": {},
    "unknown": {},
    "object": {"type": ["object", "array"]},
    "never": {"not": {}},
}


class SchemaBuilder:
    """Creates the schema of a type; named types become definitions.

    Parameters
    ----------
    types
        The evaluated types.
    closed
        Whether objects have only declared properties.
    """

    def __init__(self, types: TypeResolver, closed: bool) -> None:
        self._types = types
        self._closed = closed
        self._names: dict[TypeReference, str] = {}
        self._pending: list[TypeReference] = []
        self._inlined: set[TypeReference] = set()
        self._level = 0

    def schema(self, shape: Shape) -> Schema:
        """Returns the whole schema of a type.

        Raises
        ------
        LanguageError
            For ``undefined`` where a value is required.
        LimitError
            For types nested too deeply.
        """
        body = self._outlined(shape)
        definitions = self._definitions()
        return {**body, "$defs": definitions} if definitions else body

    def check(self, references: Sequence[TypeReference]) -> None:
        """Checks types that may be unused: errors in them are errors too."""
        for reference in references:
            # An alias may be undefined, so that a property can be left out.
            if self._types.options(reference) != [ABSENT]:
                self._name(reference)
        self._definitions()

    def _definitions(self) -> Schema:
        found: Schema = {}
        for reference in self._pending:  # which grows
            without = _present_or_none(reference, self._types)
            try:
                found[self._names[reference]] = self._outlined(without)
            except LanguageError as error:
                self._types.refuse_in(reference, error)
        return found

    def _outlined(self, shape: Shape) -> Schema:
        """Returns a type written out, with its documentation, even if it has a name."""
        comment = self._types.comment(shape) if isinstance(shape, TypeReference) else None
        body = self._written(self._types.resolve(shape))
        return _described(body, comment)

    def _schema(self, shape: Shape) -> Schema:
        found = self._types.resolve(shape)
        nested = isinstance(found, ObjectType | ArrayType | TupleType | UnionType)
        if isinstance(shape, TypeReference) and nested and not self._is_inline(shape):
            return {"$ref": f"#/$defs/{self._name(shape)}"}
        return self._written(found)

    def _is_inline(self, reference: TypeReference) -> bool:
        """Returns whether to write a type out here: at its first use, if it is anonymous."""
        first = reference not in self._inlined
        self._inlined.add(reference)
        return first and not self._types.is_declared(reference)

    def _name(self, reference: TypeReference) -> str:
        if reference not in self._names:
            wanted = re.sub(r"\W+", "_", _title(reference)).strip("_")[:60] or "type"
            name, count = wanted, 2
            while name in self._names.values():
                name, count = f"{wanted}_{count}", count + 1
            self._names[reference] = name
            self._pending.append(reference)
        return self._names[reference]

    def _written(self, shape: Shape) -> Schema:
        self._level += 1
        if self._level > MAX_LEVELS:
            raise LimitError("levels of a schema", self._level, MAX_LEVELS)
        try:
            match shape:
                case ObjectType():
                    return self._object(shape)
                case ArrayType(item):
                    return {"type": "array", "items": self._schema(_present(item, self._types))}
                case TupleType():
                    return self._tuple(shape)
                case UnionType():
                    return self._union(self._types.options(shape))
                case LiteralType(_, value):
                    return {"const": value}
                case PatternType(pattern):
                    return {"type": "string", "pattern": f"^(?:{pattern})$"}
                case IntersectionType(parts):
                    return {"allOf": [self._written(part) for part in parts]}
                case PrimitiveType("undefined"):
                    _refuse_absence()
                case PrimitiveType(name):
                    return dict(SIMPLE[name])
        finally:
            self._level -= 1
        raise AssertionError(shape)

    def _union(self, options: Sequence[Shape]) -> Schema:
        if ABSENT in options:
            _refuse_absence()
        if PrimitiveType("any") in options or PrimitiveType("unknown") in options:
            return {}
        if PrimitiveType("boolean") in options:
            options = [one for one in options if getattr(one, "kind", "") != "boolean"]
        for kind in ("string", "number"):
            if PrimitiveType(kind) in options:
                options = [one for one in options if getattr(one, "kind", "") != kind]
        values = [one.value for one in options if isinstance(one, LiteralType)]
        names = [
            one.name for one in options if isinstance(one, PrimitiveType) and one.name != "object"
        ]
        others = [
            one
            for one in options
            if not isinstance(one, LiteralType) and getattr(one, "name", "object") not in names
        ]
        parts: list[Schema] = []
        if values:
            parts.append({"enum": values} if len(values) > 1 else {"const": values[0]})
        if names:
            parts.append({"type": names if len(names) > 1 else names[0]})
        parts += [self._schema(one) for one in others]
        if not parts:
            return dict(SIMPLE["never"])
        return parts[0] if len(parts) == 1 else {"anyOf": parts}

    def _object(self, shape: ObjectType) -> Schema:
        properties: Schema = {}
        required = []
        for one in shape.properties:
            bound = bind(one, shape.signatures)
            options = self._types.options(bound.shape)
            if not options and self._types.options(one.shape):
                raise LanguageError(
                    f"the type of the property {one.name!r} must agree with the index signature"
                )
            properties[one.name] = self._property(bound, options)
            if not one.optional and ABSENT not in options:
                required.append(one.name)
        found: Schema = {"type": "object"}
        if properties:
            found["properties"] = properties
        if required:
            found["required"] = required
        patterns: Schema = {}
        rest: Schema | bool = not self._closed
        for key, value in shape.signatures:
            schema = self._schema(_present_or_none(value, self._types))
            if isinstance(key, PatternType):
                patterns[f"^(?:{key.pattern})$"] = schema
            else:
                rest = schema
        if patterns:
            found["patternProperties"] = patterns
        if rest is not True:
            found["additionalProperties"] = rest
        return found

    def _property(self, one: Property, options: list[Shape]) -> Schema | bool:
        present = [option for option in options if option != ABSENT]
        if not present:
            return False
        if len(present) == len(options):
            found = self._schema(one.shape)
        elif len(present) == 1:
            found = self._schema(present[0])
        else:
            found = self._union(present)
        return _described(found, one.comment)

    def _tuple(self, shape: TupleType) -> Schema:
        found: Schema = {"type": "array"}
        items = [
            self._schema(_present_or_none(one, self._types) if optional else one)
            for one, optional in shape.items
        ]
        if items:
            found["prefixItems"] = items
        found["minItems"] = sum(not optional for _, optional in shape.items)
        if shape.rest is None:
            found["items"] = False
            found["maxItems"] = len(items)
        else:
            found["items"] = self._schema(_present(shape.rest, self._types))
        return found


def _described(schema: Schema, comment: str | None) -> Schema:
    return schema if comment is None else {"description": comment, **schema}


def _title(shape: Shape) -> str:
    match shape:
        case TypeReference("&", parts):
            return "_and_".join(map(_title, parts))
        case TypeReference(name, arguments):
            return "_".join([name, *map(_title, arguments)])
        case PrimitiveType(name):
            return name
        case LiteralType(_, value):
            return str(value)
    return type(shape).__name__.removesuffix("Type")


def _refuse_absence() -> NoReturn:
    raise LanguageError(
        "undefined has no JSON form where a value is required", hint="use null, or make it optional"
    )


def _present(shape: Shape, types: TypeResolver) -> Shape:
    """Refuses ``undefined``, which JSON would write as null."""
    if ABSENT in types.options(shape):
        _refuse_absence()
    return shape


def _present_or_none(shape: Shape, types: TypeResolver) -> Shape:
    """Removes ``undefined`` from a type that may be left out."""
    options = types.options(shape)
    if ABSENT not in options:
        return shape
    return UnionType(tuple(one for one in options if one != ABSENT))
