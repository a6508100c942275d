"""``formalm sample``."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, cast

import typer

from formalm.automata.texts import shown_bytes
from formalm.cli.exit_status import INTERRUPTED, NOTHING, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import LimitOptions, QueryOptions
from formalm.cli.record_options import RecordOptions
from formalm.cli.shared_options import Json, one_of
from formalm.cli.terminal_output import remark, write_data

if TYPE_CHECKING:
    from formalm.drivers import Samples
    from formalm.drivers.samples import Target

__all__ = ["sample"]


def sample(
    query: QueryOptions,
    model: ModelOptions,
    work: LimitOptions,
    out: RecordOptions,
    prompt: Annotated[str | None, typer.Option(help="What stands in front.")] = None,
    count: Annotated[int, typer.Option("-n", "--count", help="How many.")] = 1,
    target: Annotated[
        str,
        one_of(
            *("posterior", "local", "without_replacement", "uniform"),
            help="The distribution to draw from.",
        ),
    ] = "posterior",
    event: Annotated[
        str | None,
        one_of(
            *("complete", "token_prefix", "prefix", "contains", "never"),
            help="What happens in the output; it has to be said.",
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Makes the same draws again.")] = None,
    json: Json = False,
) -> None:
    """Draw members of a language, or outputs in which an event happens."""
    with reported(json):
        from formalm import drivers

        out.check()
        drawn = drivers.sample(
            model.load(),
            query.asked(work, event=event),
            n=count,
            target=cast("Target", target),
            prompt=prompt,
            seed=seed,
            batch_size=work.batch_size,
        )
        out.write(drawn)
        _show(drawn, json)


def _show(drawn: Samples, json: bool) -> None:
    if not json and len(drawn):
        remark(f"{'logprob':>10}  {'log weight':>10}  text")
    for one in drawn:
        inside = one.log_weight > -math.inf
        if not json:
            shown = (
                f"{one.logprob:10.4f}  {one.log_weight:10.4f}" if inside else "outside".rjust(22)
            )
            write_data(shown_bytes(one.data), before=f"{shown}  ")
            continue
        print_json(
            {
                "text": one.text,
                "given": one.given,
                "token_ids": list(one.token_ids),
                # JSON has no infinity: null is a probability, or a weight, of 0.
                "logprob": one.logprob if one.logprob > -math.inf else None,
                "log_weight": one.log_weight if inside else None,
            }
        )
    facts = {
        "status": drawn.status,
        "event": drawn.event,
        "truncated_by": drawn.truncated_by,
        "seed": drawn.seed,
        "attempts": drawn.attempts,
        **asdict(drawn.cost),
    }
    if json:
        print_json(facts)
    else:
        by = "" if drawn.truncated_by is None else f" by {drawn.truncated_by}"
        remark(f"{drawn.status}{by}: {drawn.forwards:,} forwards, seed {drawn.seed}")
    if drawn.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if not len(drawn):
        raise typer.Exit(NOTHING)
