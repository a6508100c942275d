"""The :class:`TypeScript` language: the JSON texts of the values of a TypeScript type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formalm.argument_checks import checked_flag
from formalm.automata.text_of_bytes import text_bytes
from formalm.errors import ArgumentError, LanguageError, lone_surrogate
from formalm.languages.json_schema.language import JsonSchema
from formalm.languages.python_types.integer_spelling import with_whole_numbers
from formalm.languages.typescript import syntax_tree
from formalm.languages.typescript.lexer import refuse
from formalm.languages.typescript.parse_declarations import read_module
from formalm.languages.typescript.resolve import TypeResolver
from formalm.languages.typescript.to_json_schema import SchemaBuilder
from formalm.languages.typescript.types import TypeReference

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from formalm.languages.json_schema.schema_options import JsonOptions

__all__ = ["TypeScript"]


class TypeScript(JsonSchema):
    """The language of the JSON of values of a TypeScript type.

    The text is a type by itself, or declarations: interfaces, type aliases and enums. Unsupported
    constructs are refused, with their name and position.

    Parameters
    ----------
    text
        The type. ``[]T`` may be written for ``T[]``, and ``integer`` for whole numbers, unless a
        type of that name is declared.
    root
        The name of the declaration to use. None is the type by itself, or the one after ``export
        default``; otherwise the only declaration that no other one uses.
    closed
        Whether objects have only declared properties. TypeScript itself allows others.
    **options
        ``property_order``, ``max_whitespace``, ``escapes`` and other options of
        :class:`~formalm.JsonSchema`.

    Raises
    ------
    LanguageError
        With line and column, for invalid types and unsupported constructs. When the machine is
        built: for types without a value.
    LimitError
        For types nested too deeply, and infinite generic types.
    ArgumentError
        For options of wrong types or values.

    Examples
    --------
    >>> from formalm import TypeScript
    >>> answer = TypeScript('''
    ...     {
    ...         output: string,
    ...         array_output: []number,
    ...         optional_output?: number,
    ...         nested: []{ inner: string }
    ...     }
    ... ''')
    >>> answer.matches('{"output": "", "array_output": [1, 2], "nested": [{"inner": "a"}]}')
    True
    >>> answer.shortest()
    b'{"output":"","array_output":[],"nested":[]}'
    >>> TypeScript("'a' | 'b' | null").schema
    '{"anyOf":[{"enum":["a","b"]},{"type":"null"}]}'
    """

    __slots__ = ("_written",)

    def __init__(
        self,
        text: str,
        *,
        root: str | None = None,
        closed: bool = True,
        **options: Unpack[JsonOptions],
    ) -> None:
        if not isinstance(text, str):
            raise ArgumentError(f"text must be a str, got {type(text).__name__}")
        if root is not None and not isinstance(root, str):
            raise ArgumentError(f"root must be a str or None, got {type(root).__name__}")
        checked_flag("closed", closed)
        if "resources" in options:
            raise ArgumentError(
                "resources must be empty, because a TypeScript type has no external references"
            )
        super().__init__(_schema(text, root, closed), **options)
        self._written = (text, root, closed, options)

    @property
    def text(self) -> str:
        """The type as written."""
        return self._written[0]

    def __reduce__(self) -> tuple[object, ...]:
        return _again, self._written

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, TypeScript)
        return self._arguments == other._arguments and self.text == other.text

    __hash__ = JsonSchema.__hash__

    def __repr__(self) -> str:
        text, root, closed, options = self._written
        parts = [repr(text)]
        if root is not None:
            parts.append(f"root={root!r}")
        if not closed:
            parts.append("closed=False")
        parts += [f"{name}={value!r}" for name, value in options.items()]
        return f"TypeScript({', '.join(parts)})"


def _again(text: str, root: str | None, closed: bool, options: dict[str, Any]) -> TypeScript:
    """Rebuilds a type from its description, for pickles and copies."""
    return TypeScript(text, root=root, closed=closed, **options)


def _schema(text: str, root: str | None, closed: bool) -> dict[str, Any]:
    """Returns the schema of a text, after checking all its declarations."""
    if text_bytes(text) is None:
        message, hint, span = lone_surrogate("text", text)
        raise LanguageError(message, source=text, span=span, hint=hint)
    module = read_module(text)
    types = TypeResolver(module)
    wanted = _root(module, root)
    plain = [name for name, one in module.declared.items() if not one.parameters]
    SchemaBuilder(types, closed).check([TypeReference(name) for name in plain])
    try:
        return with_whole_numbers(SchemaBuilder(types, closed).schema(types.shape(wanted, {})))
    except LanguageError as error:
        if error.span is not None:
            raise
        refuse(text, wanted.span, error.message, hint=error.hint)


def _root(module: syntax_tree.Module, root: str | None) -> syntax_tree.Node:
    """Returns the type that the whole text stands for."""
    if root is not None:
        if root not in module.declared:
            raise ArgumentError(f"root must be the name of a declared type, got {root!r}")
        declared = module.declared[root]
        return syntax_tree.NamedNode(declared.span, root)
    if module.type is not None:
        return module.type
    if not module.declared:
        raise LanguageError("text must contain a type, got none")
    used = {
        name
        for declared in module.declared.values()
        for name in syntax_tree.names_in(declared)
        if name != declared.name
    }
    free = [name for name in module.declared if name not in used]
    if len(free) != 1:
        raise LanguageError(
            f"text must determine the root type, got several: {', '.join(free or module.declared)}",
            hint="pass root=, mark the type with 'export default', or end the text with its name",
        )
    return syntax_tree.NamedNode(module.declared[free[0]].span, free[0])
