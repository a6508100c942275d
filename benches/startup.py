"""How long a user waits before anything happens: the import, and the command's help.

Run as ``python -m benches.startup``; writes ``records/startup-DATE.md``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from statistics import median
from time import perf_counter

from benches.machine import ROOT, describe

RUNS = 15
TARGETS = {"import formalm": 0.150, "formalm --help": 0.400}


def main() -> None:
    """Measure and write the record."""
    script = Path(sys.executable).with_name("formalm")
    empty = wall_seconds([sys.executable, "-c", "pass"])
    rows = {
        "python -c pass": empty,
        "import numpy": wall_seconds([sys.executable, "-c", "import numpy"]) - empty,
        "import formalm": wall_seconds([sys.executable, "-c", "import formalm"]) - empty,
        "formalm --help": wall_seconds([str(script), "--help"]),
    }
    about = describe()
    lines = [
        "# Start-up times",
        "",
        f"{about['date']}; {about['cpu']}; Python {about['python']};",
        f"load {about['load_average']}; formalm at {about['commit']}.",
        f"Median of {RUNS} fresh processes, files cached. Imports without the interpreter's start.",
        "",
        "| what | seconds | target |",
        "| --- | --- | --- |",
    ]
    for name, seconds in rows.items():
        limit = TARGETS.get(name)
        verdict = "" if limit is None else f"{limit} {'met' if seconds <= limit else '**missed**'}"
        lines.append(f"| `{name}` | {seconds:.3f} | {verdict} |")
    text = "\n".join(lines) + "\n"
    day = datetime.now(timezone.utc).strftime("%Y-%m-%d")
    (ROOT / "records" / f"startup-{day}.md").write_text(text)
    sys.stdout.write(text)


def wall_seconds(command: Sequence[str]) -> float:
    """Return the median wall time of a command; the first run only warms the file cache."""
    taken = []
    for _ in range(RUNS + 1):
        start = perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        taken.append(perf_counter() - start)
    return median(taken[1:])


if __name__ == "__main__":
    main()
