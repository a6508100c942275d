"""``formalm mass``: proven bounds on the probability of an event."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from formalm.cli.exit_status import INTERRUPTED, flattened, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import EventOption, LimitOptions, QueryOptions, require_event
from formalm.cli.shared_options import Json, Prompt
from formalm.cli.terminal_output import ProgressLine, counted, say

if TYPE_CHECKING:
    from formalm.probability import Mass

__all__ = ["mass"]


def mass(
    query: QueryOptions,
    model: ModelOptions,
    work: LimitOptions,
    prompt: Prompt = None,
    event: EventOption = None,
    tolerance: Annotated[
        float, typer.Option(help="Stop when the interval is at most this wide.")
    ] = 1e-3,
    json: Json = False,
) -> None:
    """Bound the probability of an event: an interval that is proven, not estimated."""
    with reported(json):
        from formalm import probability

        resolved = require_event(query.resolved(work, event=event))
        source = model.load()
        with ProgressLine() as progress:
            found = probability.mass(
                source,
                resolved,
                prompt=prompt,
                tolerance=tolerance,
                batch_size=work.batch_size,
                progress=progress.show_cost,
            )
        if json:
            print_json(flattened(found))
        else:
            say(_as_text(found))
        if found.status == "interrupted":
            raise typer.Exit(INTERRUPTED)


def _as_text(found: Mass) -> str:
    """Return the interval, and on a second line the reason that it ended so."""
    status = {
        "exact": "exact",
        "reached": "tolerance reached",
        "truncated": f"limit reached: {found.truncated_by}",
    }.get(found.status, found.status)
    bounds = f"{found.low:.6g} … {found.high:.6g}"
    return f"{bounds}  ({found.event}; {status}; {counted(found.forwards, 'forward')})"
