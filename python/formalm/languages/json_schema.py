"""JSON Schemas: the JSON texts of their instances."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from formalm import _core
from formalm.errors import LanguageError, TokenError
from formalm.languages.language import Language
from formalm.languages.partial_json import PartialJson, whole_json
from formalm.languages.schema_comparison import SchemaQuestions
from formalm.languages.schema_notes import SchemaNote, SchemaPath, paths_of
from formalm.languages.schema_options import (
    OPTIONS,
    Escapes,
    NumberFormat,
    PropertyOrder,
    changed,
    checked_options,
    known_options,
)
from formalm.languages.schema_text import explain_unread, resource_texts, schema_text

__all__ = ["JsonSchema", "SchemaNote"]


class JsonSchema(SchemaQuestions, Language):
    """The JSON texts of the instances of a JSON Schema.

    Drafts 4, 6, 7, 2019-09 and 2020-12 are read, by ``$schema``; without it, 2020-12. All
    assertions and applicators are enforced, references and recursion included. Whatever is
    allowed can be completed, except as told below.

    Parameters
    ----------
    schema
        A dictionary (or True or False), the text of a schema, or the path of a file with one.
        Floats of a dictionary mean the decimals that they print as; :class:`decimal.Decimal` is
        kept exactly.
    property_order
        ``"schema"``: properties come in one fixed order in each object, declared ones first, in the
        order of their declaration. ``"any"``: in any order. No property comes twice in one object.
    max_whitespace
        Maximum number of whitespace characters (spaces, tabs, line ends) wherever JSON allows
        whitespace between two of its tokens. 0 is compact. None is 1, or, with `indent` or
        `separators`, what these say.
    indent
        A number of spaces, or a string of whitespace: members are laid out over lines exactly as
        :func:`json.dumps` lays them out with it.
    separators
        Exactly what separates items, and names from values, as :func:`json.dumps` takes it:
        ``(", ", ": ")`` is its layout on one line. With `indent` it is ``(",", ": ")`` if None.
        Without either, `max_whitespace` bounds the whitespace.
    number_format
        Spelling of numbers: ``"plain"`` allows exponents only where no keyword constrains a number;
        ``"any"`` allows them everywhere, of any size, and takes more states.
    escapes
        Spelling of strings: ``"minimal"`` escapes where JSON needs it; ``"ascii"`` escapes all
        that is beyond ASCII too; ``"any"`` allows every spelling that JSON has.
    formats
        Whether known formats are enforced, in every draft, or the names of those that are; the
        others are annotations.
    additional_properties
        Whether objects take members that are not declared where ``additionalProperties`` is not
        given beside ``properties`` or ``patternProperties``. The standard says they do.
    max_depth
        Most objects and arrays within each other of whose parts a schema says nothing; those that
        it asks for may always be there. None is no limit.
    approximate
        Whether a schema is taken that is not enforced exactly; :attr:`notes` and the report of a
        constraint say where and how. Otherwise it is refused.
    resources
        Schemas that this one may refer to, by URI. Nothing is ever fetched.

    Raises
    ------
    LanguageError
        For what is no JSON; when the machine is built, with the JSON pointer of the place: for
        what is no schema, references that lead nowhere, patterns that cannot be read, schemas
        without an instance, and what is not exact.
    LimitError
        For nesting, numbers, counts and searches beyond the limits, now or at a later byte.
    ArgumentError
        For options of wrong types or values.

    Notes
    -----
    Where items must be distinct, their values are counted, and are plenty from 256 on. Where they
    cannot be counted and are not shown to have no end, a text may come to a dead end; such a schema
    is refused unless ``approximate``.

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
        text = schema if type(schema) is str else schema_text(schema)
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
        """The options by name, resources aside."""
        return dict(zip(OPTIONS, self._arguments[1], strict=True))  # type: ignore[call-overload]

    @property
    def resources(self) -> dict[str, str]:
        """The schemas that this one may refer to, by URI, as JSON texts."""
        return dict(self._arguments[2])  # type: ignore[call-overload, no-any-return]

    def varied(self, schema: object = None, **options: Any) -> JsonSchema:
        """The schema, or another one with its resources, with some options changed."""
        text: Any = self.schema if schema is None else schema
        return JsonSchema(text, resources=self.resources, **changed(self.options, options))

    def loose(self) -> JsonSchema:
        """The schema with options that allow every spelling of an instance; made once."""
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
        """The places of keywords that forbid a byte, or the end, behind a beginning."""
        from formalm.languages.schema_reasons import forbidding

        return forbidding(self, beginning, following)

    @property
    def notes(self) -> tuple[SchemaNote, ...]:
        """What is not enforced, not exact, or read otherwise than as the draft has it.

        Examples
        --------
        >>> from formalm import JsonSchema
        >>> JsonSchema({"format": "color"}).notes[0].place
        '#/format'
        """
        return tuple(SchemaNote(*remark) for remark in self.automaton().remarks)

    @property
    def paths(self) -> tuple[SchemaPath, ...]:
        """Every subschema that can be reached, each exact or approximate, in the order of places.

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
            raise TokenError(
                "text must be a member, and this one is not", hint="ask matches(text) first"
            )
        return whole_json(text)

    def partial(self, text: str | bytes) -> object:
        """What is complete in the beginning of a member, as plain JSON; None if that is nothing.

        Strings and numbers are there once they have ended, objects and arrays with the members and
        items that are complete.

        Raises
        ------
        TokenError
            If no member begins with ``text``.

        Examples
        --------
        >>> from formalm import JsonSchema
        >>> JsonSchema({"type": "object"}).partial('{"name": "Ada", "born": {"year": 18')
        {'name': 'Ada', 'born': {}}
        """
        if not self.is_viable(text):
            raise TokenError(
                "text must be a viable prefix, and no member begins with this one",
                hint="ask is_viable(text)",
            )
        parts = self.parts()
        parts.feed(text if isinstance(text, str) else text.decode(errors="ignore"))
        return parts.value

    def parts(self) -> PartialJson:
        """A new reader of texts that are still being written."""
        return PartialJson()

    def may_have_parts(self) -> bool:
        """False: it is made of texts and options."""
        return False

    @property
    def is_regular(self) -> bool:
        """False: a schema is read by a machine of its own."""
        return False

    def _described(self) -> _core.JsonSchema:
        return self._schema

    def _made(self, state_limit: int | None) -> _core.Automaton:
        try:
            return super()._made(state_limit)
        except LanguageError as error:
            from formalm.languages.schema_reasons import contradicting

            places = contradicting(self)
            if not places:
                raise
            *others, last = places
            all_of = f"all of {', '.join(others)} and {last}" if others else last
            hint = f"no value satisfies {all_of}"
            raise LanguageError(error.message, hint=hint) from None

    def _build(self) -> NoReturn:
        raise LanguageError(
            "a schema cannot be edited, rewritten, reversed or complemented: these need a regular"
            " language",
            hint="combine schemas with allOf, anyOf and not",
        )

    def __repr__(self) -> str:
        parts = [self.schema]
        for name, value in self.options.items():
            if value != OPTIONS[name]:
                parts.append(f"{name}={value!r}")
        return f"JsonSchema({', '.join(parts)})"


def _again(text: str, options: Iterable[Any], resources: Iterable[tuple[str, str]]) -> JsonSchema:
    """A schema from its description, for pickles and copies."""
    return JsonSchema(text, resources=dict(resources), **dict(zip(OPTIONS, options, strict=True)))
