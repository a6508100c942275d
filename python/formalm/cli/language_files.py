"""Languages in files: JSON Schemas, TypeScript types and grammars."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm.languages import Grammar, Indentation, JsonSchema

__all__ = ["read_grammar", "read_indentation", "read_schema"]

#: Syntaxes of grammars by the ends of files' names.
SYNTAXES = {".gbnf": "gbnf", ".ebnf": "ebnf", ".bnf": "ebnf"}


def read_schema(file: Path, resources: list[str] | None = None, **options: Any) -> JsonSchema:
    """The schema in a file, a TypeScript type if its name ends so."""
    from formalm.languages import JsonSchema, TypeScript

    others = {}
    for one in resources or []:
        uri, equals, place = one.rpartition("=")
        if not equals:
            raise ArgumentError(f"--resource is URI=FILE, not {one!r}")
        others[uri] = Path(place)
    if file.suffix.lower() == ".ts":
        if others:
            raise ArgumentError("--resource is for JSON Schemas: a TypeScript text refers to none")
        return TypeScript(_text(file), **options)
    return JsonSchema(file, resources=others, **options)


def read_grammar(
    file: Path,
    syntax: str | None = None,
    lexing: str | None = None,
    start: str | None = None,
    indentation: Indentation | None = None,
) -> Grammar:
    """The grammar in a file, in the syntax that is given or that its name tells."""
    from formalm.languages import Grammar

    chosen: Any = syntax or SYNTAXES.get(file.suffix.lower(), "lark")
    reading: Any = lexing
    return Grammar(_text(file), chosen, reading, start, indentation=indentation)


def read_indentation(rules: str, brackets: str) -> Indentation:
    """Levels that are told by these rules, but within pairs of brackets."""
    from formalm.languages import Indentation

    if len(brackets) % 2:
        raise ArgumentError(f"--brackets are pairs such as '()[]', not {brackets!r}")
    columns: Any = rules
    return Indentation(opening=tuple(brackets[::2]), closing=tuple(brackets[1::2]), rules=columns)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{file} cannot be read: {error}") from None
