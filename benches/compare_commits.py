"""A benchmark of two checkouts, in turns: did masks get slower from one commit to the next?

Run as ``python -m benches.compare_commits BENCH OLD NEW``, where BENCH is one of ``maskbench``,
``regex_masks`` and ``grammar_masks``, and OLD and NEW are folders with the extension built in each
by the same profile. Further options go to the benchmark. Each run is a process of its own, with the
package and the benchmark of its checkout; old and new take turns, so that other work of the machine
disturbs both alike: run by run, or in slices of seconds (``--slice``). Writes
``records/compare_commits-BENCH-DATE.md`` and the ``.json`` next to it; ``--suffix`` adds a word to
their name.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benches.machine import ROOT, commit, describe
from benches.writing import origin, write

#: Highest accepted ratios of the medians of the runs, new to old.
LIMITS = {"p50": 1.05, "p99": 1.15}

#: Measured in the same processes.
PEERS = ("llguidance", "xgrammar")

#: Options of a process whose children are stopped with it.
OWN_GROUP: dict[str, Any] = (
    {"process_group": 0} if sys.version_info >= (3, 11) else {"start_new_session": True}
)

#: Microseconds of each figure, by what is timed and by quantile, for one engine.
Figures = dict[tuple[str, str], float]


def main() -> None:
    """Measure, then write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench", choices=list(BENCHES))
    parser.add_argument("old", type=Path, help="folder of the earlier commit")
    parser.add_argument("new", type=Path, help="folder of the later commit")
    parser.add_argument("--runs", type=int, default=5, help="number of runs of each")
    parser.add_argument(
        "--slice",
        type=float,
        help="seconds after which old and new take turns within a run, for benchmarks that are"
        " timed by the CPU clock; without it they take turns run by run",
    )
    parser.add_argument("--suffix", help="word in the record's name, to tell it from others")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    arguments, options = parser.parse_known_args()
    folders = {"old": arguments.old.resolve(), "new": arguments.new.resolve()}
    about = {**describe(), "bench": arguments.bench, "options": options}
    about["commits"] = {which: commit(folder) for which, folder in folders.items()}
    runs: dict[str, list[dict[str, Any]]] = {which: [] for which in folders}
    about["slice"] = arguments.slice
    for at in range(arguments.runs):
        # The first of the two alternates as well.
        order = ("old", "new") if at % 2 == 0 else ("new", "old")
        if arguments.slice:
            processes = [Run(arguments.bench, folders[which], options) for which in order]
            take_turns([one.process for one in processes], arguments.slice)
            for which, one in zip(order, processes, strict=True):
                runs[which].append(one.record())
        else:
            for which in order:
                runs[which].append(Run(arguments.bench, folders[which], options).record())
    about["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    figures = {which: [summary(arguments.bench, one) for one in runs[which]] for which in runs}
    page = markdown(about, figures)
    write(
        arguments.output,
        "-".join(filter(None, ["compare_commits", arguments.bench, arguments.suffix])),
        {"about": about, "figures": listed(figures)},
        page,
    )
    sys.stdout.write(page)


class Run:
    """A benchmark that runs in a checkout."""

    def __init__(self, bench: str, folder: Path, options: list[str]) -> None:
        paths = [str(folder / "python"), str(folder), os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        self.output = TemporaryDirectory()
        fixed = [*BENCHES[bench][0], "--output", self.output.name]
        command = [sys.executable, "-m", f"benches.{bench}", *options, *fixed]
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            **OWN_GROUP,
        )

    def record(self) -> dict[str, Any]:
        """Wait for the end, and return the record."""
        status = self.process.wait()
        if status:
            raise subprocess.CalledProcessError(status, self.process.args)
        (written,) = Path(self.output.name).glob("*.json")
        record: dict[str, Any] = json.loads(written.read_text())
        self.output.cleanup()
        return record


def take_turns(processes: list[subprocess.Popen[bytes]], seconds: float) -> None:
    """Let one process run at a time, until all have ended.

    A shared machine changes its pace within seconds. Turns that are shorter let each change meet
    all processes. CPU time does not count while a process is stopped.
    """
    for process in processes:
        os.killpg(process.pid, signal.SIGSTOP)
    running = list(processes)
    while running:
        for process in list(running):
            os.killpg(process.pid, signal.SIGCONT)
            try:
                process.wait(seconds)
                running.remove(process)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGSTOP)


def summary(bench: str, record: dict[str, Any]) -> dict[str, Figures]:
    """Return the figures of our engine and of its peers in a record."""
    return {who: BENCHES[bench][1](record, who) for who in ("formalm", *PEERS)}


