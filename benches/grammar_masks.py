"""Masks of grammars along documents, side by side with llguidance.

Run as ``python -m benches.grammar_masks``; writes ``records/grammar_masks-DATE.md`` and the
``.json`` beside it. Both engines read the same Lark text and the same tokens, document by document
in turn, on one thread. A fill is timed by the thread's CPU time, since other work on the machine
would show in the time on the wall.
"""

from __future__ import annotations

import argparse
import gc
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from benches.cases import load_vocabulary
from benches.engines import Formalm, Llguidance
from benches.grammar_documents import json_instances, statements
from benches.machine import ROOT, describe
from benches.writing import write

#: Highest ratios to llguidance that are asked for: of the mean, the median, the 99th percentile.
TARGETS = {"mean": 1 / 15, "median": 1 / 20, "p99": 1 / 2}

#: Priorities of rules and terminals, which llguidance refuses.
PRIORITY = re.compile(r"(?m)(?<=\w)\.\d+(?=:)")


class Ours(Formalm):
    """Formalm, from Lark text."""

    def compile(self, pattern: str) -> Any:
        """Build the constraint of a grammar from its text."""
        return self._formalm.Constraint(self._formalm.Grammar(pattern), self._vocabulary)


class Theirs(Llguidance):
    """llguidance, from Lark text, without forcing the tokens of its tokenizer."""

    def compile(self, pattern: str) -> Any:
        """Build the constraint of a grammar from its text."""
        text = f'%llguidance {{"no_forcing": true}}\n{PRIORITY.sub("", pattern)}'
        matcher = self._matcher(self._tokenizer, text, log_level=0)
        if matcher.is_error():
            raise ValueError(matcher.get_error())
        return matcher


