"""An extension that counts what it executes and offers the machines of tests to Python.

``make instrumented`` builds it: unoptimized, with coverage counters, in a target folder of its own.
No wheel contains it. Programs that use it run in fresh interpreters.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.support.processes import Ended, run

ROOT = Path(__file__).parents[2]


def instrumented_extension() -> Path:
    """Returns the library, an ELF file; skips the test if it was not built."""
    found = sorted((ROOT / "target" / "instrumented").glob("*/debug/lib_core.so"))
    if not found:
        pytest.skip("`make instrumented` was not called")
    return found[0]


def run_with_extension(
    library: Path, folder: Path, program: str, *, timeout: float = 300.0
) -> tuple[Ended, Path]:
    """Runs a program with this extension in place of the installed one.

    Returns
    -------
    tuple
        How the program ended, and the profile that it wrote: a file in ``folder``.
    """
    package = folder / "formalm"
    if not package.exists():
        package.mkdir(parents=True)
        for entry in (ROOT / "python" / "formalm").iterdir():
            if not (entry.name.startswith("_core.") and entry.suffix != ".pyi"):
                (package / entry.name).symlink_to(entry)
        (package / "_core.abi3.so").symlink_to(library)
    profile = folder / "executed.profraw"
    profile.unlink(missing_ok=True)
    # One thread: counts that depend on the schedule cannot be compared between two runs.
    env = {
        "PYTHONPATH": str(folder),
        "LLVM_PROFILE_FILE": str(profile),
        "FORMALM_THREADS": "1",
    }
    # The counters are written when the interpreter ends by itself.
    command = [sys.executable, "-c", program]
    return run(command, timeout=timeout, env=env, cwd=folder).check(), profile
