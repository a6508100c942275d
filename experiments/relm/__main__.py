"""Make the figures and tables of the ReLM paper: ``python -m experiments.relm figure7 --quick``."""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections.abc import Callable
from pathlib import Path

from experiments.relm.automata import figure_2, figure_3, figure_12
from experiments.relm.bias import figure_7
from experiments.relm.claims import CLAIMS, Row
from experiments.relm.dates import figure_1, figure_11
from experiments.relm.edits import figure_9
from experiments.relm.insults import figure_8
from experiments.relm.outcomes import Outcome, Setting, opened
from experiments.relm.syntax import table_2
from experiments.relm.urls import figure_5
from formalm.reports import write_report
from formalm.suites import Suite, run_suite
from formalm.suites.fact_rows import read_lines

FIGURES: dict[str, Callable[[Setting], Outcome]] = {
    "figure_1": figure_1,
    "figure_2": figure_2,
    "figure_3": figure_3,
    "figure_5": figure_5,
    "figure_7": figure_7,
    "figure_8": figure_8,
    "figure_9": figure_9,
    "figure_11": figure_11,
    "figure_12": figure_12,
    "table_2": table_2,
}
SAME = {
    "figure_6": "figure_5",
    "figure_10": "figure_5",
    "figure_13": "figure_7",
    "figure_14": "figure_7",
    "phone_numbers": "figure_4",
}
"""Figures that show the same run as another."""
NAMES = (*FIGURES, *CLAIMS)


def main() -> None:
    """Make what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m experiments.relm", description=__doc__)
    parser.add_argument(
        "figures", nargs="*", help=f"some of {', '.join([*NAMES, *SAME])}; all without any"
    )
    parser.add_argument("--model", help="canary, canary-null, canary-urls or a model's folder")
    parser.add_argument("--other", default="canary-null", help="figure 7: the second model")
    parser.add_argument("--quick", action="store_true", help="seconds, with wider intervals")
    parser.add_argument("--seed", type=int, default=0, help="of everything drawn")
    parser.add_argument("--tokens", type=int, help="figure 5: what each method may read")
    parser.add_argument("--urls", type=Path, help="figure 5: a file of known URLs")
    parser.add_argument("--corpus", type=Path, help="figure 8: a text file, or JSONL with text")
    parser.add_argument("--words", type=Path, help="figure 8: a file of insults")
    parser.add_argument("--stories", type=Path, help="table 1: LAMBADA in OpenAI's JSONL format")
    parser.add_argument("--stop-words", metavar="FILE", help="table 1: a list of stop words")
    parser.add_argument("--out", type=Path, default=Path("build/relm"), help="where to write")
    given = parser.parse_args()
    chosen = [known_name(one) for one in given.figures] or list(NAMES)
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        parser.error(f"there is no figure {unknown[0]!r}: {', '.join([*NAMES, *SAME])}")
    files = {key: getattr(given, key) for key in ("urls", "corpus", "words") if getattr(given, key)}
    model = None if given.model is None else opened(given.model)
    label = given.model or "canary"
    named = Path(label).name
    setting = Setting(model, named, given.other, given.quick, given.seed, given.tokens, files)
    for name in dict.fromkeys(chosen):
        folder = given.out / named / name
        if name in FIGURES:
            outcome = FIGURES[name](setting)
            show(name, outcome.title, outcome.rows)
            print(f"differences of method: {outcome.differences}")
            print(f"report: {outcome.write(folder)}\n")
            continue
        claim = CLAIMS[name]
        suite = own_data(claim.suite(), given)
        few = 8 if given.quick else None
        with run_suite(suite, opened(label), folder, items_per_slot=few, progress=None) as run:
            show(name, claim.title, claim.rows(run))
            print(f"differences of method: {claim.differences}")
            print(f"report: {write_report(run)}\n")


def known_name(given: str) -> str:
    """Returns the name of a figure: ``figure7``, ``figure_7`` and ``Figure 7`` are one."""
    name = re.sub(r"(figure|table)[ _-]?(\d+)", r"\1_\2", given.lower())
    return SAME.get(name, name)


def own_data(suite: Suite, given: argparse.Namespace) -> Suite:
    """Returns the suite with the user's files."""
    slots = {"stop_words": given.stop_words} if given.stop_words else {}
    slots = {name: file for name, file in slots.items() if name in suite.slots}
    if given.stories and "stories" in suite.rows:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stories.jsonl"
            found = read_lines(given.stories, given.stories.read_text(encoding="utf-8"), "text")
            path.write_text("".join(json.dumps(row) + "\n" for row in found), encoding="utf-8")
            return suite.replaced(slots=slots, rows={"stories": path})
    return suite.replaced(slots=slots) if slots else suite


def show(name: str, title: str, rows: list[Row]) -> None:
    """Print a table."""
    print(f"{name}: {title}")
    head = ("", "the paper, GPT-2 XL", "here")
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(3)]
    for row in [head, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
