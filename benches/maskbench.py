"""MaskBench's measurement of JSON Schemas, side by side with llguidance, XGrammar and glrmask.

Run as ``python -m benches.maskbench``; writes ``records/maskbench-DATE.md`` and the ``.json``
beside it. A schema is compiled and its first mask filled; then each instance is written compactly,
cut into tokens, and for every token a mask is filled, the token looked up in it, and the matcher
advanced. An instance must be accepted or refused as it is marked. Engines take turns on one thread:
run by run, as MaskBench measures them, or schema by schema, which leaves the processor's caches
cold. Times are those on the wall, or CPU times of the thread (``--clock cpu``). XGrammar works in
a process of its own for each schema, for it does not survive them all. Where the extension is built
with the feature ``solver-clock``, the solver's share is told. With ``--layout line`` texts have the
separators ``", "`` and ``": "``; with ``--glrmask`` that engine, which has no other layout and no
order but the declared one, is measured too. With ``--instances first`` only the first valid
instance of a schema is read; with ``--warm-up`` a constraint of ours is warmed up so many seconds
after its first mask, which is not timed.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from tokenizers import Tokenizer

from benches.cases import load_vocabulary
from benches.clocks import CLOCKS
from benches.machine import ROOT, describe
from benches.maskbench_page import markdown, summary
from benches.schema_engines import SEPARATORS, Glr, Idle, Ours, Theirs, Xgr
from benches.slow_masks import Slow, told
from benches.writing import write


class Watch(NamedTuple):
    """What times are taken with, and the seconds that an instance and a warm-up may take."""

    clock: Callable[[], int]
    limit: float
    warm_up: float


#: Whether an instance is valid, and its tokens.
Test = tuple[bool, list[int]]
#: A verdict, the nanoseconds of first masks and of those between, and what an engine that refuses
#: the schema says.
Result = tuple[str, dict[str, list[int]], str]
#: Name, schema and tests.
Case = tuple[str, str, list[Test]]


def main() -> None:
    """Measure, then write the record."""
    arguments = parse()
    vocabulary = load_vocabulary(arguments.vocabulary, arguments.shared / "tokenizers")
    engines: dict[str, Any] = {
        "formalm": Ours(vocabulary, arguments.order, arguments.blanks, arguments.layout),
        "llguidance": Theirs(vocabulary, arguments.blanks, arguments.layout),
    }
    if arguments.glrmask:
        engines["glrmask"] = Glr(vocabulary)
    if arguments.xgrammar_every:
        engines["xgrammar"] = Xgr(vocabulary, arguments.blanks)
    tokenizer = Tokenizer.from_str(vocabulary.json)
    named = ["vocabulary", "every", "first", "order", "blanks", "layout", "turns", "clock"]
    named += ["instances", "warm_up"]
    asked = {name: getattr(arguments, name) for name in named}
    about = {**describe(), **asked}
    todo = list(cases(tokenizer, arguments))
    runs = [run(engines, todo, arguments)]
    engines.pop("xgrammar", None)
    runs += [run(engines, todo, arguments) for _ in range(arguments.runs - 1)]
    about["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    idle: list[int] = []
    walk(Idle(), None, [0] * 10_000, idle, watch_of(arguments))
    for one in runs:
        one["slowest"] = told(one["slowest"], tokenizer)
    record = {"about": about, "runs": runs, "idle": summary(idle)}
    page = markdown(record)
    way = [] if arguments.order == "any" else [f"order-{arguments.order}"]
    way += [] if arguments.instances == "all" else [f"instances-{arguments.instances}"]
    way += [f"warm-up-{arguments.warm_up * 1e3:g}ms"] if arguments.warm_up else []
    way += [f"blanks-{arguments.blanks}"] if arguments.blanks else []
    way += [] if arguments.layout == "compact" else [f"layout-{arguments.layout}"]
    way += [] if arguments.turns == "runs" else [f"turns-{arguments.turns}"]
    way += [] if arguments.clock == "wall" else [f"clock-{arguments.clock}"]
    way += [] if runs[0]["solver_seconds"] is None else ["solver-clock"]
    write(arguments.output, "-".join(["maskbench", *way]), record, page)
    sys.stdout.write(page)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", default="llama3-128k")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--every", type=int, default=20, help="take one schema of so many")
    parser.add_argument("--first", type=int, default=0, help="which of them")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--order", choices=("any", "schema"), default="any")
    parser.add_argument("--blanks", type=int, default=0, help="most blanks in a gap")
    parser.add_argument("--layout", choices=tuple(SEPARATORS), default="compact")
    parser.add_argument("--instances", choices=("all", "first"), default="all")
    parser.add_argument(
        "--warm-up", type=float, default=0.0, help="seconds in which our constraints are warmed up"
    )
    parser.add_argument("--glrmask", action="store_true", help="measure glrmask too")
    parser.add_argument(
        "--turns",
        choices=("runs", "schemas"),
        default="runs",
        help="whether an engine reads all schemas, or one, before the next has its turn",
    )
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="wall")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for an instance")
    parser.add_argument(
        "--xgrammar-every",
        type=int,
        default=10,
        help="XGrammar takes one of so many of these, in the first run: it compiles for seconds",
    )
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    arguments = parser.parse_args()
    if arguments.glrmask and (arguments.order, arguments.layout) != ("schema", "line"):
        parser.error("--glrmask must be used with --order schema --layout line")
    if arguments.blanks and arguments.layout != "compact":
        parser.error("--blanks must be 0 with another --layout than compact")
    return arguments


def watch_of(arguments: argparse.Namespace) -> Watch:
    """Return what is asked for."""
    return Watch(CLOCKS[arguments.clock], arguments.limit, arguments.warm_up)


def cases(tokenizer: Tokenizer, arguments: argparse.Namespace) -> Iterator[Case]:
    """Yield name, schema and instances; some schemas have none, and only a first mask."""
    path = arguments.shared / "maskbench" / "dev.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for at, line in enumerate(lines):
            if at % arguments.every != arguments.first % arguments.every:
                continue
            case = json.loads(line)
            layout, chosen = SEPARATORS[arguments.layout], case["tests"]
            if arguments.instances == "first":
                chosen = [one for one in chosen if one["valid"]][:1]
            tests = [(one["valid"], tokens(tokenizer, one["data"], layout)) for one in chosen]
            yield case["name"], json.dumps(case["schema"]), tests


def tokens(tokenizer: Tokenizer, data: object, separators: tuple[str, str]) -> list[int]:
    """Return an instance's tokens."""
    text = json.dumps(data, separators=separators, ensure_ascii=False)
    ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return ids


