"""Evaluation of TypeScript types: resolves references, type parameters and operators to shapes."""

from __future__ import annotations

from itertools import groupby
from typing import NoReturn

from formalm.errors import LanguageError, LimitError
from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.intersections import MAX_OPTIONS, defer_intersection, intersect
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.resolve_objects import mapped_shape, object_shape, tuple_shape
from formalm.languages.typescript.template_literals import template_shape
from formalm.languages.typescript.types import (
    ABSENT,
    NEVER,
    ArrayType,
    LiteralType,
    ObjectType,
    PrimitiveType,
    Shape,
    TupleType,
    TypeReference,
    UnionType,
    depth_of,
    literal_type,
    union,
)
from formalm.languages.typescript.utility_types import OPERATIONS, apply_utility_type

__all__ = ["TypeResolver"]

#: Maximum number of declarations with arguments; types that grow with each use never end.
MAX_REFERENCES = 5_000
MAX_ARGUMENTS = 50
MAX_WAITING = 50
ENDLESS = "a generic type that uses itself with larger arguments has infinitely many instances"

SIMPLE = "string number integer boolean null unknown any object undefined never".split()
NO_JSON = {
    "bigint": "use number or integer",
    "symbol": None,
    "Date": "a Date is serialized as a string; use string",
    "Function": None,
    "Map": "write Record",
    "Set": "use an array",
    "Promise": None,
    "RegExp": None,
    "Symbol": None,
}

Names = dict[str, Shape]


