"""JSON Schema as a language: the JSON texts of its instances."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from formalm import _core
from formalm.automata.text_of_bytes import not_a_member
from formalm.errors import LanguageError, TokenError
from formalm.languages.json_schema.partial_json import PartialJson, whole_json
from formalm.languages.json_schema.schema_comparison import SchemaQuestions
from formalm.languages.json_schema.schema_notes import SchemaNote, SchemaPath, paths_of
from formalm.languages.json_schema.schema_options import (
    OPTIONS,
    Escapes,
    NumberFormat,
    PropertyOrder,
    changed,
    checked_options,
    known_options,
)
from formalm.languages.json_schema.schema_text import explain_unread, resource_texts, schema_text
from formalm.languages.language import Language

__all__ = ["JsonSchema", "SchemaNote"]


class JsonSchema(SchemaQuestions, Language):
    """The language of the JSON texts that a JSON Schema accepts.

    Drafts 4, 6, 7, 2019-09 and 2020-12 are supported, chosen by ``$schema``; the default is
    2020-12. All assertions and applicators are enforced, including references and recursion. Every
    allowed prefix can be completed, except as described in the notes.

    Parameters
    ----------
    schema
        A dictionary (or True or False), the text of a schema, or the path of a file with one.
        Floats in a dictionary mean the decimals that they print as; :class:`decimal.Decimal` is
        kept exactly.
    property_order
        ``"schema"``: the properties of every object come in one fixed order, declared ones first in
        the order of their declaration. ``"any"``: in any order. No property occurs twice in one
        object.
    max_whitespace
        Maximum number of whitespace characters (spaces, tabs, line breaks) wherever JSON allows
        whitespace between two tokens. 0 is compact. None is 1, or, with `indent` or `separators`,
        the exact layout they define.
    indent
        A number of spaces, or a string of whitespace: the line layout of :func:`json.dumps`.
    separators
        The separators of items and of names and values, as in :func:`json.dumps`: ``(", ", ": ")``
        is its layout on one line. With `indent`, None is ``(",", ": ")``. Without either,
        `max_whitespace` bounds the whitespace.
    number_format
        Spelling of numbers. ``"plain"`` allows exponents only where no keyword constrains a number;
        ``"any"`` allows them everywhere, of any size, and takes more states.
    escapes
        Spelling of strings. ``"minimal"`` escapes only where JSON requires it; ``"ascii"`` also
        escapes everything beyond ASCII; ``"any"`` allows every spelling.
    formats
        Whether to enforce known formats, in every draft, or the names of those to enforce. Other
        formats are annotations.
    additional_properties
        Whether objects accept undeclared properties if a schema has ``properties`` or
        ``patternProperties`` but no ``additionalProperties``. The standard says they do.
    max_depth
        Maximum nesting of objects and arrays whose contents the schema does not constrain. Those
        that it requires are always allowed. None is unlimited.
    approximate
        Whether to accept a schema that cannot be enforced exactly; :attr:`notes` and the report of
        a constraint say where and how. Otherwise it is refused.
    resources
        Schemas that this one may refer to, by URI. Nothing is ever fetched.

    Raises
    ------
    LanguageError
        For invalid JSON. When the machine is built, with the JSON pointer of the place: for an
        invalid schema, unresolved references, invalid patterns, schemas without an instance, and
        inexact schemas.
    LimitError
        For nesting, numbers, counts and searches beyond the limits, immediately or at a later byte.
    ArgumentError
        For options of wrong types or values.

    Notes
    -----
    With ``uniqueItems``, the values of an item are counted up to 256. If an array may need more
    distinct items than that, or if the values can be neither counted nor shown to be infinitely
    many, an allowed prefix may be a dead end. Such a schema is refused unless ``approximate``.

    Examples
    --------
    >>> from formalm import JsonSchema
    >>> point = JsonSchema({
    ...     "type": "object",
    ...     "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "minimum": 5}},
    ...     "required": ["x", "y"],
    ...     "additionalProperties": False,
    ... })
    >>> point.matches('{"x": 1, "y": 7}'), point.matches('{"x": 1, "y": 4}')
    (True, False)
    >>> point.is_viable('{"y'), point.shortest()
    (False, b'{"x":0,"y":5}')
    >>> point.value('{"x": 1, "y": 7}')
    {'x': 1, 'y': 7}
    """

    __slots__ = ("_loose", "_schema")

    def __init__(
        self,
        schema: Mapping[str, object] | bool | str | Path,
        *,
        property_order: PropertyOrder = "schema",
        max_whitespace: int | None = None,
        indent: int | str | None = None,
        separators: tuple[str, str] | None = None,
        number_format: NumberFormat = "plain",
        escapes: Escapes = "minimal",
        formats: bool | Collection[str] = True,
        additional_properties: bool = True,
        max_depth: int | None = None,
        approximate: bool = False,
        resources: Mapping[str, object] | None = None,
    ) -> None:
        written: tuple[Any, ...] = (
            *(property_order, max_whitespace, indent, separators, number_format, escapes),
            *(formats, additional_properties, max_depth, approximate),
        )
        try:
            options, core = known_options(*written)
        except TypeError:
            # A list among them cannot be looked up.
            options, core = checked_options(*written)
        text = schema_text(schema)
        others = () if resources is None else resource_texts(resources)
        super().__init__(text, options, others)
        try:
            self._schema = _core.JsonSchema(text, others, core)
        except LanguageError as error:
            explain_unread(error, schema)
            raise
        self._loose: JsonSchema | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _again, self._arguments

    @property
    def schema(self) -> str:
        """The schema as JSON text."""
        return str(self._arguments[0])

    @property
    def options(self) -> dict[str, Any]:
        """The options by name, without resources."""
        return dict(zip(OPTIONS, self._arguments[1], strict=True))  # type: ignore[call-overload]

    @property
    def resources(self) -> dict[str, str]:
        """The schemas that this one may refer to, by URI, as JSON texts."""
        return dict(self._arguments[2])  # type: ignore[call-overload, no-any-return]

    def varied(self, schema: object = None, **options: Any) -> JsonSchema:
        """Returns the schema, or another one with its resources, with some options changed."""
        text: Any = self.schema if schema is None else schema
        return JsonSchema(text, resources=self.resources, **changed(self.options, options))

    def loose(self) -> JsonSchema:
        """The schema with options that allow every spelling of an instance; created once."""
        if self._loose is None:
            self._loose = self.varied(
                property_order="any",
                max_whitespace=1,
                number_format="any",
                escapes="any",
                max_depth=None,
            )
        return self._loose

    def places_against(self, beginning: bytes, following: bytes) -> tuple[str, ...]:
        """Returns the places of keywords that forbid a byte, or the end, after a prefix."""
        from formalm.languages.json_schema.schema_explanation import forbidding_keywords

        return forbidding_keywords(self, beginning, following)

    @property
    def notes(self) -> tuple[SchemaNote, ...]:
        """Parts that are not enforced, not exact, or read differently than in the draft.

        Examples
        --------
        >>> from formalm import JsonSchema
        >>> JsonSchema({"format": "color"}).notes[0].place
        '#/format'
        """
        return tuple(SchemaNote(*remark) for remark in self.automaton().remarks)

    @property
    def paths(self) -> tuple[SchemaPath, ...]:
        """Every reachable subschema as exact or approximate, in the order of places.

        Examples
        --------
        >>> from formalm import JsonSchema
        >>> [path.place for path in JsonSchema({"not": {"minimum": 1}}).paths]
        ['#', '#/not']
        """
        return paths_of(self.automaton().places, self.notes)

    def value(self, text: str | bytes) -> object:
        """The parsed JSON of a member.

        Raises
        ------
        TokenError
            If ``text`` is not a member.
        LimitError
            For an integer of more digits, or values nested deeper, than Python reads.
        """
        if not self.matches(text):
            raise not_a_member()
        return whole_json(text)

    def partial(self, text: str | bytes, *, open_strings: bool = False) -> object:
        """Returns the finished part of a prefix of a member, as plain JSON; None if there is none.

        Strings and numbers appear once they have ended; objects and arrays appear with their
        finished properties and items.

        Parameters
        ----------
        text
            The prefix.
        open_strings
            Whether to include the string under way as far as it was read, without an escape that is
            cut short. Its value need not satisfy the schema yet. A property's name is never
            included before its value begins.

        Raises
        ------
        TokenError
            If no member begins with ``text``.

        Examples
        --------
        >>> from formalm import JsonSchema
        >>> JsonSchema({"type": "object"}).partial('{"name": "Ada", "born": {"year": 18')
        {'name': 'Ada', 'born': {}}
        >>> JsonSchema({"type": "object"}).partial('{"name": "Jane A', open_strings=True)
        {'name': 'Jane A'}
        """
        if not self.is_viable(text):
            raise TokenError(
                "text must be a viable prefix, and no member begins with this one",
                hint="ask is_viable(text)",
            )
        parts = self.parts()
        parts.feed(text if isinstance(text, str) else text.decode(errors="ignore"))
        return parts.with_open_string() if open_strings else parts.value

    def parts(self) -> PartialJson:
        """Returns a new reader for texts that are still being written."""
        return PartialJson()

    def may_have_parts(self) -> bool:
        """False: it consists of strings and options."""
        return False

    @property
    def is_regular(self) -> bool:
        """False: a schema has a machine of its own."""
        return False

    def _described(self) -> _core.JsonSchema:
        return self._schema

    def _made(self, state_limit: int | None) -> _core.Automaton:
        try:
            return super()._made(state_limit)
        except LanguageError as error:
            from formalm.languages.json_schema.schema_explanation import contradicting_keywords

            places = contradicting_keywords(self)
            if not places:
                raise
            *others, last = places
            all_of = f"all of {', '.join(others)} and {last}" if others else last
            hint = f"no value satisfies {all_of}"
            raise LanguageError(error.message, hint=hint) from None

    def _build(self) -> NoReturn:
        raise LanguageError(
            "a schema cannot be edited, rewritten, reversed or complemented, because it is not a"
            " regular language",
            hint="combine schemas with allOf, anyOf and not",
        )

    def __repr__(self) -> str:
        parts = [self.schema]
        for name, value in self.options.items():
            if value != OPTIONS[name]:
                parts.append(f"{name}={value!r}")
        return f"JsonSchema({', '.join(parts)})"


def _again(text: str, options: Iterable[Any], resources: Iterable[tuple[str, str]]) -> JsonSchema:
    """Rebuilds a schema from its description, for pickles and copies."""
    return JsonSchema(text, resources=dict(resources), **dict(zip(OPTIONS, options, strict=True)))
