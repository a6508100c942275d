"""``formalm score``: log-probabilities of given strings."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.cli.exit_status import INTERRUPTED, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import TokenEventOption, read_query
from formalm.cli.record_options import RecordOptions
from formalm.cli.shared_options import Json, Prompt
from formalm.cli.terminal_output import ProgressLine, counted, remark, write_data
from formalm.constraint import Tokenization
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from formalm.probability import Score
    from formalm.query import Query

__all__ = ["score"]

FORWARDS = 10_000
"""Default limit of ``--forwards``, in prefixes per string. Chosen, not measured."""
UNUSED = (
    *("given", "prefix_cost", "prefix_weights", "boundary", "unique", "keep", "max_tokens"),
    "decoded",
)
"""Fields of a query that do not apply to the score of a string."""


def score(
    model: ModelOptions,
    out: RecordOptions,
    texts: Annotated[
        list[str] | None, typer.Argument(help="Strings to score, unless --query is given.")
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            "-q",
            help="Score the members of a finite language: a query file, TOML or JSON.",
            metavar="FILE",
        ),
    ] = None,
    prompt: Prompt = None,
    event: TokenEventOption = None,
    tokenization: Annotated[
        Tokenization | None,
        typer.Option(
            help="Token sequences that count: all (default), or the tokenizer's own (canonical)."
        ),
    ] = None,
    forwards: Annotated[
        int | None,
        typer.Option(
            help=f"Maximum prefixes that the model evaluates for each string. Default:"
            f" {FORWARDS:,}, or the query file's."
        ),
    ] = None,
    tolerance: Annotated[
        float, typer.Option(help="Maximum probability that may stay undecided.")
    ] = 1e-9,
    batch_size: Annotated[int, typer.Option(help="Maximum prefixes per call of the model.")] = 16,
    json: Json = False,
) -> None:
    """Score strings: the tokenizer's own encoding, and all tokenizations together.

    Scores are log-probabilities (natural logarithm); that of all tokenizations is an interval.
    """
    with reported(json):
        from formalm import probability
        from formalm.query import Limits

        if (query is None) == (not texts):
            raise ArgumentError("pass either TEXTS or --query" + (", not both" if texts else ""))
        options: dict[str, Any] = {"limits": Limits(forwards=FORWARDS)}
        if query is not None:
            texts, options = _texts_and_options(read_query(query))
        if forwards is not None:
            options["limits"] = replace(options["limits"], forwards=forwards)
        own = {"event": event, "tokenization": tokenization}
        options |= {name: value for name, value in own.items() if value is not None}
        out.check()
        source = model.load()
        with ProgressLine() as progress:
            scores = probability.score(
                source,
                texts or [],
                prompt=prompt,
                tolerance=tolerance,
                batch_size=batch_size,
                progress=progress.show_cost,
                **options,
            )
        known = [one for one in scores if not math.isnan(one.logprob)]
        out.write(known)
        if known and not json:
            remark(f"{'logprob':>10}  {'all tokenizations':^23}  text")
        for one in known:
            _show(one, json)
        if any(one.status == "interrupted" for one in scores):
            left, total = len(scores) - len(known), counted(len(scores), "string")
            remark(f"interrupted: {left:,} of {total} not scored")
            raise typer.Exit(INTERRUPTED)


def _texts_and_options(query: Query) -> tuple[list[str], dict[str, Any]]:
    """Return the members of a query, and its options that apply to scores."""
    from formalm.query import Query
    from formalm.query.prefixes import members

    for name in UNUSED:
        if getattr(query, name) != Query.__dataclass_fields__[name].default:
            raise ArgumentError(f"the query must not have {name!r}, which does not apply to scores")
    names = ("decoding", "renormalize", "tokenization", "bos", "limits")
    options = {name: getattr(query, name) for name in names}
    texts = members(query.effective_language, what="members to score")
    return [text.decode() for text in texts], {**options, "event": query.event or "token_prefix"}


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
            # JSON has no infinity: null stands for a probability of 0.
            "logprob": one.logprob if one.logprob > -math.inf else None,
            "marginal": [bound if bound > -math.inf else None for bound in one.marginal],
            "tokenizations": one.tokenizations,
            "event": one.event,
            "possible": one.possible,
            "status": one.status,
            "truncated_by": one.truncated_by,
        }
    )
