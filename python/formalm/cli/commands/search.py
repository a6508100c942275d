"""``formalm search``: the most probable members of a language, in order."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from formalm.automata.text_of_bytes import shown_bytes
from formalm.cli.exit_status import INTERRUPTED, NOTHING, print_json, reported
from formalm.cli.model_options import ModelOptions
from formalm.cli.query_options import LimitOptions, QueryOptions, TokenEventOption
from formalm.cli.record_options import RecordOptions, writable
from formalm.cli.shared_options import Json, Prompt
from formalm.cli.terminal_output import ProgressLine, counted, remark, write_data
from formalm.query.query import Unique

if TYPE_CHECKING:
    from formalm.searching import Hit, Search

__all__ = ["search"]

HITS = 10
"""Default number of hits. Chosen, not measured."""


def search(
    query: QueryOptions,
    model: ModelOptions,
    work: LimitOptions,
    out: RecordOptions,
    prompt: Prompt = None,
    hits: Annotated[
        int | None,
        typer.Option(
            "--hits", "-n", help=f"Maximum hits. Default: {HITS}, or the query file's.", metavar="N"
        ),
    ] = None,
    top_k: Annotated[
        int | None, typer.Option(help="Follow only the N most probable tokens at each step.")
    ] = None,
    unique: Annotated[
        Unique | None,
        typer.Option(
            help="List each string once, with its tokenizations added up (default), or each token"
            " sequence."
        ),
    ] = None,
    event: TokenEventOption = None,
    beams: Annotated[
        int | None,
        typer.Option(
            help="Beam search: keep N token sequences of each length. Requires --unique tokens."
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(help="At the end, write a checkpoint to this file.", metavar="FILE"),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            help="Continue from a checkpoint. Limits include the work done before it.",
            metavar="FILE",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(help="Maximum share of a hit's probability that may stay undecided."),
    ] = 1e-6,
    json: Json = False,
) -> None:
    """List the members of a language in order of probability.

    Each hit has its rank, its log-probability (natural logarithm) and its text.
    """
    with reported(json):
        from formalm import searching

        resolved = query.resolved(work)
        limits = resolved.limits
        if hits is not None or query.query is None:
            limits = replace(limits, hits=HITS if hits is None else hits)
        if beams is not None:
            limits = replace(limits, beams=beams)
        out.check()
        if save is not None:
            writable(save)
        options: dict[str, Any] = {"unique": unique, "event": event}
        if top_k is not None:
            options["decoding"] = replace(resolved.decoding, top_k=top_k)
        found = searching.search(
            model.load(),
            resolved,
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
    """Print hits as they are found, above a progress line; return whether Ctrl-C ended it."""
    with ProgressLine() as progress:
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
    return False


def _counters(found: Search) -> str:
    hits, forwards = counted(found.hits, "hit"), counted(found.forwards, "forward")
    return f"{hits}, {forwards} in {counted(found.calls, 'call')}"


def _print_hit(hit: Hit, json: bool) -> None:
    if not json:
        if hit.rank == 1:
            remark(f"{'rank':>5}  {'logprob':>10}  text")
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
