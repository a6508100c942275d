"""``formalm score``."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.cli.exit_status import INTERRUPTED, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import read_query
from formalm.cli.record_options import RecordOptions
from formalm.cli.shared_options import Json, one_of
from formalm.cli.terminal_output import remark, write_data
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm.drivers import Score
    from formalm.query import Query

__all__ = ["score"]

FORWARDS = 10_000
UNUSED = (
    *("given", "prefix_cost", "prefix_weights", "boundary", "unique", "keep", "max_tokens"),
    "decoded",
)
"""Fields of a query that the score of a text has no use for."""


def score(
    model: ModelOptions,
    out: RecordOptions,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Texts; or --query, whose members are taken.")
    ] = None,
    query: Annotated[
        str | None,
        typer.Option("--query", "-q", help="A query with finitely many members, TOML or JSON."),
    ] = None,
    prompt: Annotated[str | None, typer.Option(help="What stands in front.")] = None,
    event: Annotated[
        str | None,
        one_of(
            *("token_prefix", "complete"),
            help="complete: an end follows; token_prefix if not given.",
        ),
    ] = None,
    tokenization: Annotated[
        str | None, one_of("all", "canonical", help="Which tokens count; all if not given.")
    ] = None,
    forwards: Annotated[
        int | None, typer.Option(help=f"Most prefixes evaluated, for each text; {FORWARDS}.")
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Probability that may stay undecided.")] = 1e-9,
    batch_size: Annotated[int, typer.Option(help="Most prefixes a call of the model.")] = 16,
    json: Json = False,
) -> None:
    """Tell how probable texts are: the tokenizer's encoding, and all tokenizations."""
    with reported(json):
        from formalm import drivers

        if (query is None) == (not texts):
            raise ArgumentError("which texts?", hint="give texts, or --query with a language")
        asked: dict[str, Any] = {"limits": drivers.Limits(forwards=FORWARDS)}
        if query is not None:
            texts, asked = _asked(read_query(query))
        if forwards is not None:
            asked["limits"] = replace(asked["limits"], forwards=forwards)
        own = {"event": event, "tokenization": tokenization}
        asked |= {name: value for name, value in own.items() if value is not None}
        out.check()
        scores = drivers.score(
            model.load(),
            texts or [],
            prompt=prompt,
            tolerance=tolerance,
            batch_size=batch_size,
            **asked,
        )
        known = [one for one in scores if not math.isnan(one.logprob)]
        out.write(known)
        if known and not json:
            remark(f"{'logprob':>10}  {'of all tokenizations':>23}  text")
        for one in known:
            _show(one, json)
        if any(one.status == "interrupted" for one in scores):
            left = len(scores) - len(known)
            remark(f"interrupted: {left:,} of {len(scores):,} texts have no score")
            raise typer.Exit(INTERRUPTED)


def _asked(query: Query) -> tuple[list[str], dict[str, Any]]:
    """The members of a query, and what it says of their scores."""
    from formalm.query import Query
    from formalm.query.prefixes import members

    for name in UNUSED:
        if getattr(query, name) != Query.__dataclass_fields__[name].default:
            raise ArgumentError(f"the score of a text has no use for the query's {name}")
    names = ("decoding", "renormalize", "tokenization", "bos", "limits")
    asked = {name: getattr(query, name) for name in names}
    texts = members(query.asked, what="members to score")
    return [text.decode() for text in texts], {**asked, "event": query.event or "token_prefix"}


def _show(one: Score, json: bool) -> None:
    low, high = one.marginal
    if not json:
        before = f"{one.logprob:10.4f}  {low:10.4f} … {high:<10.4f}  "
        write_data(one.text.encode(errors="surrogatepass"), before=before)
        return
    print_json(
        {
            "text": one.text,
            "token_ids": list(one.token_ids),
            # JSON has no infinity: null is a probability of 0.
            "logprob": one.logprob if one.logprob > -math.inf else None,
            "marginal": [bound if bound > -math.inf else None for bound in one.marginal],
            "tokenizations": one.tokenizations,
            "event": one.event,
            "possible": one.possible,
            "status": one.status,
            "truncated_by": one.truncated_by,
        }
    )
