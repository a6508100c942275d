"""``formalm search``."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.automata.texts import shown_bytes
from formalm.cli.exit_status import INTERRUPTED, NOTHING, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import LimitOptions, QueryOptions
from formalm.cli.record_options import RecordOptions, writable
from formalm.cli.shared_options import Json, one_of
from formalm.cli.terminal_output import Progress, remark, write_data

if TYPE_CHECKING:
    from formalm.drivers import Hit, Search

__all__ = ["search"]

HITS = 10


def search(
    query: QueryOptions,
    model: ModelOptions,
    work: LimitOptions,
    out: RecordOptions,
    prompt: Annotated[str | None, typer.Option(help="What stands in front.")] = None,
    hits: Annotated[
        int | None,
        typer.Option("-n", "--hits", help=f"Most hits; {HITS} unless a query file says."),
    ] = None,
    top_k: Annotated[int | None, typer.Option(help="Follow only the k best tokens.")] = None,
    unique: Annotated[
        str | None,
        one_of("strings", "tokens", help="What is listed once; strings if not given."),
    ] = None,
    event: Annotated[
        str | None,
        one_of(
            *("token_prefix", "complete"),
            help="complete: an end follows; token_prefix if not given.",
        ),
    ] = None,
    beam: Annotated[
        int | None,
        typer.Option(help="Keep so many token sequences of each length; with unique=tokens."),
    ] = None,
    save: Annotated[
        str | None, typer.Option(help="Write where the search stands to this file in the end.")
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(help="Go on from such a file; limits count from the beginning."),
    ] = None,
    tolerance: Annotated[float, typer.Option(help="Missing share of a merged hit.")] = 1e-6,
    json: Json = False,
) -> None:
    """List the members of a language, the most probable first."""
    with reported(json):
        from formalm import drivers

        asked = query.asked(work)
        limits = asked.limits
        if hits is not None or query.query is None:
            limits = replace(limits, hits=HITS if hits is None else hits)
        if beam is not None:
            limits = replace(limits, beam=beam)
        out.check()
        if save is not None:
            writable(save)
        options: dict[str, Any] = {"unique": unique, "event": event}
        if top_k is not None:
            options["decoding"] = replace(asked.decoding, top_k=top_k)
        found = drivers.search(
            model.load(),
            asked,
            prompt=prompt,
            limits=limits,
            batch_size=work.batch_size,
            tolerance=tolerance,
            resume=resume,
            **{name: value for name, value in options.items() if value is not None},
        )
        shown: list[Hit] = []
        interrupted = _show(found, json, shown if out.wanted else None)
        out.write(shown)
        if save is not None:
            found.save(save)
        _conclude(found, interrupted, json)


def _show(found: Search, json: bool, shown: list[Hit] | None) -> bool:
    """Print hits as they come, counters on standard error meanwhile; whether it was interrupted."""
    progress = Progress()
    progress.show("searching")
    try:
        while found.status == "running":
            hit = found.advance()
            if hit is not None:
                progress.clear()
                _print_hit(hit, json)
                if shown is not None:
                    shown.append(hit)
            progress.show(_counters(found))
    except KeyboardInterrupt:
        return True
    finally:
        progress.clear()
    return False


def _counters(found: Search) -> str:
    return f"{found.hits:,} hits, {found.forwards:,} forwards in {found.calls:,} calls"


def _print_hit(hit: Hit, json: bool) -> None:
    if not json:
        write_data(shown_bytes(hit.data), before=f"{hit.rank:5d}  {hit.logprob:10.4f}  ")
        return
    print_json(
        {
            "rank": hit.rank,
            "logprob": hit.logprob,
            "text": hit.text,
            "given": hit.given,
            "token_ids": list(hit.token_ids),
            "tokenizations": hit.tokenizations,
        }
    )


def _conclude(found: Search, interrupted: bool, json: bool) -> None:
    interrupted = interrupted or found.status == "interrupted"
    status = "interrupted" if interrupted else found.status
    if json:
        print_json(
            {
                "status": status,
                "event": found.event,
                "truncated_by": found.truncated_by,
                "hits": found.hits,
                "dropped": found.dropped,
                **asdict(found.cost),
            }
        )
    else:
        by = "" if found.truncated_by is None else f" by {found.truncated_by}"
        remark(f"{status}{by}: {_counters(found)}")
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not found.hits:
        raise typer.Exit(NOTHING)
