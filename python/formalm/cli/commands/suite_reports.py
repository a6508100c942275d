"""``formalm suite report`` and ``formalm suite compare``: pages of one run and of two."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from formalm.cli.exit_status import print_json, reported
from formalm.cli.shared_options import Json
from formalm.cli.terminal_output import say

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["compare", "report"]

ERROR = 2
ReportFormat = Literal["html", "markdown", "junit", "lm-eval", "parquet"]
ComparisonFormat = Literal["html", "markdown"]
Directory = Annotated[Path, typer.Argument(help="The directory of the run.", show_default=False)]
Out = Annotated[
    Path | None,
    typer.Option("--out", "-o", help="Output file. Default: a file in the directory of the run."),
]


def report(
    directory: Directory,
    form: Annotated[
        ReportFormat,
        typer.Option(
            "--format",
            help="Output format: html, markdown, junit (XML for CI servers), lm-eval (JSON of the"
            " LM Evaluation Harness) or parquet.",
        ),
    ] = "html",
    out: Out = None,
    json: Json = False,
) -> None:
    """Write a report of a run, without a model."""
    with reported(json, error_code=ERROR):
        from formalm.reports import write_report
        from formalm.suites import Run

        with Run(directory) as found:
            path = write_report(found, form, out)
        if json:
            print_json({"report": str(path)})
        else:
            say(path)


def compare(
    first: Annotated[Path, typer.Argument(help="The directory of a run.", show_default=False)],
    second: Annotated[
        Path, typer.Argument(help="The directory of another run of the suite.", show_default=False)
    ],
    form: Annotated[ComparisonFormat, typer.Option("--format", help="Output format.")] = "markdown",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Output file. Default: standard output.")
    ] = None,
    json: Json = False,
) -> None:
    """Compare two runs of a suite with paired tests, without a model."""
    with reported(json, error_code=ERROR):
        from formalm.reports import RunComparison, compare_runs
        from formalm.reports.write_reports import write_text
        from formalm.suites import Run

        forms: dict[str, Callable[[RunComparison], str]] = {
            "html": RunComparison.to_html,
            "markdown": RunComparison.to_markdown,
        }
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
            say(forms[form](found), end="")
        if out is not None:
            write_text(out, forms[form](found))
