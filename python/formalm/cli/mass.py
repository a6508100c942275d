"""``formalm mass``."""

from __future__ import annotations

from typing import Annotated

import typer

from formalm.cli.exit_status import INTERRUPTED, flattened, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import LimitOptions, QueryOptions
from formalm.cli.shared_options import Json, one_of
from formalm.cli.terminal_output import say

__all__ = ["mass"]


def mass(
    query: QueryOptions,
    model: ModelOptions,
    work: LimitOptions,
    prompt: Annotated[str | None, typer.Option(help="What stands in front.")] = None,
    event: Annotated[
        str | None,
        one_of(
            *("complete", "token_prefix", "prefix", "contains", "never"),
            help="What happens in the output; it has to be said.",
        ),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="The width that is enough.")] = 1e-3,
    json: Json = False,
) -> None:
    """Bound the probability of a language, with proof."""
    with reported(json):
        from formalm import drivers

        found = drivers.mass(
            model.load(),
            query.asked(work, event=event),
            prompt=prompt,
            tolerance=tolerance,
            batch_size=work.batch_size,
        )
        if json:
            print_json(flattened(found))
        else:
            say(str(found))
        if found.status == "interrupted":
            raise typer.Exit(INTERRUPTED)
