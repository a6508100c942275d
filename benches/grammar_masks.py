"""Masks of grammars along documents, side by side with llguidance and xgrammar.

Run as ``python -m benches.grammar_masks``; writes ``records/grammar_masks-DATE.md`` and the
``.json`` beside it. All engines read the same tokens on one thread: each all documents, then the
next engine, or in turn at each document, so that caches are cold (``--turns documents``, a record
of its own). The Lark text is the same too, but for xgrammar on JSON, which has a grammar of its own
that is far faster, and for Python, of which llguidance reads the rules without indentation. Times
are taken on the wall, or are CPU times of the thread (``--clock cpu``, a record of its own). What
the clock and an empty call take is measured along the same documents, and taken off where engines
are compared.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from benches import clocks, grammar_memory
from benches.cases import load_vocabulary
from benches.grammar_cases import Case, Copied, Idle, Ours, Theirs, Third, cases
from benches.grammar_memory import mixed
from benches.machine import ROOT, describe
from benches.writing import origin, write

#: Highest ratios to llguidance that are asked for beside those of each grammar.
TARGETS = {"median": 1 / 20, "p99": 1 / 2}

Clock = Callable[[], int]

#: Ours, its masks copied into an array of the caller's.
COPIED = "formalm, copied"

#: Nothing is done in place of a mask.
IDLE = "idle"

#: How often each engine compiles.
TURNS = 15

#: Most µs that reading a token should take.
ADVANCE = {"median": 2, "p99": 15}


def main() -> None:
    """Measure, then write the record."""
    arguments = parse()
    clock = clocks.CLOCKS[arguments.clock]
    record: dict[str, Any] = {"about": describe(), "vocabularies": {}}
    record["turns"], record["clock"] = arguments.turns, arguments.clock
    for name in arguments.vocabulary:
        record["vocabularies"][name] = measured_over(name, arguments, clock)
    record["about"]["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    page = markdown(record)
    way = "" if arguments.turns == "engines" else f"-turns-{arguments.turns}"
    way += "" if arguments.clock == "wall" else f"-clock-{arguments.clock}"
    write(arguments.output, f"grammar_masks{way}", record, page)
    sys.stdout.write(page)


def measured_over(name: str, arguments: argparse.Namespace, clock: Clock) -> dict[str, Any]:
    """Return the figures of all grammars over one vocabulary."""
    vocabulary = load_vocabulary(name, arguments.shared / "tokenizers")
    engines = {
        "formalm": Ours(vocabulary),
        COPIED: Copied(vocabulary),
        "llguidance": Theirs(vocabulary),
        "xgrammar": Third(vocabulary),
    }
    tokenizer = Tokenizer.from_str(vocabulary.json)
    known = cases(arguments.shared, arguments.documents)
    chosen = {name: case for name, case in known.items() if name in arguments.grammar}
    documents = {
        name: [tokenizer.encode(one, add_special_tokens=False).ids for one in case.documents]
        for name, case in chosen.items()
    }
    # What the vocabulary prepares for all constraints is not part of what grammars take.
    compile_and_first_mask(engines["formalm"], next(iter(chosen.values())), clock)
    memory = mixed(engines["formalm"], chosen, documents)
    found = {
        name: measured(engines, case, documents[name], arguments.turns, clock)
        for name, case in chosen.items()
    }
    return {"grammars": found, "memory": memory}


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", nargs="*", default=["llama3-128k", "o200k"])
    parser.add_argument("--grammar", nargs="*", default=["JSON", "SQL", "Python"])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--documents", type=int, default=400)
    parser.add_argument("--turns", choices=["engines", "documents"], default="engines")
    parser.add_argument("--clock", choices=tuple(clocks.CLOCKS), default="wall")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    return parser.parse_args()


def measured(
    engines: dict[str, Any], case: Case, documents: list[list[int]], by: str, clock: Clock
) -> dict[str, Any]:
    """Return the times of all engines; of ours and llguidance's on what both read to the end."""
    engines = {name: one for name, one in engines.items() if case.third or name != "xgrammar"}
    compiled = compiled_in_turns(engines, case, clock)
    constraints = {name: engine.build(case) for name, engine in engines.items()}
    idle = Idle(len(engines["formalm"].bits()))
    walkers = {"formalm": engines["formalm"], IDLE: idle, **engines}
    constraints[IDLE] = constraints["formalm"]
    times: dict[str, dict[str, list[int]]] = {
        name: {"fill": [], "advance": [], "new": []} for name in walkers
    }
    left_out, seen = dict.fromkeys(walkers, 0), set[int]()
    reads = [reads_all(engines["llguidance"], constraints["llguidance"], one) for one in documents]
    left_out["llguidance"] = reads.count(False)
    documents = [one for one, is_read in zip(documents, reads, strict=True) if is_read]
    turns = [(name, tokens) for tokens in documents for name in walkers]
    if by == "engines":
        # Stable: each engine reads the documents in their order.
        turns.sort(key=lambda turn: list(walkers).index(turn[0]))
    if not case.is_json:
        # At the end, so that what takes so long does not empty the caches of the others.
        turns = [turn for turn in turns if turn[0] != "xgrammar"]
        turns += [("xgrammar", tokens) for tokens in documents[: case.third]]
    gc.disable()
    for name, tokens in turns:
        marked = seen if name == "formalm" else None
        one = walk(walkers[name], constraints[name], tokens, marked, clock)
        left_out[name] += one is None
        for what, values in (one or {}).items():
            times[name][what] += values
    gc.enable()
    return {
        "documents": len(documents),
        "left_out": left_out,
        "floor": summary(times.pop(IDLE)["fill"]),
        "memory_bytes": engines["formalm"].memory_bytes(constraints["formalm"]),
        "states": len(seen),
        "masks": constraints["formalm"].mask_count,
        "targets": {"mean": case.mean, **TARGETS, "compile": case.compile},
        "engines": {
            name: {"compile_us": compiled[name], **{what: summary(t) for what, t in by.items()}}
            for name, by in times.items()
        },
    }


