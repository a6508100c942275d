"""Workers: processes that answer one item after another, each under limits of its own.

A fresh interpreter for each of ten thousand items would take longer than the items. A worker that
an item kills, or that does not answer in time, is replaced, and the answer tells how it ended.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING, Any

from tests.support.processes import ROOT, kill_group

if TYPE_CHECKING:
    from typing_extensions import Self

# The program defines ``answer(item)``. A profiling timer kills the process after so much CPU time
# of one item, whatever code it is in. The peak of resident memory is reset before each item.
_LOOP = """
import json as _json, resource as _resource, signal as _signal, sys as _sys, time as _time
_seconds, _bytes = float(_sys.argv[1]), int(_sys.argv[2])
_resource.setrlimit(_resource.RLIMIT_AS, (_bytes, _bytes))
_resource.setrlimit(_resource.RLIMIT_CORE, (0, 0))
def _peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:"))
for _line in _sys.stdin:
    try:
        with open("/proc/self/clear_refs", "w") as _file:
            _file.write("5")
    except OSError:
        pass
    _begun = _time.process_time()
    _signal.setitimer(_signal.ITIMER_PROF, _seconds)
    try:
        _answer = {"value": answer(_json.loads(_line))}
    except BaseException as _error:
        import traceback as _traceback
        _answer = {"error": "".join(_traceback.format_exception(_error))[-2000:]}
    _signal.setitimer(_signal.ITIMER_PROF, 0)
    _answer |= {"cpu": _time.process_time() - _begun, "peak": _peak()}
    print(_json.dumps(_answer), flush=True)
"""


@dataclass(frozen=True)
class Answer:
    """The answer to one item, and what it took."""

    value: Any = None
    failure: str | None = None
    """How the worker failed: a traceback, "timed out" or the number of a signal."""
    cpu_seconds: float = 0.0
    peak_bytes: int = 0


class Worker:
    """A process that answers items one by one.

    Parameters
    ----------
    program
        Source text that defines ``answer(item)``, from one JSON value to another.
    cpu_seconds
        CPU time that one item may take until the process is killed.
    memory_bytes
        Address space of the process.
    """

    def __init__(
        self,
        program: str,
        *,
        cpu_seconds: float,
        memory_bytes: int,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self._program = textwrap.dedent(program) + _LOOP
        self._cpu_seconds = cpu_seconds
        self._memory_bytes = memory_bytes
        self._env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill the process."""
        if self._process is not None:
            kill_group(self._process)
            self._process.communicate()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            limits = [str(self._cpu_seconds), str(self._memory_bytes)]
            self._process = subprocess.Popen(
                [sys.executable, "-c", self._program, *limits],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=ROOT,
                env=self._env,
                start_new_session=True,
            )
        return self._process

    def ask(self, item: Any) -> Answer:
        """The answer to an item. Without one in ten times the CPU seconds the process is killed."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(item).encode() + b"\n")
        process.stdin.flush()
        deadline = time.monotonic() + 10 * self._cpu_seconds + 10
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            ready = left > 0 and select.select([process.stdout], [], [], left)[0]
            piece = os.read(process.stdout.fileno(), 1 << 20) if ready else b""
            if not piece:
                self.close()
                failure = f"signal {-process.returncode}" if ready else "timed out"
                return Answer(failure=failure, cpu_seconds=self._cpu_seconds)
            line += piece
        answer = json.loads(line)
        value, failure = answer.get("value"), answer.get("error")
        return Answer(value, failure, answer["cpu"], answer["peak"])
