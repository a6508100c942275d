"""MaskBench of two checkouts in turn: whether masks became slower from one commit to another.

Run as ``python -m benches.maskbench_beside OLD NEW``, two folders with the extension built in each,
by the same profile; options behind them are those of ``benches.maskbench``. Each run is a process
of its own, and old and new take turns, so that other work of the machine meets both. Both are
measured by the code of this checkout. Writes ``records/maskbench_beside-DATE.md`` and the
``.json`` beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from benches.machine import ROOT, commit, describe
from benches.maskbench_page import WHAT
from benches.writing import origin, write

#: Highest ratios of the medians of the runs, new to old.
LIMITS = {"p50": 1.05, "p99": 1.15}


def main() -> None:
    """Measure, then write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="folder of the earlier commit")
    parser.add_argument("new", type=Path, help="folder of the later one")
    parser.add_argument("--runs", type=int, default=5, help="of each")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    arguments, options = parser.parse_known_args()
    folders = {"old": arguments.old.resolve(), "new": arguments.new.resolve()}
    about = {**describe(), "options": options}
    about["commits"] = {which: commit(folder) for which, folder in folders.items()}
    runs: dict[str, list[dict[str, Any]]] = {which: [] for which in folders}
    for at in range(arguments.runs):
        # The one that begins alternates, too.
        for which in ("old", "new") if at % 2 == 0 else ("new", "old"):
            runs[which].append(measured(folders[which], options))
    about["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    record = {"about": about, "runs": runs}
    page = markdown(record)
    write(arguments.output, "maskbench_beside", record, page)
    sys.stdout.write(page)


def measured(folder: Path, options: list[str]) -> dict[str, Any]:
    """Return the record of one run with the package of a checkout."""
    paths = [str(folder / "python"), str(ROOT), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    with TemporaryDirectory() as output:
        fixed = ["--runs", "1", "--xgrammar-every", "0", "--output", output]
        command = [sys.executable, "-m", "benches.maskbench", *options, *fixed]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        (written,) = Path(output).glob("*.json")
        record: dict[str, Any] = json.loads(written.read_text())
    return record


def markdown(record: dict[str, Any]) -> str:
    """Return the page."""
    about, runs = record["about"], record["runs"]
    one = runs["new"][0]["about"]
    lines = [
        "# MaskBench of two commits in turn",
        "",
        *origin({**about, "commit": about["commits"]["new"]}, about["load_average_after"]),
        "",
        f"Old is {about['commits']['old']}, new {about['commits']['new']}; {one['vocabulary']};",
        f"one schema of {one['every']} of the development part, {len(runs['new'])} runs of each in",
        f"turn, each in a process of its own; medians of the runs in µs ({one['clock']} clock),",
        "on schemas that llguidance compiles. llguidance beside both tells of the machine.",
        "",
        "| what | figure | old | new | ratio | limit | | llguidance beside old, new |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for what, name in WHAT.items():
        for figure in ("p50", "p99", "mean"):
            old, new = (middle(runs[which], "formalm", what, figure) for which in ("old", "new"))
            peer = [middle(runs[which], "llguidance", what, figure) for which in ("old", "new")]
            limit = LIMITS.get(figure)
            verdict = "" if limit is None else "met" if new / old <= limit else "**missed**"
            lines.append(
                f"| {name} | {figure} | {old:.2f} | {new:.2f} | {new / old:.3f} |"
                f" {limit or ''} | {verdict} | {peer[0]:.1f}, {peer[1]:.1f} |"
            )
    verdicts = {which: runs[which][0]["runs"][0]["verdicts"]["formalm"] for which in ("old", "new")}
    lines += ["", f"Verdicts: old {verdicts['old']}, new {verdicts['new']}."]
    return "\n".join(lines) + "\n"


def middle(runs: list[dict[str, Any]], who: str, what: str, figure: str) -> float:
    """Return the median over runs of a figure."""
    values = [one["runs"][0]["figures"]["llguidance"][who][what][figure] for one in runs]
    return float(median(values))


if __name__ == "__main__":
    main()
