"""``formalm suite report`` and ``compare``: what a run says, for people and for servers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from formalm.cli.exit_status import print_json, reported
from formalm.cli.shared_options import Json, one_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compare", "report"]

ERROR = 2
Directory = Annotated[Path, typer.Argument(help="The directory of the run.", show_default=False)]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="The file; in the directory of the run if none.")
]


def report(
    directory: Directory,
    form: Annotated[
        str,
        one_of(
            *("html", "markdown", "junit", "lm-eval", "parquet"),
            names=("--format",),
            help="The form of the report.",
        ),
    ] = "html",
    out: Out = None,
    json: Json = False,
) -> None:
    """Write a report of a run; no model is asked."""
    with reported(json, error_code=ERROR):
        from formalm.reports import write_report
        from formalm.suites import Run

        with Run(directory) as found:
            path = write_report(found, form, out)
        if json:
            print_json({"report": str(path)})
        else:
            typer.echo(path)


def compare(
    first: Annotated[Path, typer.Argument(help="A run.", show_default=False)],
    second: Annotated[Path, typer.Argument(help="A run of the same suite.", show_default=False)],
    form: Annotated[
        str, one_of("html", "markdown", names=("--format",), help="The form.")
    ] = "markdown",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The file; printed if none.")
    ] = None,
    json: Json = False,
) -> None:
    """Put two runs of a suite side by side, with paired tests; no model is asked."""
    with reported(json, error_code=ERROR):
        from formalm.errors import ArgumentError
        from formalm.reports import RunComparison, compare_runs
        from formalm.reports.write import write_text
        from formalm.suites import Run

        forms: dict[str, Callable[[RunComparison], str]] = {
            "html": RunComparison.to_html,
            "markdown": RunComparison.to_markdown,
        }
        if form not in forms:
            raise ArgumentError(f"--format is {' or '.join(forms)}, not {form!r}")
        with Run(first) as one, Run(second) as other:
            found = compare_runs(one, other)
        if json:
            for name, rows in found.rows.items():
                tested = found.tests.get(name)
                p = None if tested is None else tested.p_value
                apart = [row.apart for row in rows]
                counts = {said: apart.count(said) for said in ("higher", "lower", "open", "equal")}
                within = max(row.tolerance for row in rows)
                row = {"metric": name, "rows": len(rows), "p_value": p, **counts}
                print_json({**row, "tolerance": within})
        elif out is None:
            typer.echo(forms[form](found), nl=False)
        if out is not None:
            write_text(out, forms[form](found))
