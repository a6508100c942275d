"""Writing of reports to files, in all formats."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from pathlib import Path

from formalm.atomic_write import write_atomically
from formalm.errors import ArgumentError, SuiteError
from formalm.reports.junit import to_junit
from formalm.reports.markdown import to_markdown
from formalm.reports.page import to_html
from formalm.reports.report_contents import Contents, contents_of
from formalm.reports.result_rows import Numbers, to_lm_eval, write_parquet
from formalm.suites import Run

__all__ = ["FORMATS", "write_report", "write_text"]

TEXTS: dict[str, tuple[str, Callable[[Contents], str]]] = {
    "html": ("report.html", to_html),
    "markdown": ("report.md", to_markdown),
    "junit": ("junit.xml", to_junit),
    "lm-eval": ("lm-eval.json", to_lm_eval),
}
FORMATS = (*TEXTS, "parquet")


def write_report(run: Run, form: str = "html", path: str | PathLike[str] | None = None) -> Path:
    """Writes a report of a run; needs no model.

    Parameters
    ----------
    run
        The run.
    form
        ``"html"``: one page. ``"markdown"``. ``"junit"``: for a CI server. ``"lm-eval"``: the JSON
        of lm-evaluation-harness. ``"parquet"``: every number as a row.
    path
        The file; None is a file in the directory of the run.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    ArgumentError
        For an unknown format, or a missing package.
    SuiteError
        If it cannot be written.
    """
    if form not in FORMATS:
        raise ArgumentError(
            f"the format of a report must be one of {', '.join(FORMATS)}, got {form!r:.60}"
        )
    contents = contents_of(run)
    if form == "parquet":
        target = run.directory / "numbers.parquet" if path is None else Path(path)
        write_parquet(Numbers(contents), target)
        return target
    name, write = TEXTS[form]
    target = run.directory / name if path is None else Path(path)
    write_text(target, write(contents))
    return target


def write_text(path: Path, text: str) -> None:
    """Writes a text atomically."""
    data = text.encode()
    try:
        write_atomically(path, lambda file: file.write(data))
    except OSError as error:
        raise SuiteError(f"cannot write {str(path)!r}: {error.strerror}") from None
