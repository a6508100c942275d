"""``formalm sample``."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated

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
from formalm.cli.outcome import NOTHING, print_json, reported

if TYPE_CHECKING:
    from formalm.drivers import Samples

__all__ = ["sample"]


def sample(
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
    count: Annotated[int, typer.Option("-n", "--count", help="How many.")] = 1,
    target: Annotated[
        str, typer.Option(help="posterior, local or without_replacement.")
    ] = "posterior",
    seed: Annotated[int | None, typer.Option(help="Makes the same draws again.")] = None,
    json: Json = False,
) -> None:
    """Draw complete members of a language."""
    with reported(json):
        from formalm import drivers

        language = chosen_language(regex, choice, literal, dialect)
        drawn = drivers.sample(
            chosen_model(model),
            chosen_query(query, language, given=given, max_tokens=max_tokens),
            count,
            target=target,
            prompt=prompt,
            seed=seed,
            limits=drivers.Limits(forwards=forwards, seconds=seconds),
            batch_size=batch_size,
        )
        _show(drawn, json)


def _show(drawn: Samples, json: bool) -> None:
    for one in drawn:
        inside = one.logprob > -math.inf
        if not json:
            shown = f"{one.logprob:10.4f}  {one.log_weight:10.4f}" if inside else "outside"
            typer.echo(f"{shown}  {one.text}")
            continue
        print_json(
            {
                "text": one.text,
                "given": one.given,
                "token_ids": list(one.token_ids),
                # JSON has no infinity: a walk that ended outside the language has neither.
                "logprob": one.logprob if inside else None,
                "log_weight": one.log_weight if inside else None,
            }
        )
    facts = {
        "status": drawn.status,
        "truncated_by": drawn.truncated_by,
        "seed": drawn.seed,
        "attempts": drawn.attempts,
        "forwards": drawn.forwards,
    }
    if json:
        print_json(facts)
    else:
        by = "" if drawn.truncated_by is None else f" by {drawn.truncated_by}"
        typer.echo(f"{drawn.status}{by}: {drawn.forwards:,} forwards, seed {drawn.seed}", err=True)
    if not len(drawn):
        raise typer.Exit(NOTHING)
