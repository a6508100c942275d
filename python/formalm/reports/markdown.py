"""Markdown reports, for CI job summaries and pull requests."""

from __future__ import annotations

from formalm.reports.number_format import (
    estimate,
    interval,
    measure,
    p_value,
    place,
    visible,
    worth,
)
from formalm.reports.report_contents import Contents

__all__ = ["to_markdown"]

MOST_ROWS = 40


def to_markdown(contents: Contents) -> str:
    """Returns the report: verdicts first, then comparisons and the numbers of each query."""
    suite = contents.suite
    lines = [f"# {suite.name}: {contents.verdict}", "", _plain(suite.title), ""]
    if suite.warning:
        lines += [f"> {_plain(suite.warning)}", ""]
    lines += [f"{contents.extent}, {contents.seconds:.0f} s", ""]
    rows = [
        [
            outcome.verdict,
            str(outcome.assertion.metric or outcome.assertion.comparison),
            outcome.why,
        ]
        for outcome in contents.evaluation.outcomes
    ]
    lines += _table(["verdict", "of", "decided by"], rows)
    for name, found in contents.differences.items():
        said = {True: "differs", False: "does not differ", None: "open"}
        rows = [
            [
                one.value,
                estimate(one.mean),
                interval(one.mean),
                p_value(one.p_value),
                said[one.flagged],
            ]
            for one in found
        ]
        lines += [f"## {name}", "", *_table(["value", "difference", "interval", "p", ""], rows)]
    for part in contents.parts:
        lines += [f"## {part.question.name}", "", _plain(part.description), ""]
        for name, numbers in part.measurements.items():
            several = len({one.where.get("template") for one in numbers}) > 1
            rows = [
                [
                    place(one.where, template=several),
                    estimate(one.quantity),
                    interval(one.quantity),
                    worth(one.quantity),
                ]
                for one in numbers
            ]
            measured = _cell(measure(contents.suite.metrics[name], contents.suite))
            lines += _table([name, measured, "interval", "worth"], rows[:MOST_ROWS])
            if len(rows) > MOST_ROWS:
                lines[-1:] = [f"and {len(rows) - MOST_ROWS:,} more", ""]
    lines += ["## How to reproduce", "", "```sh", *contents.commands, "```", ""]
    return "\n".join(lines)


def _table(head: list[str], rows: list[list[str]]) -> list[str]:
    if not rows:
        return []
    written = [f"| {' | '.join(map(_cell, row))} |" for row in rows]
    return [f"| {' | '.join(head)} |", "|" + " --- |" * len(head), *written, ""]


def _cell(text: str) -> str:
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """Returns a text on one line and without HTML."""
    one_line = " ".join(visible(text).split())
    return one_line.replace("\\", "\\\\").replace("&", "&amp;").replace("<", "&lt;")
