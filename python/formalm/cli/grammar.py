"""``formalm grammar check``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formalm.cli.options import Json
from formalm.cli.outcome import print_json, reported

if TYPE_CHECKING:
    from formalm.languages import Grammar, Note
    from formalm.languages.overview import Overview

__all__ = ["grammar"]

#: Syntaxes by the ends of files' names.
SYNTAXES = {".gbnf": "gbnf", ".ebnf": "ebnf", ".bnf": "ebnf"}

grammar = typer.Typer(help="Look at grammars.", no_args_is_help=True)


@grammar.callback()
def group() -> None:
    """Look at grammars."""


@grammar.command()
def check(
    file: Annotated[Path, typer.Argument(help="The text of a grammar.")],
    syntax: Annotated[
        str | None, typer.Option(help="lark, gbnf or ebnf; by default what the file's name says.")
    ] = None,
    lexing: Annotated[str | None, typer.Option(help="longest, first or any.")] = None,
    start: Annotated[str | None, typer.Option(help="The rule to start with.")] = None,
    json: Json = False,
) -> None:
    """Tell what a grammar reads: notes, how its members begin, and some of them."""
    with reported(json):
        from formalm.errors import ArgumentError
        from formalm.languages import Grammar
        from formalm.languages.overview import overview

        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"{file} cannot be read: {error}") from None
        chosen = syntax or SYNTAXES.get(file.suffix.lower(), "lark")
        read = Grammar(text, chosen, lexing, start)
        found = overview(read)
        if json:
            print_json(as_data(read, found))
        else:
            typer.echo(as_text(read, found))


def as_data(read: Grammar, found: Overview) -> dict[str, object]:
    """Everything found, for other programs."""
    return {
        "syntax": read.syntax,
        "lexing": read.lexing,
        "empty_is_member": found.empty,
        "first_bytes": list(found.first_bytes),
        "examples": [one if isinstance(one, str) else None for one in found.examples],
        "notes": [
            {"message": note.message, "line": line(read, note), "span": note.span}
            for note in read.notes
        ],
    }


def as_text(read: Grammar, found: Overview) -> str:
    """Everything found, for people."""
    lines = [f"{read.syntax}, lexemes: {read.lexing}"]
    if found.empty:
        lines.append("the empty text is a member")
    for byte, example in zip(found.first_bytes, found.examples, strict=True):
        shown = "(no member found within the limits)" if example is None else repr(example)
        lines.append(f"{chr(byte)!r:8} {shown}" if byte < 128 else f"byte {byte:02x}  {shown}")
    for note in read.notes:
        place = "" if note.span is None else f"line {line(read, note)}: "
        lines.append(f"note: {place}{note.message}")
    return "\n".join(lines)


def line(read: Grammar, note: Note) -> int | None:
    """The line that a note is about, from 1."""
    return None if note.span is None else read.text.count("\n", 0, note.span[0]) + 1
