"""Python types as languages: the JSON texts of their values."""

from __future__ import annotations

import inspect
import json
import types
import typing
from typing import TYPE_CHECKING, Any

from formalm.automata.text_of_bytes import not_a_member
from formalm.errors import ArgumentError, LimitError, TokenError
from formalm.languages.json_schema.language import JsonSchema
from formalm.languages.json_schema.schema_notes import SchemaNote

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from formalm.languages.json_schema.schema_options import JsonOptions

__all__ = ["PythonType", "is_type"]


MOST_LEVELS = 200
"""Levels of an annotation. The interpreter's limit of 1,000 calls ends ``repr`` of twice that."""

DEEP_HINT = "give inner types a name, as a class or a model; a class may refer to itself"


class PythonType(JsonSchema):
    """The language of the JSON of values of a Python type, or of the arguments of a function.

    Supported are Pydantic models, data classes, typed dictionaries, named tuples, enumerations,
    ``Literal``, ``Annotated`` with bounds, unions, lists, tuples, sets, dictionaries, numbers,
    strings, dates, times, UUIDs, and everything else that Pydantic can write as JSON. Pydantic
    (version 2) makes the schema and the values, also of plain classes, so a type has one meaning.

    Parameters
    ----------
    type_
        The type; or a function, for its arguments by name, each of which needs an annotation.
    **options
        ``property_order``, ``max_whitespace``, ``escapes`` and other options of
        :class:`~formalm.JsonSchema`.

    Raises
    ------
    ArgumentError
        If Pydantic is not installed; for types that have no JSON; for options of wrong types or
        values.
    LanguageError
        When the machine is built: for types without a value, and invalid patterns.

    Notes
    -----
    Objects have only the properties of the type, unless it allows others. Validators written in
    Python are code, which a schema cannot express: :attr:`notes` names them, and :meth:`value` runs
    them.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from formalm import PythonType
    >>> @dataclass
    ... class Point:
    ...     x: int
    ...     y: int = 0
    >>> point = PythonType(Point)  # doctest: +SKIP
    >>> point.value('{"x": 1, "y": 7}')  # doctest: +SKIP
    Point(x=1, y=7)
    """

    __slots__ = ("_adapter", "_options", "_remarks", "_type")

    def __init__(self, type_: object, **options: Unpack[JsonOptions]) -> None:
        for name in ("resources", "formats"):
            if name in options:
                raise ArgumentError(
                    f"{name} must be left out: it is an option of JsonSchema, not of PythonType"
                )
        if not is_type(type_):
            kind = type(type_).__name__
            raise ArgumentError(
                f"type_ must be a type, an annotation or a function, got {type_!r:.60} of"
                f" type {kind}",
                hint="pass a class, an annotation such as list[int], or a function",
            )
        try:
            from formalm.languages.python_types import pydantic_schemas
        except ImportError:
            raise ArgumentError(
                "PythonType needs the pydantic package",
                hint="pip install 'formalm[pydantic]', or write a JsonSchema",
            ) from None
        check_levels(type_)
        self._adapter, schema, self._remarks = pydantic_schemas.described(type_)
        # Pydantic writes large and small numbers with exponents, whatever their constraints.
        has_sets = '"uniqueItems": true' in json.dumps(schema, default=str)
        written: JsonOptions = {"number_format": "plain" if has_sets else "any"}
        written.update(options)
        super().__init__(schema, **written)
        self._type = type_
        self._options = options

    @property
    def type(self) -> Any:
        """The type, or the function."""
        return self._type

    @property
    def notes(self) -> tuple[SchemaNote, ...]:
        """Requirements of the type that the schema does not express or enforce.

        :meth:`value` may then reject members of the language.
        """
        return (*self._remarks, *super().notes)

    def value(self, text: str | bytes) -> object:
        """Returns the value of a member, created and validated by Pydantic.

        For a function, it is a dictionary of the arguments in the text; call ``function(**value)``
        yourself.

        Raises
        ------
        TokenError
            If ``text`` is not a member, or a validator of the type rejects it.
        """
        if not self.matches(text):
            raise not_a_member()
        try:
            return self._adapter.validate_json(text)
        except RecursionError:
            raise LimitError("levels of nesting", 1000, 1000) from None
        except ValueError as error:
            raise TokenError(
                f"the type rejects an instance of its schema: {error}",
                hint="its validators check more than a schema can express; see notes",
            ) from error

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self._type, self._options)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        assert isinstance(other, PythonType)
        return self._arguments == other._arguments and bool(self._type == other._type)

    __hash__ = JsonSchema.__hash__

    def __repr__(self) -> str:
        type_: Any = self._type
        named = isinstance(type_, type) or inspect.isroutine(type_)
        named = named and typing.get_origin(type_) is None
        parts = [type_.__qualname__ if named else repr(type_)]
        parts += [f"{name}={value!r}" for name, value in self._options.items()]
        return f"PythonType({', '.join(parts)})"


def check_levels(type_: object) -> None:
    """Refuses an annotation that is nested deeper than the typing module can print.

    Raises
    ------
    LimitError
        If it has more than ``MOST_LEVELS`` levels.
    """
    level, parts = 0, [type_]
    while parts:
        level += 1
        if level > MOST_LEVELS:
            raise LimitError("levels of nesting", level, MOST_LEVELS, DEEP_HINT)
        # Visit each part once, because many alternatives share parts.
        below = {id(arg): arg for part in parts for arg in typing.get_args(part)}
        parts = list(below.values())


def _again(type_: object, options: dict[str, Any]) -> PythonType:
    """Rebuilds a type from its description, for pickles and copies."""
    return PythonType(type_, **options)


def is_type(value: object) -> bool:
    """Returns whether a value is a type, an annotation, or a function with arguments.

    Examples
    --------
    >>> is_type(int), is_type(list[int]), is_type(int | None), is_type(["int"]), is_type("int")
    (True, True, True, False, False)
    """
    if isinstance(value, type) or typing.get_origin(value) is not None:
        return True
    if isinstance(value, types.FunctionType | types.MethodType | typing.NewType):
        return True
    # Aliases made by the statement `type`, and `Any`, which is a class since Python 3.11.
    return value is typing.Any or type(value).__name__ == "TypeAliasType"
