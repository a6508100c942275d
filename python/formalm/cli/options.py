"""Options that several commands share, and what they stand for."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.errors import ArgumentError, ModelError

if TYPE_CHECKING:
    from formalm.languages import Language
    from formalm.models import LanguageModel
    from formalm.query import Query

__all__ = [
    "Choices",
    "Dialect",
    "Json",
    "Literals",
    "Model",
    "QueryFile",
    "Regexes",
    "chosen_language",
    "chosen_model",
    "chosen_query",
]

Regexes = Annotated[
    list[str] | None, typer.Option("--regex", "-r", help="A pattern; several are a union.")
]
Choices = Annotated[
    list[str] | None, typer.Option("--choice", "-c", help="One of several texts; repeat it.")
]
Literals = Annotated[list[str] | None, typer.Option("--literal", "-l", help="Exactly this text.")]
Dialect = Annotated[str, typer.Option(help="Syntax of the patterns: python or ecma.")]
Model = Annotated[
    str, typer.Option("--model", "-m", help="canary, or a folder of the same layout.")
]
QueryFile = Annotated[Path | None, typer.Option("--query", "-q", help="A query, as TOML or JSON.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, one object a line.")]


def chosen_language(
    regexes: list[str] | None,
    choices: list[str] | None,
    literals: list[str] | None,
    dialect: str,
) -> Language | None:
    """The union of what the options name, or None."""
    from formalm.languages import Choice, Literal, Regex

    parts: list[Language] = [Regex(pattern, dialect=dialect) for pattern in regexes or []]
    if choices:
        parts.append(Choice(choices))
    parts += [Literal(text) for text in literals or []]
    return reduce(or_, parts) if parts else None


def chosen_model(name: str) -> LanguageModel:
    """The embedded model, or one of the same layout from a folder."""
    from formalm.models.canary import canary, load

    if name != "canary" and not Path(name, "config.json").is_file():
        raise ArgumentError(f"{name!r} is neither canary nor a folder with config.json in it")
    try:
        return canary() if name == "canary" else load(name)
    except OSError as error:
        raise ModelError(f"cannot read the model: {error}") from None


def chosen_query(path: Path | None, language: Language | None, **fields: Any) -> Query:
    """The query of a file or of options; a field that was given overrides the file's.

    The file is JSON if its name ends so, TOML otherwise.
    """
    from dataclasses import replace

    from formalm.query import Query

    given = {name: value for name, value in fields.items() if value is not None}
    if (path is None) == (language is None):
        raise ArgumentError("what to ask about?", hint="give --query, or --regex and the like")
    if language is not None:
        return Query(language, **given)
    assert path is not None
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"cannot read {str(path)!r}: {error}") from None
    read = Query.from_json(text) if path.suffix == ".json" else Query.from_toml(text)
    return replace(read, **given)