def main() -> None:
    """Measure, then write the record."""
    arguments = parse()
    vocabulary = load_vocabulary(arguments.vocabulary, arguments.shared / "tokenizers")
    engines = {"formalm": Ours(vocabulary), "llguidance": Theirs(vocabulary)}
    tokenizer = Tokenizer.from_str(vocabulary.json)
    about = {**describe(), "vocabulary": arguments.vocabulary}
    record: dict[str, Any] = {"about": about, "grammars": {}}
    for name, (text, documents) in cases(arguments).items():
        tokens = [tokenizer.encode(one, add_special_tokens=False).ids for one in documents]
        record["grammars"][name] = measured(engines, text, tokens)
    record["about"]["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    page = markdown(record)
    write(arguments.output, "grammar_masks", record, page)
    sys.stdout.write(page)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", default="llama3-128k")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    return parser.parse_args()


def cases(arguments: argparse.Namespace) -> dict[str, tuple[str, list[str]]]:
    """Return Lark text and documents of each grammar."""
    from formalm.grammars import JSON

    shared, count = arguments.shared, arguments.documents
    instances = json_instances(shared / "maskbench" / "dev.jsonl.xz", count)
    sql = (shared / "grammars" / "lark" / "sql.lark").read_text("utf-8")
    return {"JSON": (JSON.text, instances), "SQL": (sql, statements(count * 3 // 5))}


def measured(engines: dict[str, Any], text: str, documents: list[list[int]]) -> dict[str, Any]:
    """Return the times of both engines on the documents that both read to the end."""
    compiled = {name: compile_and_first_mask(engine, text) for name, engine in engines.items()}
    constraints = {name: engine.compile(text) for name, engine in engines.items()}
    times: dict[str, dict[str, list[int]]] = {
        name: {"fill": [], "advance": [], "new": []} for name in engines
    }
    left_out, seen = 0, set[int]()
    gc.disable()
    for tokens in documents:
        walks = {
            name: walk(engine, constraints[name], tokens, seen if name == "formalm" else None)
            for name, engine in engines.items()
        }
        if any(one is None for one in walks.values()):
            left_out += 1
            continue
        for name, one in walks.items():
            for what, values in (one or {}).items():
                times[name][what] += values
    gc.enable()
    memory = engines["formalm"].memory_bytes(constraints["formalm"])
    return {
        "documents": len(documents) - left_out,
        "left_out": left_out,
        "memory_bytes": memory,
        "engines": {
            name: {"compile_us": compiled[name], **{what: summary(t) for what, t in by.items()}}
            for name, by in times.items()
        },
    }


def compile_and_first_mask(engine: Any, text: str) -> float:
    """Return the median time from the text to the first mask, in µs."""
    taken = []
    for _ in range(5):
        start = thread_time_ns()
        engine.fill(engine.start(engine.compile(text)))()
        taken.append(thread_time_ns() - start)
    return float(np.median(taken)) / 1e3


def walk(
    engine: Any, constraint: Any, tokens: list[int], seen: set[int] | None
) -> dict[str, list[int]] | None:
    """Return the times along a document; None if a token is not allowed."""
    times: dict[str, list[int]] = {"fill": [], "advance": [], "new": []}
    cursor = engine.start(constraint)
    bits = engine.bits()
    for token_id in tokens:
        fill: Callable[[], object] = engine.fill(cursor)
        start = thread_time_ns()
        fill()
        times["fill"].append(thread_time_ns() - start)
        if seen is not None and cursor.state_key not in seen:
            seen.add(cursor.state_key)
            times["new"].append(times["fill"][-1])
        if not int(bits[token_id >> 5]) >> (token_id & 31) & 1:
            return None
        start = thread_time_ns()
        engine_advance(cursor, token_id)
        times["advance"].append(thread_time_ns() - start)
    return times


def engine_advance(cursor: Any, token_id: int) -> None:
    """Read a token that is allowed, by the engine's own call."""
    advance = getattr(cursor, "advance", None) or cursor.consume_token
    advance(token_id)


def summary(times: list[int]) -> dict[str, float]:
    """Return figures in µs."""
    values = np.array(times or [0]) / 1e3
    return {
        "count": len(times),
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "p99": float(np.percentile(values, 99)),
        "max": float(values.max()),
    }


def markdown(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    about = record["about"]
    versions = ", ".join(f"{k} {about['versions'][k]}" for k in ("formalm", "llguidance"))
    lines = [
        "# Masks of grammars, side by side",
        "",
        f"{about['date']}; {about['cpu']}, {about['cores']} cores; Python {about['python']}",
        f"{versions}; formalm at {about['commit']}; vocabulary {about['vocabulary']}",
        f"Load averages: {about['load_average']} before, {about['load_average_after']} after.",
        "",
        "Times in µs of the thread's own CPU, the clock's call among them (about 0.3 µs). The same",
        "Lark text, tokens and order for both, but that llguidance refuses priorities of terminals",
        "and gets none; *new* are fills at states new to the constraint.",
        "",
    ]
    for name, case in record["grammars"].items():
        lines += section(name, case)
    return "\n".join(lines)


def section(name: str, case: dict[str, Any]) -> list[str]:
    """Return the tables of one grammar."""
    ours, theirs = case["engines"]["formalm"], case["engines"]["llguidance"]
    lines = [
        f"## {name}",
        "",
        f"{case['documents']} documents, {ours['fill']['count']} tokens; {case['left_out']} more"
        " that one of the two refuses. Memory above the vocabulary: "
        f"{case['memory_bytes'] / 1e6:.1f} MB.",
        "",
        "| | formalm | llguidance |",
        "| --- | --- | --- |",
        f"| compile + first mask | {ours['compile_us']:.0f} | {theirs['compile_us']:.0f} |",
    ]
    for what in ("fill", "new", "advance"):
        for figure in ("mean", "median", "p99", "max"):
            other = "" if what == "new" else f"{theirs[what][figure]:.2f}"
            lines.append(f"| {what}, {figure} | {ours[what][figure]:.2f} | {other} |")
    lines += ["", "| target | reached | |", "| --- | --- | --- |"]
    for figure, most in TARGETS.items():
        ratio = ours["fill"][figure] / theirs["fill"][figure]
        verdict = "met" if ratio <= most else "**missed**"
        lines.append(f"| {figure} ≤ {most:.3f} of llguidance's | {ratio:.3f} | {verdict} |")
    ratio = ours["compile_us"] / theirs["compile_us"]
    verdict = "met" if ratio <= 0.5 else "**missed**"
    return [*lines, f"| compile + first mask ≤ 0.500 | {ratio:.3f} | {verdict} |", ""]


if __name__ == "__main__":
    main()
