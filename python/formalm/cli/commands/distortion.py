"""``formalm distortion``: the distance between masked distributions and the model's own."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from formalm.cli.exit_status import INTERRUPTED, NOTHING, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import LimitOptions, QueryOptions, require_event
from formalm.cli.shared_options import Json, Prompt, Seed
from formalm.cli.terminal_output import ProgressLine, say
from formalm.query import TokenEvent

__all__ = ["distortion"]


def distortion(
    query: QueryOptions,
    model: ModelOptions,
    work: LimitOptions,
    prompt: Prompt = None,
    event: Annotated[
        TokenEvent | None,
        typer.Option(
            help="The event, required here or in the query file. complete: the output is a member"
            " and ends; token_prefix: it begins with tokens that spell a member."
        ),
    ] = None,
    exact: Annotated[
        bool | None,
        typer.Option(
            "--exact/--estimate",
            help="Compute the exact distances, or estimate them. Default: exact if feasible.",
        ),
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws from each mask, for estimates.")] = 2000,
    confidence: Annotated[float, typer.Option(help="Confidence of each interval.")] = 0.95,
    seed: Seed = None,
    json: Json = False,
) -> None:
    """Measure how far masking moves a model from its own distribution over a language."""
    with reported(json):
        from formalm import probability

        resolved = require_event(query.resolved(work, event=event), "complete", "token_prefix")
        source = model.load()
        with ProgressLine() as progress:
            found = probability.distortion(
                source,
                resolved,
                prompt=prompt,
                exact=exact,
                draws=draws,
                confidence=confidence,
                seed=seed,
                batch_size=work.batch_size,
                progress=progress.show_cost,
            )
        if json:
            print_json(_described(found))
        else:
            say(str(found))
        if found.status == "interrupted":
            raise typer.Exit(INTERRUPTED)
        if len(found.undecided) == len(found.divergences):
            raise typer.Exit(NOTHING)


def _described(found: Any) -> dict[str, object]:
    own = found.canonical_mass
    return {
        "exact": found.exact,
        "event": found.event,
        "status": found.status,
        "divergences": {
            way: {
                "total_variation": list(one.total_variation),
                "kl": None if one.kl is None else [_number(bound) for bound in one.kl],
            }
            for way, one in found.divergences.items()
        },
        "mass": list(found.mass),
        "canonical_mass": None if own is None else list(own),
        "texts": list(found.texts),
        "shares": {way: row.tolist() for way, row in found.shares.items()},
        "undecided": list(found.undecided),
        "notes": list(found.notes),
        "forwards": found.forwards,
        "seed": found.seed,
    }


def _number(value: float) -> float | str:
    """Return a number, or "inf", as JSON has no infinity."""
    return "inf" if value == float("inf") else value