class TypeResolver:
    """Evaluates the types of a text.

    Parameters
    ----------
    module
        The text.
    """

    def __init__(self, module: syntax_tree.Module) -> None:
        self.source = module.source
        self._declared = module.declared
        self._resolved: dict[TypeReference, Shape | None] = {}
        self._places: dict[TypeReference, tuple[int, int]] = {}
        self._stack: list[tuple[int, int]] = []

    def shape(self, node: syntax_tree.Node, names: Names) -> Shape:
        """Evaluates a type, given the shapes of its type parameters.

        Raises
        ------
        LanguageError
            With line and column, for undeclared names and types without JSON.
        LimitError
            For types that grow without end.
        """
        found = self._meaning(node, names)
        if isinstance(found, TypeReference):
            self._places.setdefault(found, node.span)
            if depth_of(found, MAX_ARGUMENTS) > MAX_ARGUMENTS:
                raise LimitError(
                    "levels of type arguments", MAX_ARGUMENTS + 1, MAX_ARGUMENTS, ENDLESS
                )
        return found

    def _meaning(self, node: syntax_tree.Node, names: Names) -> Shape:
        match node:
            case syntax_tree.NamedNode():
                return self._named(node, names)
            case syntax_tree.LiteralNode(_, value):
                return literal_type(value)
            case syntax_tree.TemplateNode():
                return template_shape(node, names, self)
            case syntax_tree.ArrayNode(_, item):
                return ArrayType(self.shape(item, names))
            case syntax_tree.TupleNode():
                return tuple_shape(node, names, self)
            case syntax_tree.ObjectNode():
                return object_shape(node, names, self)
            case syntax_tree.MappedNode():
                return mapped_shape(node, names, self)
            case syntax_tree.EnumNode(_, values):
                return union([literal_type(value) for _, value in values])
        return self._combined(node, names)

    def _combined(self, node: syntax_tree.Node, names: Names) -> Shape:
        match node:
            case syntax_tree.UnionNode(_, options):
                return union([self.shape(option, names) for option in options])
            case syntax_tree.IntersectionNode(_, parts):
                return defer_intersection(*[self.shape(part, names) for part in parts])
            case syntax_tree.KeyofNode(_, of):
                return TypeReference("keyof", (self.shape(of, names),))
            case syntax_tree.IndexedAccess(_, of, key):
                return TypeReference("[]", (self.shape(of, names), self.shape(key, names)))
        raise AssertionError(node)

    def is_declared(self, reference: TypeReference) -> bool:
        """Returns whether a reference is to a declaration of the text, not to an operation."""
        return reference.name in self._declared

    def comment(self, reference: TypeReference) -> str | None:
        """Returns the documentation of a declaration."""
        one = self._declared.get(reference.name)
        return None if one is None else one.comment

    def _named(self, node: syntax_tree.NamedNode, names: Names) -> Shape:
        name, given = node.name, node.arguments
        if name in names:
            if given:
                refuse(self.source, node.span, f"the type parameter {name} takes no arguments")
            return names[name]
        arguments = [self.shape(argument, names) for argument in given]
        declared = self._declared.get(name)
        if declared is not None:
            return TypeReference(name, self._with_defaults(node, declared, arguments))
        if name in OPERATIONS or name in ("Array", "ReadonlyArray"):
            expected = OPERATIONS.get(name, 1)
            if len(arguments) != expected:
                refuse(
                    self.source,
                    node.span,
                    f"{name} requires {expected} type argument{'s' if expected != 1 else ''},"
                    f" got {len(arguments)}",
                )
            if name in OPERATIONS:
                return TypeReference(name, tuple(arguments))
            return ArrayType(arguments[0])
        if given:
            self._unknown(node)
        if name in ("true", "false"):
            return LiteralType("boolean", name == "true")
        if name == "void":
            return ABSENT
        if name in SIMPLE:
            return PrimitiveType(name)
        enum, _, member = name.rpartition(".")
        owner = self._declared.get(enum)
        if owner is not None and isinstance(owner.type, syntax_tree.EnumNode):
            values = dict(owner.type.values)
            if member in values:
                return literal_type(values[member])
        self._unknown(node)

    def _unknown(self, node: syntax_tree.NamedNode) -> NoReturn:
        if node.name in NO_JSON:
            refuse(self.source, node.span, f"{node.name} has no JSON form", hint=NO_JSON[node.name])
        refuse(self.source, node.span, f"{node.name} is not declared")

    def _with_defaults(
        self, node: syntax_tree.NamedNode, declared: syntax_tree.Declaration, arguments: list[Shape]
    ) -> tuple[Shape, ...]:
        wanted = declared.parameters
        if len(arguments) > len(wanted):
            refuse(
                self.source,
                node.span,
                f"{node.name} takes {len(wanted) or 'no'} type arguments",
            )
        names = dict(zip([name for name, _ in wanted], arguments, strict=False))
        for name, default in wanted[len(arguments) :]:
            if default is None:
                refuse(
                    self.source,
                    node.span,
                    f"{node.name} requires an argument for the type parameter {name}",
                )
            names[name] = self.shape(default, names)
        return tuple(names[name] for name, _ in wanted)

    def resolve(self, shape: Shape) -> Shape:
        """Resolves a reference to a shape that is not a reference; other shapes are unchanged."""
        while isinstance(shape, TypeReference):
            if shape not in self._resolved:
                self._resolved[shape] = None
                self._resolved[shape] = self._entered(shape)
            found = self._resolved[shape]
            if found is None:
                title = shape.name if shape.name in self._declared else "this type"
                self.refuse(f"{title} refers to itself without an intermediate type")
            else:
                shape = found
        return shape

    def _entered(self, reference: TypeReference) -> Shape:
        """Resolves a reference; locates errors at its declaration if they have no place."""
        if len(self._stack) >= MAX_WAITING:
            raise LimitError("types being resolved at once", MAX_WAITING + 1, MAX_WAITING)
        if len(self._resolved) > MAX_REFERENCES:
            raise LimitError("types with arguments", len(self._resolved), MAX_REFERENCES, ENDLESS)
        self._stack.append(self._places.get(reference, self._stack[-1] if self._stack else (0, 0)))
        try:
            return self._resolve(reference)
        except LanguageError as error:
            self.refuse_in(reference, error)
            raise
        finally:
            self._stack.pop()

    def refuse_in(self, reference: TypeReference, error: LanguageError) -> None:
        """Raises an error again, located at a declaration if it has no place."""
        declared = self._declared.get(reference.name)
        span = self._places.get(reference) if declared is None else declared.span
        if error.span is not None or span is None:
            raise error
        title = "" if declared is None else f"in {declared.name}: "
        refuse(self.source, span, title + error.message, hint=error.hint)

    def _resolve(self, reference: TypeReference) -> Shape:
        declared = self._declared.get(reference.name)
        if declared is None:
            if reference.name != "&":
                return self.resolve(apply_utility_type(reference, self))
            found, *others = self._merged(reference.arguments)
            for other in others:
                found = intersect(found, other, self.options, self.resolve)
            return self.resolve(found)
        names = dict(
            zip([name for name, _ in declared.parameters], reference.arguments, strict=True)
        )
        found = self.shape(declared.type, names)
        for base in reversed(declared.extends):
            inherited = self.resolve(self._named(base, names))
            if not isinstance(inherited, ObjectType):
                refuse(self.source, base.span, "an interface can extend object types only")
            found = intersect(inherited, found, self.options, self.resolve)
        return self.resolve(found)

    def _merged(self, shapes: tuple[Shape, ...]) -> list[Shape]:
        """Merges adjacent object types in the parts of an intersection.

        It halves the list: one by one, thousands of parts would be copied at each step.
        """
        merged: list[Shape] = []
        for is_object, run in groupby(shapes, lambda shape: isinstance(shape, ObjectType)):
            parts = list(run)
            while is_object and len(parts) > 1:
                pairs = zip(parts[::2], parts[1::2], strict=False)
                odd = parts[len(parts) - len(parts) % 2 :]
                parts = [intersect(a, b, self.options, self.resolve) for a, b in pairs] + odd
            merged += parts
        return merged

    def options(self, shape: Shape) -> list[Shape]:
        """Returns the options of a union. References stay unresolved, except those to unions."""
        found: dict[Shape, None] = {}
        pending, seen = [shape], set()
        while pending:
            one = pending.pop()
            if one in seen:
                continue
            seen.add(one)
            inner = self.resolve(one)
            if isinstance(inner, UnionType):
                pending += reversed(inner.options)
            elif inner != NEVER:
                found[one if isinstance(inner, ObjectType | ArrayType | TupleType) else inner] = (
                    None
                )
            if len(found) > MAX_OPTIONS:
                raise LimitError("options of a union", len(found), MAX_OPTIONS)
        return list(found)

    def refuse(self, message: str, hint: str | None = None) -> NoReturn:
        """Raises an error about the type under evaluation."""
        refuse(self.source, self._stack[-1] if self._stack else (0, 0), message, hint=hint)
