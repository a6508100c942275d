"""Programs run in processes of their own, under limits of time and memory.

What must not abort, hang or outgrow a limit cannot be tested in the process of the tests: a
failure would take the test run with it. Each helper starts a fresh interpreter, bounds it, and
reports how it ended. Platforms that lack a means (``fork``, resource limits, ``/dev/full``) skip
with a reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform has no fork")
needs_limits = pytest.mark.skipif(
    sys.platform != "linux", reason="resident memory is limited and measured on Linux only"
)
needs_dev_full = pytest.mark.skipif(
    not Path("/dev/full").exists(), reason="the platform has no /dev/full"
)

# Runs the program given as the first argument and reports CPU seconds and peak resident memory as
# the last line of stderr. The limit on the address space is far above the limit on resident
# memory, because allocators reserve addresses they never touch; it stops a runaway.
_RUNNER = """
import resource, sys, os
source, limit = sys.argv[1], int(sys.argv[2])
if limit:
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
sys.argv = ["-c", *sys.argv[3:]]
code = 0
try:
    exec(compile(source, "<program>", "exec"), {"__name__": "__main__"})
except SystemExit as stop:
    code = stop.code if isinstance(stop.code, int) else 0 if stop.code is None else 1
except BaseException:
    import traceback
    traceback.print_exc()
    code = 1
usage = resource.getrusage(resource.RUSAGE_SELF)
# Linux counts the memory of the process that started this one into ru_maxrss, but not into VmHWM.
peak = usage.ru_maxrss
if sys.platform == "linux":
    with open("/proc/self/status") as status:
        peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
sys.stdout.flush()
seconds = usage.ru_utime + usage.ru_stime
print(f"\\n@usage {seconds:.3f} {peak}", file=sys.stderr, flush=True)
os._exit(code)
"""


@dataclass(frozen=True)
class Ended:
    """How a process ended: exit code (negative for a signal), output, and what it used."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    """Wall-clock seconds."""
    cpu_seconds: float
    peak_bytes: int
    """Peak resident memory of the process, interpreter included."""
    timed_out: bool = False

    def check(self) -> Ended:
        """Fail the test, with the process's output, unless it ended with exit code 0."""
        assert not self.timed_out, f"no end after {self.seconds:.1f} s\n{self.stderr[-2000:]}"
        assert self.code == 0, (
            f"exit code {self.code}\n{self.stdout[-1000:]}\n{self.stderr[-4000:]}"
        )
        return self


def run_python(
    program: str,
    *args: str,
    timeout: float = 30.0,
    memory_bytes: int | None = None,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Ended:
    """Run a Python program in a fresh interpreter.

    Parameters
    ----------
    program
        Source text; indentation common to all lines is removed.
    args
        ``sys.argv[1:]`` of the program.
    timeout
        Wall-clock seconds until the process is killed.
    memory_bytes
        Resident memory that the process may use. Its address space is limited to 4 GB more.
    env
        Variables added to the environment.
    """
    limit = 0 if memory_bytes is None else memory_bytes + 4 * 2**30
    command = [sys.executable, "-c", _RUNNER, textwrap.dedent(program), str(limit), *args]
    ended = run(command, timeout=timeout, env=env, cwd=cwd)
    if memory_bytes is not None and not ended.timed_out:
        assert ended.peak_bytes <= memory_bytes, (
            f"{ended.peak_bytes / 2**20:.0f} MiB resident, allowed {memory_bytes / 2**20:.0f}\n"
            f"{ended.stderr[-2000:]}"
        )
    return ended


def run(
    command: Sequence[str],
    *,
    timeout: float = 30.0,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    stdin: str | None = None,
) -> Ended:
    """Run a command, killing it and its children after ``timeout`` seconds."""
    begun = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd or ROOT,
        env={**os.environ, **(env or {})},
        start_new_session=True,
    )
    timed_out = False
    try:
        out, err = process.communicate(stdin.encode() if stdin is not None else None, timeout)
    except subprocess.TimeoutExpired:
        timed_out = True
        kill_group(process)
        out, err = process.communicate()
    stderr = err.decode(errors="replace")
    cpu, peak = 0.0, 0
    head, mark, usage = stderr.rpartition("\n@usage ")
    if mark:
        stderr = head
        cpu, peak = float(usage.split()[0]), int(usage.split()[1]) * 1024
    seconds = time.monotonic() - begun
    stdout = out.decode(errors="replace")
    return Ended(process.returncode, stdout, stderr, seconds, cpu, peak, timed_out)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that was started as a session of its own, with all its children."""
    if hasattr(os, "killpg"):
        os.killpg(process.pid, 9)
    else:
        process.kill()


def formalm(*args: str, timeout: float = 60.0, env: Mapping[str, str] | None = None) -> Ended:
    """Run the command line, as a user would."""
    return run([sys.executable, "-m", "formalm", *args], timeout=timeout, env=env)


# Imports the command line once and forks for each command, which then ends by itself: exit code,
# output and what interpreters print at their end are those of a command that was started alone.
_COMMANDS = """
import json, os, runpy, sys, tempfile, time
import numpy, formalm.cli.app, formalm.reports, formalm.suites
for module in json.loads(sys.argv[2]):
    with __import__("contextlib").suppress(ImportError):
        __import__(module)
commands, limit = json.load(sys.stdin), float(sys.argv[1])
chosen = None
for arguments in commands:
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        begun, times = time.monotonic(), os.times()
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
            chosen = arguments
            break
        code, timed_out = None, False
        while code is None:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                code = os.waitstatus_to_exitcode(status)
            elif time.monotonic() - begun > limit and not timed_out:
                os.kill(child, 9)
                timed_out = True
            else:
                time.sleep(0.005)
        now = os.times()
        used = now.children_user + now.children_system - times.children_user - times.children_system
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
        row = [code, *texts, time.monotonic() - begun, used, timed_out]
        print(json.dumps(row), flush=True)
if chosen is not None:
    sys.argv = ["formalm", *chosen]
    runpy.run_module("formalm", run_name="__main__", alter_sys=True)
"""


def formalm_commands(
    commands: Sequence[Sequence[object]],
    *,
    timeout: float = 120.0,
    env: Mapping[str, str] | None = None,
    preload: Sequence[str] = ("scipy.special", "matplotlib.backends.backend_svg"),
) -> list[Ended]:
    """Run commands of the command line one after the other, each in a process of its own.

    Where the platform can fork, they share the start of the interpreter, which takes longer than
    most commands do.

    Parameters
    ----------
    commands
        The arguments of each.
    timeout
        Wall-clock seconds until one of them is killed.
    env
        Variables added to the environment.
    preload
        Modules imported once for all commands, beside those of the command line.
    """
    asked = [[str(argument) for argument in arguments] for arguments in commands]
    if not hasattr(os, "fork"):
        return [formalm(*arguments, timeout=timeout, env=env) for arguments in asked]
    command = [sys.executable, "-c", _COMMANDS, str(timeout), json.dumps(list(preload))]
    done = run(command, timeout=timeout * len(asked) + 60, env=env, stdin=json.dumps(asked))
    assert done.code == 0, done.stderr[-4000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return [Ended(*row[:5], peak_bytes=0, timed_out=row[5]) for row in rows]
