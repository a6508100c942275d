"""MaskBench's measurement of JSON Schemas, side by side with llguidance.

Run as ``python -m benches.maskbench``; writes ``records/maskbench-DATE.md`` and the ``.json``
beside it. A schema is compiled and its first mask filled; then each instance is written compactly,
cut into tokens, and for every token a mask is filled, the token looked up in it, and the matcher
advanced. An instance must be accepted or refused as it is marked. Engines take turns, schema by
schema, on one thread; times are CPU times of the thread, since other work would show in those on
the wall.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import thread_time_ns
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from benches.cases import Vocabulary, load_vocabulary
from benches.engines import Formalm, Llguidance
from benches.machine import ROOT, describe
from benches.writing import write

#: Highest ratios to llguidance that are asked for.
TARGETS = {
    ("first", "p50"): 1 / 10,
    ("first", "p99"): 1 / 4,
    ("between", "p50"): 1 / 8,
    ("between", "mean"): 1 / 10,
    ("between", "p99"): 1 / 10,
    ("between", "p99.9"): 1 / 4,
}
WHAT = {"first": "time to first mask", "between": "time between masks"}


class Ours(Formalm):
    """Formalm; members in any order and no blanks, unless told otherwise."""

    def __init__(self, vocabulary: Vocabulary, order: str = "any", blanks: int = 0) -> None:
        super().__init__(vocabulary)
        self._order, self._blanks = order, blanks

    def compile(self, pattern: str) -> Any:
        """Build the constraint of a schema from its text."""
        schema = self._formalm.JsonSchema(pattern, order=self._order, blanks=self._blanks)
        return self._formalm.Constraint(schema, self._vocabulary)

    def accepts(self, cursor: Any) -> bool:
        """Whether the text is complete."""
        return bool(cursor.is_accepting)


class Theirs(Llguidance):
    """llguidance; no blanks, unless told otherwise."""

    def __init__(self, vocabulary: Vocabulary, blanks: int = 0) -> None:
        super().__init__(vocabulary)
        self._flexible = blanks > 0

    def compile(self, pattern: str) -> Any:
        """Build the matcher of a schema from its text."""
        options = {"whitespace_flexible": self._flexible}
        grammar = self._matcher.grammar_from_json_schema(pattern, overrides=options)
        matcher = self._matcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher

    def advance(self, cursor: Any, token_id: int) -> bool:
        """Read a token that the mask allows."""
        return bool(cursor.consume_token(token_id))

    def accepts(self, cursor: Any) -> bool:
        """Whether the text is complete."""
        return bool(cursor.is_accepting())


def main() -> None:
    """Measure, then write the record."""
    arguments = parse()
    vocabulary = load_vocabulary(arguments.vocabulary, arguments.shared / "tokenizers")
    engines = {
        "formalm": Ours(vocabulary, arguments.order, arguments.blanks),
        "llguidance": Theirs(vocabulary, arguments.blanks),
    }
    tokenizer = Tokenizer.from_str(vocabulary.json)
    asked = {name: getattr(arguments, name) for name in ("vocabulary", "every", "order", "blanks")}
    about = {**describe(), **asked}
    runs = [run(engines, tokenizer, arguments) for _ in range(arguments.runs)]
    about["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    record = {"about": about, "runs": runs}
    page = markdown(record)
    way = [] if arguments.order == "any" else [f"order-{arguments.order}"]
    way += [f"blanks-{arguments.blanks}"] if arguments.blanks else []
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
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for an instance")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    return parser.parse_args()


def cases(arguments: argparse.Namespace) -> Iterator[tuple[str, str, list[tuple[bool, str]]]]:
    """Yield name, schema and instances."""
    path = arguments.shared / "maskbench" / "dev.jsonl.xz"
    with lzma.open(path, "rt", encoding="utf-8") as lines:
        for at, line in enumerate(lines):
            if at % arguments.every != arguments.first % arguments.every:
                continue
            case = json.loads(line)
            if case["tests"]:
                yield case["name"], json.dumps(case["schema"]), instances(case["tests"])


def instances(tests: list[dict[str, Any]]) -> list[tuple[bool, str]]:
    """Return each instance's verdict and text."""

    def text(data: object) -> str:
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)

    return [(one["valid"], text(one["data"])) for one in tests]