def run(
    engines: dict[str, Any], cases: list[Case], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return figures and verdicts of one pass over all schemas."""
    peers = [name for name in engines if name != "formalm"]
    # Ours on the schemas that a peer compiles, its own on these, and ours on the others.
    times: dict[str, dict[str, dict[str, list[int]]]] = {
        peer: {who: {"first": [], "between": []} for who in ("formalm", peer, "where refused")}
        for peer in peers
    }
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in engines}
    faults: dict[str, list[str]] = {name: [] for name in engines}
    memory: list[float] = []
    slow = Slow()
    solver = Solver()
    gc.disable()
    results: list[dict[str, Result]] = [{} for _ in cases]
    for who, at in turns(list(engines), len(cases), arguments.turns):
        name, schema, tests = cases[at]
        asked = (engines[who], schema, tests, watch_of(arguments))
        if who != "xgrammar":
            with solver:
                results[at][who] = judged(*asked, memory if who == "formalm" else [])
            if who == "formalm":
                slow.note(name, tests, results[at][who][1]["between"])
        elif at % arguments.xgrammar_every == 0:
            results[at][who] = apart(asked, 20 + arguments.limit * len(tests))
    gc.enable()
    for (name, _, _), found in zip(cases, results, strict=True):
        for who, (verdict, _, reason) in found.items():
            verdicts[who][verdict] += 1
            if verdict != "passing":
                faults[who].append(": ".join(filter(None, [name, verdict, reason])))
        for peer in (one for one in peers if one in found):
            compiled = bool(found[peer][1]["first"])
            for who in ("formalm", peer):
                into = who if compiled else "where refused"
                for what, values in found[who][1].items():
                    times[peer][into][what] += values
    figures = {
        peer: {who: {what: summary(t) for what, t in of.items()} for who, of in by.items()}
        for peer, by in times.items()
    }
    return {
        "figures": figures,
        "verdicts": verdicts,
        "faults": faults,
        "slowest": slow.slowest,
        "memory_bytes": {f"p{q}": float(np.percentile(memory, q)) for q in (50, 99, 100)},
        "solver_seconds": solver.seconds,
    }


def turns(engines: list[str], cases: int, taken: str) -> Iterator[tuple[str, int]]:
    """Yield engines and numbers of cases in the order in which they are measured."""
    if taken == "runs":
        yield from ((who, at) for who in engines for at in range(cases))
    else:
        yield from ((who, at) for at in range(cases) for who in engines)


class Solver:
    """Counts the seconds in the solver of schemas, where the extension tells them."""

    def __init__(self) -> None:
        from formalm import _core

        self._read = getattr(_core, "solver_nanoseconds", None)
        self._before = 0
        self.seconds: float | None = None if self._read is None else 0.0

    def __enter__(self) -> None:
        self._before = self._read() if self._read else 0

    def __exit__(self, *_: object) -> None:
        if self._read and self.seconds is not None:
            self.seconds += (self._read() - self._before) / 1e9


def apart(asked: tuple[Any, str, list[Test], Watch], seconds: float) -> Result:
    """Return what a process of its own finds; one that dies or takes too long is told so."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        signal.alarm(int(seconds) + 1)
        # What an engine prints before it dies is no part of the record.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(writer, "w") as out:
            json.dump(judged(*asked, []), out)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as found:
        text = found.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        what = "timeout" if os.WTERMSIG(status) == signal.SIGALRM else "crash"
        return what, {"first": [], "between": []}, ""
    verdict, times, reason = json.loads(text)
    return verdict, times, reason


def judged(
    engine: Any,
    schema: str,
    tests: list[Test],
    watch: Watch,
    memory: list[float],
) -> Result:
    """Return the verdict on a schema, and the times taken; note its memory where it is told."""
    times: dict[str, list[int]] = {"first": [], "between": []}
    start = watch.clock()
    try:
        constraint = engine.compile(schema)
        engine.fill(engine.start(constraint))()
    except Exception as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines())
        return "compile error", times, reason
    times["first"].append(watch.clock() - start)
    if watch.warm_up and isinstance(engine, Ours):
        constraint.warm_up(watch.warm_up)
    for valid, tokens in tests:
        before = len(times["between"])
        try:
            accepted = walk(engine, constraint, tokens, times["between"], watch)
        except Exception:
            return "error", times, ""
        if accepted is None or sum(times["between"][before:]) > watch.limit * 1e9:
            return "timeout", times, ""
        if accepted != valid:
            return "validation error" if valid else "invalidation error", times, ""
    taken = engine.memory_bytes(constraint)
    memory += [] if taken is None else [taken]
    return "passing", times, ""


def walk(
    engine: Any, constraint: Any, tokens: list[int], times: list[int], watch: Watch
) -> bool | None:
    """Whether an instance is accepted, token by token; None if it takes too long."""
    cursor = engine.start(constraint)
    fill, bits, clock, left = engine.fill(cursor), engine.bits(), watch.clock, watch.limit * 1e9
    for token_id in tokens:
        start = clock()
        fill()
        allowed = int(bits[token_id >> 5]) >> (token_id & 31) & 1
        if allowed:
            engine.advance(cursor, token_id)
        times.append(clock() - start)
        if not allowed:
            return False
        left -= times[-1]
        if left < 0:
            return None
    return bool(engine.accepts(cursor))


if __name__ == "__main__":
    main()