def of_maskbench(record: dict[str, Any], who: str) -> Figures:
    """Return the figures of a record of ``maskbench``."""
    by_peer = record["runs"][0]["figures"]
    found = by_peer.get("xgrammar" if who == "xgrammar" else "llguidance", {}).get(who, {})
    return {
        (what, figure): values[figure]
        for what, values in found.items()
        for figure in ("p50", "p99", "mean")
        if figure in values
    }


def of_regex_masks(record: dict[str, Any], who: str) -> Figures:
    """Return the figures of a record of ``regex_masks``, all patterns together."""
    found: Figures = {}
    for name, vocabulary in record["vocabularies"].items():
        patterns = [one for one in vocabulary["timings"].values() if who in one["first_fill"]]
        kinds = {
            "first mask": [x for one in patterns for x in one["first_fill"][who]["first_us"]],
            "known mask": [x for one in patterns for x in one["first_fill"][who]["again_us"]],
            "repeated mask": [x for one in patterns for x in one["steady_us"][who]],
            "compile": [one["compile"][who]["median_us"] for one in patterns],
        }
        found |= {
            (f"{name}, {kind}", f"p{quantile}"): float(np.percentile(values, quantile))
            for kind, values in kinds.items()
            for quantile in (50, 99)
            if values and (kind != "compile" or quantile == 50)
        }
    return found


def of_grammar_masks(record: dict[str, Any], who: str) -> Figures:
    """Return the figures of a record of ``grammar_masks``."""
    found: Figures = {}
    names = {"fill": "mask", "new": "first mask", "advance": "advance"}
    for vocabulary, kept in record["vocabularies"].items():
        for grammar, one in kept["grammars"].items():
            times = one["engines"].get(who)
            if times is None:
                continue
            found[f"{vocabulary}, {grammar}, compile", "p50"] = times["compile_us"]
            for key, name in names.items():
                if times[key]["count"]:
                    for figure, short in (("median", "p50"), ("p99", "p99"), ("mean", "mean")):
                        found[f"{vocabulary}, {grammar}, {name}", short] = times[key][figure]
    return found


#: Of each benchmark the options that hold here and how its figures are read.
BENCHES: dict[str, tuple[list[str], Callable[[dict[str, Any], str], Figures]]] = {
    "maskbench": (["--runs", "1"], of_maskbench),
    "regex_masks": (["--engines", "formalm", *PEERS], of_regex_masks),
    "grammar_masks": ([], of_grammar_masks),
}


def middle(runs: list[dict[str, Figures]], who: str, key: tuple[str, str]) -> float:
    """Return the median over runs of a figure; NaN if an engine does not have it."""
    return float(median(one[who].get(key, float("nan")) for one in runs))


def markdown(about: dict[str, Any], figures: dict[str, list[dict[str, Figures]]]) -> str:
    """Return the page."""
    commits = about["commits"]
    lines = [
        f"# `{about['bench']}` of two commits in turns",
        "",
        *origin({**about, "commit": commits["new"]}, about["load_average_after"]),
        "",
        f"Old is {commits['old']}, new is {commits['new']}; {len(figures['new'])} runs of each,",
        f"each in its own process; medians of the runs in µs. {' and '.join(PEERS)}, measured in",
        "the same processes, show how steady the machine was.",
        f"Options: `{' '.join(about['options'])}`. They take turns"
        + (f" every {about['slice']:g} s." if about["slice"] else " run by run."),
        "",
        "| what | figure | old | new | ratio | limit | |"
        + "".join(f" {peer} with old, new |" for peer in PEERS),
        "|" + " --- |" * (7 + len(PEERS)),
    ]
    for key in figures["new"][0]["formalm"]:
        what, figure = key
        old, new = (middle(figures[which], "formalm", key) for which in ("old", "new"))
        peers = [[middle(figures[which], one, key) for which in ("old", "new")] for one in PEERS]
        limit = LIMITS.get(figure)
        verdict = "" if limit is None else "met" if new <= limit * old else "**missed**"
        lines.append(
            f"| {what} | {figure} | {old:.2f} | {new:.2f} | {new / old if old else 1:.3f} |"
            f" {limit or ''} | {verdict} |"
            + "".join(f" {old:.1f}, {new:.1f} |" for old, new in peers)
        )
    return "\n".join(lines) + "\n"


def listed(figures: dict[str, list[dict[str, Figures]]]) -> dict[str, Any]:
    """Return figures with keys that JSON has."""
    return {
        which: [
            {who: {", ".join(key): value for key, value in one[who].items()} for who in one}
            for one in runs
        ]
        for which, runs in figures.items()
    }


if __name__ == "__main__":
    main()
