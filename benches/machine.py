"""Where and when a measurement was made."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benches.engines import ENGINES, version

ROOT = Path(__file__).parent.parent
#: Packages beside the engines of all benchmarks whose versions matter.
OTHERS = ("glrmask", "numpy", "torch", "tokenizers")

#: One thread each; what a library would start by itself is switched off.
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "RAYON_NUM_THREADS": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


def describe() -> dict[str, Any]:
    """Return date, machine, load, versions and commit."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "load_average": [round(x, 2) for x in os.getloadavg()] if hasattr(os, "getloadavg") else [],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "versions": {name: version(name) for name in [*ENGINES, *OTHERS]},
        "commit": commit(),
    }


def cpu_model() -> str:
    """Return the processor's name, as far as the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    named = {
        key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)
    }
    # Virtual machines often hide the name; family and model still tell processors apart.
    family = f"family {named.get('cpu family', '?')}, model {named.get('model', '?')}"
    return f"{named.get('model name', 'unknown')} ({family})"


def commit(folder: Path = ROOT) -> str:
    """Return the commit of a checkout, marked where files differ from it."""
    try:
        head = _git(folder, "rev-parse", "--short=12", "HEAD")
        changed = _git(folder, "status", "--porcelain", "--", "crates", "python", "benches")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head} with changes" if changed else head


def _git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()
