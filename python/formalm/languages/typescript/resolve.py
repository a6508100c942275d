"""Evaluation of TypeScript types: resolves references, type parameters and operators to shapes."""

from __future__ import annotations

from itertools import groupby
from typing import NoReturn

from formalm.errors import LanguageError, LimitError
from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.intersections import MAX_OPTIONS, meet, meet_later
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.resolve_objects import mapped_shape, object_shape, tuple_shape
from formalm.languages.typescript.template_literals import template_shape
from formalm.languages.typescript.types import (
    ABSENT,
    NEVER,
    Array,
    Fixed,
    Object,
    Reference,
    Shape,
    Simple,
    Tuple,
    Union,
    depth_of,
    fixed,
    union,
)
from formalm.languages.typescript.utility_types import OPERATIONS, apply

__all__ = ["Evaluation"]

#: Declarations with their arguments; types that grow with each use have no end of them.
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


class Evaluation:
    """Evaluates the types of a text.

    Parameters
    ----------
    module
        The text.
    """

    def __init__(self, module: syntax_tree.Module) -> None:
        self.source = module.source
        self._declared = module.declared
        self._resolved: dict[Reference, Shape | None] = {}
        self._places: dict[Reference, tuple[int, int]] = {}
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
        if isinstance(found, Reference):
            self._places.setdefault(found, node.span)
            if depth_of(found, MAX_ARGUMENTS) > MAX_ARGUMENTS:
                raise LimitError(
                    "levels of type arguments", MAX_ARGUMENTS + 1, MAX_ARGUMENTS, ENDLESS
                )
        return found

    def _meaning(self, node: syntax_tree.Node, names: Names) -> Shape:
        match node:
            case syntax_tree.Named():
                return self._named(node, names)
            case syntax_tree.Fixed(_, value):
                return fixed(value)
            case syntax_tree.Template():
                return template_shape(node, names, self)
            case syntax_tree.ArrayOf(_, item):
                return Array(self.shape(item, names))
            case syntax_tree.TupleOf():
                return tuple_shape(node, names, self)
            case syntax_tree.ObjectOf():
                return object_shape(node, names, self)
            case syntax_tree.Mapped():
                return mapped_shape(node, names, self)
            case syntax_tree.EnumOf(_, values):
                return union([fixed(value) for _, value in values])
        return self._combined(node, names)

    def _combined(self, node: syntax_tree.Node, names: Names) -> Shape:
        match node:
            case syntax_tree.Union(_, options):
                return union([self.shape(option, names) for option in options])
            case syntax_tree.Intersection(_, parts):
                return meet_later(*[self.shape(part, names) for part in parts])
            case syntax_tree.KeysOf(_, of):
                return Reference("keyof", (self.shape(of, names),))
            case syntax_tree.Indexed(_, of, key):
                return Reference("[]", (self.shape(of, names), self.shape(key, names)))
        raise AssertionError(node)

    def is_declared(self, reference: Reference) -> bool:
        """Returns whether a reference is to a declaration of the text, not to an operation."""
        return reference.name in self._declared

    def comment(self, reference: Reference) -> str | None:
        """Returns the documentation of a declaration."""
        one = self._declared.get(reference.name)
        return None if one is None else one.comment

    def _named(self, node: syntax_tree.Named, names: Names) -> Shape:
        name, given = node.name, node.arguments
        if name in names:
            if given:
                refuse(self.source, node.span, f"the type parameter {name} takes no arguments")
            return names[name]
        arguments = [self.shape(argument, names) for argument in given]
        declared = self._declared.get(name)
        if declared is not None:
            return Reference(name, self._with_defaults(node, declared, arguments))
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
                return Reference(name, tuple(arguments))
            return Array(arguments[0])
        if given:
            self._unknown(node)
        if name in ("true", "false"):
            return Fixed("boolean", name == "true")
        if name == "void":
            return ABSENT
        if name in SIMPLE:
            return Simple(name)
        enum, _, member = name.rpartition(".")
        owner = self._declared.get(enum)
        if owner is not None and isinstance(owner.type, syntax_tree.EnumOf):
            values = dict(owner.type.values)
            if member in values:
                return fixed(values[member])
        self._unknown(node)

    def _unknown(self, node: syntax_tree.Named) -> NoReturn:
        if node.name in NO_JSON:
            refuse(self.source, node.span, f"{node.name} has no JSON form", hint=NO_JSON[node.name])
        refuse(self.source, node.span, f"{node.name} is not declared")

    def _with_defaults(
        self, node: syntax_tree.Named, declared: syntax_tree.Declared, arguments: list[Shape]
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
        while isinstance(shape, Reference):
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

    def _entered(self, reference: Reference) -> Shape:
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

    def refuse_in(self, reference: Reference, error: LanguageError) -> None:
        """Raises an error again, located at a declaration if it has no place."""
        declared = self._declared.get(reference.name)
        span = self._places.get(reference) if declared is None else declared.span
        if error.span is not None or span is None:
            raise error
        title = "" if declared is None else f"in {declared.name}: "
        refuse(self.source, span, title + error.message, hint=error.hint)

    def _resolve(self, reference: Reference) -> Shape:
        declared = self._declared.get(reference.name)
        if declared is None:
            if reference.name != "&":
                return self.resolve(apply(reference, self))
            found, *others = self._merged(reference.arguments)
            for other in others:
                found = meet(found, other, self.options, self.resolve)
            return self.resolve(found)
        names = dict(
            zip([name for name, _ in declared.parameters], reference.arguments, strict=True)
        )
        found = self.shape(declared.type, names)
        for base in reversed(declared.extends):
            inherited = self.resolve(self._named(base, names))
            if not isinstance(inherited, Object):
                refuse(self.source, base.span, "an interface can extend object types only")
            found = meet(inherited, found, self.options, self.resolve)
        return self.resolve(found)

    def _merged(self, shapes: tuple[Shape, ...]) -> list[Shape]:
        """Merges adjacent object types in the parts of an intersection.

        It halves the list: one by one, thousands of parts would be copied at each step.
        """
        merged: list[Shape] = []
        for is_object, run in groupby(shapes, lambda shape: isinstance(shape, Object)):
            parts = list(run)
            while is_object and len(parts) > 1:
                pairs = zip(parts[::2], parts[1::2], strict=False)
                odd = parts[len(parts) - len(parts) % 2 :]
                parts = [meet(a, b, self.options, self.resolve) for a, b in pairs] + odd
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
            if isinstance(inner, Union):
                pending += reversed(inner.options)
            elif inner != NEVER:
                found[one if isinstance(inner, Object | Array | Tuple) else inner] = None
            if len(found) > MAX_OPTIONS:
                raise LimitError("options of a union", len(found), MAX_OPTIONS)
        return list(found)

    def refuse(self, message: str, hint: str | None = None) -> NoReturn:
        """Raises an error about the type under evaluation."""
        refuse(self.source, self._stack[-1] if self._stack else (0, 0), message, hint=hint)
