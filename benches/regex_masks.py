"""Masks of regular expressions, side by side with other libraries.

Run as ``python -m benches.regex_masks``. Every vocabulary gets a process in which the engines
take turns, then every engine one of its own for memory and preparation. All run on one thread,
pinned to one core where the system can. Results go to ``records/`` as JSON and as a table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benches.engines import ENGINES, version
from benches.machine import ONE_THREAD, ROOT, describe
from benches.report import markdown
from benches.writing import write

VOCABULARIES = ["gpt2-50k", "llama3-128k", "o200k"]


def main() -> None:
    """Measure, then write the record."""
    arguments = parse()
    engines = [name for name in arguments.engines if version(name) is not None]
    for name in set(arguments.engines) - set(engines):
        say(f"left out, not installed: {name}")
    passed_on, vocabularies = inputs(arguments)
    record: dict[str, Any] = {"about": describe(), "engines": engines, "vocabularies": {}}
    record["about"]["quick"] = arguments.quick
    with tempfile.TemporaryDirectory() as folder:
        for name in vocabularies:
            options = [name, *passed_on, "--walks", str(Path(folder) / f"{name}.json")]
            options += ["--engines", *engines]
            timings = worker(options)
            memory = {one: worker([*options, "--memory-of", one]) for one in engines}
            record["vocabularies"][name] = {"timings": timings, "memory": memory}
    record["about"]["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    table = markdown(record)
    write(arguments.output, "regex_masks", record, table)
    sys.stdout.write(table)


def parse() -> argparse.Namespace:
    """Read the options."""
    beside = ROOT.parent / "shared"
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", nargs="+", choices=list(ENGINES), default=list(ENGINES))
    parser.add_argument("--vocabularies", nargs="+", default=VOCABULARIES)
    parser.add_argument(
        "--tokenizers",
        type=Path,
        default=beside / "tokenizers",
        help="folder of NAME.json.gz; without it the embedded model's tokenizer is used",
    )
    parser.add_argument(
        "--patterns",
        type=Path,
        default=beside / "spec" / "regexes.json",
        help="more patterns, as JSON: a list of {name, pattern, matching}",
    )
    parser.add_argument("--only", nargs="+", help="names of the patterns to measure")
    parser.add_argument("--quick", action="store_true", help="few repetitions; not for a record")
    parser.add_argument("--all", action="store_true", help="also what takes gigabytes or minutes")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    return parser.parse_args()


def inputs(arguments: argparse.Namespace) -> tuple[list[str], list[str]]:
    """Return the options for the workers and the vocabularies that exist."""
    options = [flag for flag in ("quick", "all") if getattr(arguments, flag)]
    options = [f"--{flag}" for flag in options]
    if arguments.only:
        options += ["--only", *arguments.only]
    if arguments.patterns.is_file():
        options += ["--patterns", str(arguments.patterns)]
    else:
        say("no file of further patterns: only our own are measured")
    if not arguments.tokenizers.is_dir():
        say("no folder of tokenizers: the embedded model's is measured instead")
        return options, ["embedded"]
    return [*options, "--tokenizers", str(arguments.tokenizers)], arguments.vocabularies


def worker(options: list[str]) -> Any:
    """Run one process, pinned to the last core, and return what it prints."""
    command = [sys.executable, "-m", "benches.worker", *options]
    if shutil.which("taskset"):
        command = ["taskset", "-c", str((os.cpu_count() or 1) - 1), *command]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **ONE_THREAD},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def say(line: str) -> None:
    """Print a line about the run, apart from its result."""
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    main()
