"""``formalm mass``."""

from __future__ import annotations

from typing import Annotated

import typer

from formalm.cli.options import (
    Choices,
    Dialect,
    Json,
    Literals,
    Model,
    QueryFile,
    Regexes,
    chosen_language,
    chosen_model,
    chosen_query,
)
from formalm.cli.outcome import print_json, reported

__all__ = ["mass"]


def mass(
    query: QueryFile = None,
    regex: Regexes = None,
    choice: Choices = None,
    literal: Literals = None,
    dialect: Dialect = "python",
    given: Annotated[str | None, typer.Option(help="Beginning of members, for granted.")] = None,
    prompt: Annotated[str | None, typer.Option(help="What stands in front.")] = None,
    model: Model = "canary",
    max_tokens: Annotated[int | None, typer.Option(help="Most tokens of a member.")] = None,
    forwards: Annotated[int, typer.Option(help="Most prefixes evaluated.")] = 10_000,
    seconds: Annotated[float | None, typer.Option(help="Most time.")] = None,
    batch_size: Annotated[int, typer.Option(help="Most prefixes a call of the model.")] = 16,
    event: Annotated[
        str | None, typer.Option(help="complete, prefix, contains or never; it has to be said.")
    ] = None,
    eps: Annotated[float, typer.Option(help="The width that is enough.")] = 1e-3,
    json: Json = False,
) -> None:
    """Bound the probability of a language, with proof."""
    with reported(json):
        from formalm import drivers

        language = chosen_language(regex, choice, literal, dialect)
        fields = {"given": given, "event": event, "max_tokens": max_tokens}
        found = drivers.mass(
            chosen_model(model),
            chosen_query(query, language, **fields),
            prompt=prompt,
            limits=drivers.Limits(forwards=forwards, seconds=seconds),
            eps=eps,
            batch_size=batch_size,
        )
        if json:
            print_json(vars(found))
        else:
            typer.echo(str(found))
