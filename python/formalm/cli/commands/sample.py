"""``formalm sample``: draws from the model inside a language."""

from __future__ import annotations

import math
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from formalm.automata.text_of_bytes import shown_bytes
from formalm.cli.exit_status import INTERRUPTED, NOTHING, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import EventOption, LimitOptions, QueryOptions, require_event
from formalm.cli.record_options import RecordOptions
from formalm.cli.shared_options import Json, Prompt, Seed
from formalm.cli.terminal_output import ProgressLine, counted, remark, write_data
from formalm.query.query import Target

if TYPE_CHECKING:
    from formalm.sampling import Samples

__all__ = ["sample"]


def sample(
    query: QueryOptions,
    model: ModelOptions,
    work: LimitOptions,
    out: RecordOptions,
    prompt: Prompt = None,
    count: Annotated[int, typer.Option("--count", "-n", help="Number of draws.", metavar="N")] = 1,
    target: Annotated[
        Target,
        typer.Option(
            help="Distribution to draw from: posterior (the model's, given the event), local"
            " (token by token under masks, with weights), without_replacement, or uniform."
        ),
    ] = "posterior",
    event: EventOption = None,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Draw members of a language, or outputs in which an event happens.

    Each draw has its log-probability and its log weight (natural logarithms), and its text.
    """
    with reported(json):
        from formalm import sampling

        out.check()
        resolved = query.resolved(work, event=event)
        if target != "uniform":
            require_event(resolved)
        source = model.load()
        with ProgressLine() as progress:
            drawn = sampling.sample(
                source,
                resolved,
                n=count,
                target=target,
                prompt=prompt,
                seed=seed,
                batch_size=work.batch_size,
                progress=progress.show_cost,
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
                # JSON has no infinity: null stands for a probability, or a weight, of 0.
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
        forwards = counted(drawn.forwards, "forward")
        remark(f"{drawn.status}{by}: {counted(len(drawn), 'draw')}, {forwards}, seed {drawn.seed}")
    if drawn.status == "interrupted":
        raise typer.Exit(INTERRUPTED)
    if not len(drawn):
        raise typer.Exit(NOTHING)