def reads_all(engine: Any, constraint: Any, tokens: list[int]) -> bool:
    """Return whether an engine reads a document."""
    cursor = engine.start(constraint)
    return all(engine.advance(cursor, token_id) for token_id in tokens)


def compiled_in_turns(engines: dict[str, Any], case: Case, clock: Clock) -> dict[str, float]:
    """Return the median times from the text to the first mask, in µs.

    The machine is slower now and faster then, so engines take turns; each compiles twice in a turn,
    and the second time counts, as caches are full of another's work before.
    """
    taken: dict[str, list[int]] = {name: [] for name in engines}
    for turn in range(TURNS):
        for name, engine in engines.items():
            # It takes xgrammar up to a second.
            if name != "xgrammar" or turn < TURNS // 3:
                compile_and_first_mask(engine, case, clock)
                taken[name].append(compile_and_first_mask(engine, case, clock))
    return {name: float(np.median(times)) / 1e3 for name, times in taken.items()}


def compile_and_first_mask(engine: Any, case: Case, clock: Clock) -> int:
    """Return the time from the text to the first mask, in ns."""
    start = clock()
    cursor = engine.start(engine.build(case))
    engine.fill(cursor)()
    taken = clock() - start
    # Letting go of it is not part of it.
    del cursor
    return taken


def walk(
    engine: Any, constraint: Any, tokens: list[int], seen: set[int] | None, clock: Clock
) -> dict[str, list[int]] | None:
    """Return the times along a document; None if a token is not allowed."""
    times: dict[str, list[int]] = {"fill": [], "advance": [], "new": []}
    cursor = engine.start(constraint)
    written, advance = engine.bits(), advance_of(cursor)
    for token_id in tokens:
        fill: Callable[[], Any] = engine.fill(cursor)
        start = clock()
        mask = fill()
        times["fill"].append(clock() - start)
        bits = mask if isinstance(mask, np.ndarray) else written
        if seen is not None and cursor.state_key not in seen:
            seen.add(cursor.state_key)
            times["new"].append(times["fill"][-1])
        if not int(bits[token_id >> 5]) >> (token_id & 31) & 1:
            return None
        start = clock()
        advance(token_id)
        times["advance"].append(clock() - start)
    return times


