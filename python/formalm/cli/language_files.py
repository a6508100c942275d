"""Languages in files: JSON Schemas, TypeScript types and grammars."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm.languages import Grammar, Indentation, JsonSchema
    from formalm.languages.grammar.language import Syntax
    from formalm.languages.grammar.lark_objects import Lexing

__all__ = ["read_grammar", "read_indentation", "read_schema"]

#: Notations of grammars by file name extension.
SYNTAXES: dict[str, Syntax] = {".gbnf": "gbnf", ".ebnf": "ebnf", ".bnf": "ebnf"}


def read_schema(file: Path, resources: list[str] | None = None, **options: Any) -> JsonSchema:
    """Read a JSON Schema file, or a TypeScript type if the name ends in ``.ts``."""
    from formalm.languages import JsonSchema, TypeScript

    others = {}
    for one in resources or []:
        uri, equals, place = one.rpartition("=")
        if not equals:
            raise ArgumentError(f"--resource must be URI=FILE, got {one!r}")
        others[uri] = Path(place)
    if file.suffix.lower() == ".ts":
        if others:
            raise ArgumentError("--resource requires a JSON Schema, got a TypeScript type")
        return TypeScript(_text(file), **options)
    return JsonSchema(file, resources=others, **options)


def read_grammar(
    file: Path,
    syntax: Syntax | None = None,
    lexing: Lexing | None = None,
    start: str | None = None,
    indentation: Indentation | None = None,
) -> Grammar:
    """Read a grammar file, in the given notation or that of its name."""
    from formalm.languages import Grammar

    chosen = syntax or SYNTAXES.get(file.suffix.lower(), "lark")
    return Grammar(_text(file), chosen, lexing, start, indentation=indentation)


def read_indentation(rules: Literal["python", "lark"], brackets: str) -> Indentation:
    """Return the indentation rules, which ignore line breaks inside pairs of brackets."""
    from formalm.languages import Indentation

    if len(brackets) % 2:
        raise ArgumentError(f"--brackets must be pairs such as '()[]', got {brackets!r}")
    return Indentation(opening=tuple(brackets[::2]), closing=tuple(brackets[1::2]), rules=rules)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ArgumentError(f"cannot read {str(file)!r}: {reason}") from None