def run(
    engines: dict[str, Any], tokenizer: Tokenizer, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Return figures and verdicts of one pass over all schemas."""
    times: dict[str, dict[str, list[int]]] = {
        name: {"first": [], "between": []} for name in (*engines, "where refused")
    }
    verdicts: dict[str, Counter[str]] = {name: Counter() for name in engines}
    faults: dict[str, list[str]] = {name: [] for name in engines}
    memory: list[float] = []
    gc.disable()
    for name, schema, texts in cases(arguments):
        tests = [(v, tokenizer.encode(t, add_special_tokens=False).ids) for v, t in texts]
        results = {
            who: judged(engine, schema, tests, arguments.limit, memory)
            for who, engine in engines.items()
        }
        for who, (verdict, _) in results.items():
            verdicts[who][verdict] += 1
            if verdict != "passing":
                faults[who].append(f"{name}: {verdict}")
        refused = results["llguidance"][0] == "compile error"
        for who, (_, taken) in results.items():
            into = "where refused" if refused and who == "formalm" else who
            for what, values in taken.items():
                times[into][what] += values
    gc.enable()
    figures = {who: {what: summary(t) for what, t in by.items()} for who, by in times.items()}
    return {
        "figures": figures,
        "verdicts": verdicts,
        "faults": faults,
        "memory_bytes": {f"p{q}": float(np.percentile(memory, q)) for q in (50, 99, 100)},
    }


def judged(
    engine: Any,
    schema: str,
    tests: list[tuple[bool, list[int]]],
    limit: float,
    memory: list[float],
) -> tuple[str, dict[str, list[int]]]:
    """Return the verdict on a schema, and the times taken; note its memory where it is told."""
    times: dict[str, list[int]] = {"first": [], "between": []}
    start = thread_time_ns()
    try:
        constraint = engine.compile(schema)
        engine.fill(engine.start(constraint))()
    except Exception:
        return "compile error", times
    times["first"].append(thread_time_ns() - start)
    for valid, tokens in tests:
        before = len(times["between"])
        try:
            accepted = walk(engine, constraint, tokens, times["between"], limit)
        except Exception:
            return "error", times
        if accepted is None or sum(times["between"][before:]) > limit * 1e9:
            return "timeout", times
        if accepted != valid:
            return "validation error" if valid else "invalidation error", times
    taken = engine.memory_bytes(constraint)
    memory += [] if taken is None else [taken]
    return "passing", times


def walk(
    engine: Any, constraint: Any, tokens: list[int], times: list[int], limit: float
) -> bool | None:
    """Whether an instance is accepted, token by token; None if it takes too long."""
    cursor = engine.start(constraint)
    fill, bits, left = engine.fill(cursor), engine.bits(), limit * 1e9
    for token_id in tokens:
        start = thread_time_ns()
        fill()
        allowed = int(bits[token_id >> 5]) >> (token_id & 31) & 1
        if allowed:
            engine.advance(cursor, token_id)
        times.append(thread_time_ns() - start)
        if not allowed:
            return False
        left -= times[-1]
        if left < 0:
            return None
    return bool(engine.accepts(cursor))


def summary(times: list[int]) -> dict[str, float]:
    """Return the figures of a list of times, in µs."""
    if not times:
        return {"count": 0}
    values = np.array(times) / 1e3
    quantiles = {f"p{q}": float(np.percentile(values, q)) for q in (50, 90, 99, 99.9)}
    most, mean = float(values.max()), float(values.mean())
    return {"count": len(times), **quantiles, "mean": mean, "max": most}


def markdown(record: dict[str, Any]) -> str:
    """Return the page."""
    about, runs = record["about"], record["runs"]
    lines = [
        "# JSON Schemas as MaskBench measures them, side by side",
        "",
        f"{about['date']}; {about['cpu']}, {about['cores']} cores; Python {about['python']};",
        f"{about['vocabulary']}; formalm at {about['commit']};",
        f"llguidance {about['versions'].get('llguidance')};",
        f"load averages {about['load_average']} before, {about['load_average_after']} after.",
        "",
        f"One schema of {about['every']} of the development part;",
        f"medians of {len(runs)} runs, in µs; members in order {about['order']!r},",
        f"at most {about['blanks']} blanks in a gap of ours.",
        "Times are compared on schemas that llguidance compiles; ours on the others stand beside.",
        "",
        "| what | figure | formalm | llguidance | ratio | target | | where llguidance refuses |",
        "| --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (what, figure), target in TARGETS.items():
        ours, theirs, other = (
            median([one["figures"][who][what].get(figure, 0.0) for one in runs])
            for who in ("formalm", "llguidance", "where refused")
        )
        verdict = "met" if ours <= target * theirs else "**missed**"
        lines.append(
            f"| {WHAT[what]} | {figure} | {ours:.1f} | {theirs:.1f} | 1/{theirs / ours:.1f} |"
            f" 1/{1 / target:.0f} | {verdict} | {other:.1f} |"
        )
    kept = runs[0]["memory_bytes"]
    sizes = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in kept.items())
    lines += ["", f"Memory of a schema above the vocabulary, in MB: {sizes}."]
    lines += ["", "| verdict | formalm | llguidance |", "| --- | --- | --- |"]
    ours, theirs = (runs[0]["verdicts"][who] for who in ("formalm", "llguidance"))
    for verdict in sorted({*ours, *theirs}):
        lines.append(f"| {verdict} | {ours.get(verdict, 0)} | {theirs.get(verdict, 0)} |")
    if runs[0]["faults"]["formalm"]:
        lines += ["", "Ours that do not pass:", ""]
        lines += [f"- {one}" for one in runs[0]["faults"]["formalm"]]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
