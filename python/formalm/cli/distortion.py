"""``formalm distortion``."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from formalm.cli.exit_status import INTERRUPTED, NOTHING, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import LimitOptions, QueryOptions
from formalm.cli.shared_options import Json, one_of
from formalm.cli.terminal_output import say

__all__ = ["distortion"]


def distortion(
    query: QueryOptions,
    model: ModelOptions,
    work: LimitOptions,
    prompt: Annotated[str | None, typer.Option(help="What stands in front.")] = None,
    event: Annotated[
        str | None,
        one_of("complete", "token_prefix", help="What happens in the output; it has to be said."),
    ] = None,
    exact: Annotated[
        bool | None,
        typer.Option("--exact/--estimate", help="Compute it, or estimate it; whatever fits."),
    ] = None,
    draws: Annotated[int, typer.Option(help="Draws of each mask, for estimates.")] = 2000,
    confidence: Annotated[float, typer.Option(help="Of each interval.")] = 0.95,
    seed: Annotated[int | None, typer.Option(help="Makes the same draws again.")] = None,
    json: Json = False,
) -> None:
    """Measure how far masks move a model from its own distribution over a language."""
    with reported(json):
        from formalm import drivers

        found = drivers.distortion(
            model.load(),
            query.asked(work, event=event),
            prompt=prompt,
            exact=exact,
            draws=draws,
            confidence=confidence,
            seed=seed,
            batch_size=work.batch_size,
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
    """JSON has no infinity."""
    return "inf" if value == float("inf") else value
