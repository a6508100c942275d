"""What a warm-up spares a first member, and what it costs steps of decoding beside it.

Run as ``python -m benches.warm_up``; prints two tables. Schemas of MaskBench are read with a new
constraint, as it is and after ``warm_up``; the masks that the first valid instance and all of them
compute are counted. Then steps of decoding, a mask and its token, are timed by the wall clock, with
and without a second thread that warms up constraints of other schemas; the two take turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import threading
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from benches.cases import load_vocabulary
from benches.engines import Formalm
from benches.machine import ROOT
from benches.many_schemas import LINE, OPTIONS, written

#: A schema, and the tokens of its valid instances.
Case = tuple[Any, list[list[int]]]

#: Rounds of decoding with and without a thread beside it.
ROUNDS = 5


def cases(shared: Path, every: int, first: int, tokenizer: Tokenizer) -> Iterator[Case]:
    """Yield schemas with the tokens of their valid instances."""
    with lzma.open(shared / "maskbench" / "dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        for at, line in enumerate(lines):
            if at % every == first:
                case = json.loads(line)
                texts = [written(one["data"]) for one in case["tests"] if one["valid"]]
                ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
                if ids:
                    yield case["schema"], ids


class Compiler:
    """Constraints of schemas over a vocabulary."""

    def __init__(self, vocabulary: Any) -> None:
        self.vocabulary = vocabulary

    def constraint(self, schema: Any) -> Any | None:
        """Return a new constraint, or ``None`` where the schema is refused."""
        from formalm import Constraint, FormalmError, JsonSchema

        try:
            return Constraint(JsonSchema(schema, **OPTIONS), self.vocabulary)
        except FormalmError:
            return None


def decoded(constraint: Any, ids: list[int], out: Any) -> Iterator[int]:
    """Yield the nanoseconds of each step, up to the first token that is refused."""
    from formalm import TokenError

    matcher = constraint.matcher()
    for token_id in ids:
        began = perf_counter_ns()
        matcher.fill_bitmask(out, 0)
        try:
            matcher.advance(token_id)
        except TokenError:
            return
        yield perf_counter_ns() - began


def new_masks(constraint: Any, instances: list[list[int]], out: Any) -> tuple[int, int]:
    """Return the number of masks that the first instance computes, and that all of them do."""
    before = constraint.mask_count
    counts = []
    for ids in instances:
        list(decoded(constraint, ids, out))
        counts.append(constraint.mask_count - before)
    return counts[0], counts[-1]


def spared(found: list[Case], compiler: Compiler, seconds: float, out: Any) -> str:
    """Return a row about the masks that a warm-up spares."""
    totals, spent, count = np.zeros((2, 2), dtype=int), 0, 0
    for schema, instances in found:
        cold, warm = compiler.constraint(schema), compiler.constraint(schema)
        if cold is None or warm is None:
            continue
        began = thread_time_ns()
        warm.warm_up(seconds)
        spent += thread_time_ns() - began
        count += 1
        totals += [new_masks(cold, instances, out), new_masks(warm, instances, out)]
    first, every = 1 - totals[1] / totals[0]
    milliseconds = spent / 1e6 / max(count, 1)
    return (
        f"| {seconds * 1e3:g} ms | {count} | {totals[0][1]} | {first:.1%} | {every:.1%} |"
        f" {milliseconds:.2f} |"
    )


def beside(found: list[Case], compiler: Compiler, seconds: float, out: Any) -> Iterator[str]:
    """Yield rows about steps of decoding without and with a thread that warms up."""
    read, other = found[::2], found[1::2]
    steps: dict[bool, list[int]] = {False: [], True: []}
    warmed = 0
    for turn in range(2 * ROUNDS + 1):
        has_thread = bool(turn % 2)
        idle = [one for schema, _ in other if (one := compiler.constraint(schema)) is not None]
        decoding = [(compiler.constraint(schema), instances) for schema, instances in read]
        stop = threading.Event()

        def warm_up(idle: list[Any] = idle, stop: threading.Event = stop) -> None:
            nonlocal warmed
            for constraint in idle:
                if stop.is_set():
                    return
                constraint.warm_up(seconds)
                warmed += 1

        thread = threading.Thread(target=warm_up)
        gc.collect()
        gc.disable()
        if has_thread:
            thread.start()
        for constraint, instances in decoding:
            for ids in instances if constraint is not None else ():
                if has_thread and not thread.is_alive():
                    break
                steps[has_thread].extend(decoded(constraint, ids, out))
        stop.set()
        if has_thread:
            thread.join()
        if turn == 0:
            # The first round pays for what the vocabulary makes once.
            steps[False].clear()
        gc.enable()
    for has_thread, name in ((False, "alone"), (True, f"beside {warmed} warm-ups")):
        times = np.array(steps[has_thread]) / 1e3
        quantiles = " | ".join(f"{np.percentile(times, q):.2f}" for q in (50, 90, 99, 99.9))
        yield f"| {name} | {len(times)} | {quantiles} |"


def main() -> None:
    """Measure and print."""
    from formalm import new_bitmask

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", default="llama3-128k")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--every", type=int, default=10, help="take one schema of so many")
    parser.add_argument("--first", type=int, default=3, help="which of them")
    parser.add_argument("--seconds", type=float, nargs="+", default=[0.001, 0.005, 0.02])
    arguments = parser.parse_args()
    loaded = load_vocabulary(arguments.vocabulary, arguments.shared / "tokenizers")
    compiler, tokenizer = Compiler(Formalm(loaded)._vocabulary), Tokenizer.from_str(loaded.json)
    found = list(cases(arguments.shared, arguments.every, arguments.first, tokenizer))
    out = new_bitmask(1, len(compiler.vocabulary))
    print(f"Separators {LINE}, {len(found)} schemas of {arguments.vocabulary}.\n")
    print("| budget | schemas | new masks without | first instance spared | all spared | ms used |")
    print("|" + " --- |" * 6)
    for seconds in arguments.seconds:
        print(spared(found, compiler, seconds, out), flush=True)
    print("\n| decoding | steps | p50 (µs) | p90 | p99 | p99.9 |\n|" + " --- |" * 6)
    for row in beside(found, compiler, 0.005, out):
        print(row)


if __name__ == "__main__":
    main()
