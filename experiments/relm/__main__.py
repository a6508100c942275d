"""Make claims of the ReLM paper again: ``python -m experiments.relm figure_7 --model FOLDER``."""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path

from experiments.relm.claims import CLAIMS, Row
from experiments.relm.edits import figure_9
from formalm.cli.shared_options import chosen_model
from formalm.reports import write_report
from formalm.suites import Suite, run_suite
from formalm.suites.fact_rows import read_lines

MODEL_FREE = {"figure_9": ("Steps drawn evenly put edits to the front.", figure_9)}


def main() -> None:
    """Run what was asked for."""
    names = [*CLAIMS, *MODEL_FREE]
    parser = argparse.ArgumentParser(prog="python -m experiments.relm", description=__doc__)
    parser.add_argument("claims", nargs="*", help=f"some of {', '.join(names)}; all without any")
    parser.add_argument("--model", default="canary", help="canary, or the folder of a model")
    parser.add_argument("--out", type=Path, default=Path("build/relm"), help="where runs are kept")
    parser.add_argument("--slot", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--rows", action="append", default=[], metavar="NAME=FILE")
    parser.add_argument("--stop-words", metavar="FILE")
    parser.add_argument("--stories", type=Path, help="LAMBADA in OpenAI's JSONL format")
    given = parser.parse_args()
    unknown = [name for name in given.claims if name not in names]
    if unknown:
        parser.error(f"there is no claim {unknown[0]!r}: {', '.join(names)}")
    for name in given.claims or names:
        if name in MODEL_FREE:
            title, measured = MODEL_FREE[name]
            show(name, title, measured())
            continue
        claim = CLAIMS[name]
        suite = own_data(claim.suite(), given)
        folder = given.out / Path(given.model).name / name
        with run_suite(suite, chosen_model(given.model), folder, progress=None) as run:
            show(name, claim.title, claim.rows(run.evaluate()))
            print(f"differences of method: {claim.differences}")
            print(f"report: {write_report(run)}\n")


def own_data(suite: Suite, given: argparse.Namespace) -> Suite:
    """The suite with the user's files; those that it has no place for are left to other claims."""
    slots = dict(one.split("=", 1) for one in given.slot)
    rows = dict(one.split("=", 1) for one in given.rows)
    if given.stop_words:
        slots["stop_words"] = given.stop_words
    slots = {name: file for name, file in slots.items() if name in suite.slots}
    rows = {name: file for name, file in rows.items() if name in suite.rows}
    if given.stories and "stories" in suite.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stories.jsonl"
            found = read_lines(given.stories, given.stories.read_text(encoding="utf-8"), "text")
            path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
            return suite.replaced(slots=slots, rows={**rows, "stories": path})
    return suite.replaced(slots=slots, rows=rows) if slots or rows else suite


def show(name: str, title: str, rows: list[Row]) -> None:
    """Print a table."""
    print(f"{name}: {title}")
    head = ("", "the paper, GPT-2 XL", "here")
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(3)]
    for row in [head, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
