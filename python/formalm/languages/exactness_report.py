"""Exactness reports of constraints: exact and approximate parts, with places and reasons."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from formalm.errors import LanguageError
from formalm.languages.json_schema.language import JsonSchema
from formalm.languages.json_schema.schema_notes import SchemaNote, SchemaPath
from formalm.languages.language import Language

__all__ = ["Report", "counted", "grammar_notes", "schemas_within"]


@dataclass(frozen=True)
class Report:
    """The exactness of a constraint: how faithfully it enforces its language.

    For a grammar with canonical tokens, the report is about the masks so far, because the search
    for canonical completions may be cut short. So may the search for shortest completions, which
    only ``finish=True`` needs.

    As text, the report has one line per approximation, and the number of exact schema paths.

    Attributes
    ----------
    exact
        Whether the masks are exactly those of the language.
    approximations
        Where they are not, and in which direction.
    notes
        Parts of schemas and grammars that may not mean what they seem to, with places: JSON
        pointers, and lines as in ``line 2``. ``approximations`` lists the inexact ones as well.
    paths
        Every reachable subschema, exact or approximate.
    excluded
        With canonical tokens: why members of the language have none, with an example, and how many
        they are if they can be counted. The tokenizer changes such a member, or loses a part of it,
        so no tokens give it back.

    Examples
    --------
    >>> from formalm import Constraint, JsonSchema, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"1"])
    >>> report = Constraint(JsonSchema({"anyOf": [{"minimum": 1}, {}]}), vocabulary).report
    >>> print(report)
    exact
    3 paths of schemas are exact
    >>> report.paths[1]
    SchemaPath(place='#/anyOf/0', status='exact', effect='exact', reasons=())
    """

    exact: bool = True
    approximations: tuple[str, ...] = ()
    notes: tuple[SchemaNote, ...] = ()
    paths: tuple[SchemaPath, ...] = field(default=(), repr=False)
    excluded: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = ["exact" if self.exact else "not exact", *self.approximations, *self.excluded]
        return "\n".join([*lines, *counted(self.paths)])


def counted(paths: tuple[SchemaPath, ...]) -> list[str]:
    """Returns the number of paths of each status, one per line."""
    counts = Counter(path.status for path in paths)
    lines = []
    for status in ("exact", "approximate", "refused"):
        count = counts[status]
        if count:
            what = "path of a schema is" if count == 1 else "paths of schemas are"
            lines.append(f"{count} {what} {status}")
    return lines


def grammar_notes(language: object) -> tuple[SchemaNote, ...]:
    """Returns the notes of a grammar, or of the grammars inside a language."""
    from formalm.languages.grammar.language import Grammar

    notes: tuple[SchemaNote, ...] = ()
    if isinstance(language, Grammar):
        try:
            found = language.notes
        except LanguageError:  # A part of a union may be empty.
            found = ()
        for note in found:
            start = 0 if note.span is None else note.span[0]
            line = language.text.count("\n", 0, start) + 1
            notes += (SchemaNote("" if note.span is None else f"line {line}", note.message),)
    if isinstance(language, Language):
        language = language._arguments
    if isinstance(language, tuple):
        notes += tuple(note for part in language for note in grammar_notes(part))
    return notes


def schemas_within(language: object) -> tuple[JsonSchema, ...]:
    """Returns a schema, or the schemas inside a language."""
    if isinstance(language, JsonSchema):
        return (language,)
    if isinstance(language, Language):
        language = language._arguments
    if isinstance(language, tuple):
        return tuple(schema for part in language for schema in schemas_within(part))
    return ()