def advance_of(cursor: Any) -> Callable[[int], object]:
    """Return the engine's own call that reads a token."""
    for name in ("advance", "consume_token"):
        if hasattr(cursor, name):
            call: Callable[[int], object] = getattr(cursor, name)
            return call
    call = cursor.accept_token
    return call


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
    turns = {
        "engines": "each engine reads all documents, then the next one",
        "documents": "engines take turns at each document, so that caches are cold",
    }[record["turns"]]
    lines = [
        "# Masks of grammars, side by side",
        "",
        *origin(about, about["load_average_after"]),
        "",
        f"Times in µs of {clocks.NAMES[record['clock']]}; {turns}.",
        "The same tokens and order for all; llguidance and",
        "xgrammar refuse priorities of terminals and get none, and xgrammar's JSON is the grammar",
        "it ships: along Lark text a mask takes it up to seconds, so of SQL it reads one document.",
        "Python is read with indentation by formalm, and by llguidance without it, its limits",
        "raised: modules of the library without line breaks in brackets, which it refuses.",
        "Masks of formalm are read-only arrays, which positions with the same mask share; *copied*",
        "is the call that writes into an array of the caller's, as those of the others do.",
        "*New* are fills at states new to the constraint. The clock and an empty call in place of",
        "the fill, along the same documents, are part of all figures of fills, but taken off",
        "before engines are compared.",
        "",
    ]
    for vocabulary, found in record["vocabularies"].items():
        for name, case in found["grammars"].items():
            lines += [f"## {name}, {vocabulary}", "", *section(case)]
        lines += [f"## Memory, {vocabulary}", "", *grammar_memory.section(found["memory"])]
    return "\n".join(lines)


def section(case: dict[str, Any]) -> list[str]:
    """Return the tables of one grammar."""
    engines, floor = case["engines"], case["floor"]
    ours, theirs = engines["formalm"], engines["llguidance"]
    refused = ", ".join(f"{name} {count}" for name, count in case["left_out"].items() if count)
    share = 1 - case["states"] / max(ours["fill"]["count"], 1)
    lines = [
        f"{case['documents']} documents, {ours['fill']['count']} tokens, {case['states']} states,"
        f" {case['masks']} masks kept; {share:.1%} of fills are repeats."
        + (f" Documents refused: {refused}." if refused else ""),
        f"Memory above the vocabulary: {case['memory_bytes'] / 1e6:.1f} MB.",
        f"An empty call takes {floor['median']:.3f} (median) and {floor['mean']:.3f} (mean).",
        "",
        "| | " + " | ".join(engines) + " |",
        "| --- |" + " --- |" * len(engines),
        "| compile + first mask | "
        + " | ".join(f"{one['compile_us']:.0f}" for one in engines.values())
        + " |",
    ]
    for what in ("fill", "new", "advance"):
        for figure in ("mean", "median", "p99", "max"):
            shown = (
                f"{one[what][figure]:.2f}" if one[what]["count"] else "" for one in engines.values()
            )
            lines.append(f"| {what}, {figure} | {' | '.join(shown)} |")
    lines += ["", "| target | reached | | copied |", "| --- | --- | --- | --- |"]
    for figure, most in case["targets"].items():
        name = "compile + first mask" if figure == "compile" else figure
        ratio, copied = (ratio_of(one, theirs, figure, floor) for one in (ours, engines[COPIED]))
        verdict = verdict_of(ratio <= most)
        lines.append(
            f"| {name} ≤ {most:.3f} of llguidance's | {ratio:.3f} | {verdict} | {copied:.3f} |"
        )
    for figure, most in ADVANCE.items():
        reached = ours["advance"][figure] - floor["median"]
        verdict = verdict_of(reached <= most)
        lines.append(f"| advance, {figure} ≤ {most} | {reached:.2f} | {verdict} | |")
    return [*lines, ""]


def ratio_of(
    ours: dict[str, Any], theirs: dict[str, Any], figure: str, floor: dict[str, float]
) -> float:
    """Return what a figure of ours is of theirs, without the clock and a call."""
    if figure == "compile":
        return float(ours["compile_us"] / theirs["compile_us"])
    at_rest = floor["mean" if figure == "mean" else "median"]
    return float((ours["fill"][figure] - at_rest) / (theirs["fill"][figure] - at_rest))


def verdict_of(is_met: bool) -> str:
    """Return a word for a target."""
    return "met" if is_met else "**missed**"


if __name__ == "__main__":
    main()
