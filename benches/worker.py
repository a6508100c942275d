"""One process of the benchmark: a vocabulary's timings, or one engine's memory on it.

Started by ``benches.regex_masks``; prints its result as JSON on the last line.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from benches import measure
from benches.cases import Case, Vocabulary, load_cases, load_vocabulary
from benches.engines import ENGINES, TOO_LARGE, Engine, version
from benches.walks import differences, masks, positions, sequences


def main() -> None:
    """Run one process."""
    arguments = parse()
    vocabulary = load_vocabulary(arguments.vocabulary, arguments.tokenizers)
    cases = [
        case
        for case in load_cases(arguments.patterns)
        if not arguments.only or case.name in arguments.only
    ]
    if arguments.memory_of:
        result = memory(arguments.memory_of, vocabulary, cases, arguments)
    else:
        effort = measure.QUICK if arguments.quick else measure.THOROUGH
        result = timings(vocabulary, cases, effort, arguments)
    sys.stdout.write("\n" + json.dumps(result) + "\n")


def parse() -> argparse.Namespace:
    """Read the options; ``benches.regex_masks`` passes its own on."""
    parser = argparse.ArgumentParser()
    parser.add_argument("vocabulary")
    parser.add_argument("--tokenizers", type=Path)
    parser.add_argument("--patterns", type=Path)
    parser.add_argument("--walks", type=Path, required=True)
    parser.add_argument("--engines", nargs="+", required=True)
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--memory-of")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--all", action="store_true")
    return parser.parse_args()


def timings(
    vocabulary: Vocabulary, cases: list[Case], effort: measure.Effort, arguments: argparse.Namespace
) -> dict[str, Any]:
    """Compare the allowed sets of every pattern, then time it."""
    every = {name: ENGINES[name](vocabulary) for name in arguments.engines}
    gc.collect()
    gc.freeze()
    result: dict[str, Any] = {}
    walks: dict[str, list[list[int]]] = {}
    for case in cases:
        progress(f"{vocabulary.name}: {case.name}")
        result[case.name], walks[case.name] = one_case(vocabulary, case, every, effort, arguments)
    arguments.walks.write_text(json.dumps(walks))
    return result


def one_case(
    vocabulary: Vocabulary,
    case: Case,
    every: dict[str, Engine],
    effort: measure.Effort,
    arguments: argparse.Namespace,
) -> tuple[dict[str, Any], list[list[int]]]:
    """Return the figures of one pattern, and the walks they were measured on."""
    engines: dict[str, Engine] = {}
    constraints: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for name, engine in every.items():
        if (name, case.name) in TOO_LARGE and not arguments.all:
            left_out[name] = TOO_LARGE[name, case.name]
            continue
        try:
            constraints[name] = engine.compile(case.pattern)
        except (RuntimeError, ValueError) as error:
            left_out[name] = f"refused: {error}"
            continue
        engines[name] = engine
    first = next(iter(engines))
    walks = sequences(case, vocabulary, engines[first], constraints[first], count=10)
    compared = compare(vocabulary, engines, constraints, walks)
    if first == "formalm":
        fresh = engines[first].compile(case.pattern)
        new = measure.new_places(engines[first], fresh, walks)
    else:
        new = {(w, r) for w, walk in enumerate(walks) for r in range(len(walk) + 1)}
    figures = {
        "left_out": left_out,
        "compared": compared,
        "first_fill": summary(measure.first_fills(engines, case.pattern, walks, effort), new),
        "steady_us": measure.steady(engines, constraints, walks, effort),
        "compile": measure.compile_and_first_mask(engines, case.pattern, effort),
    }
    return figures, walks


def compare(
    vocabulary: Vocabulary,
    engines: dict[str, Engine],
    constraints: dict[str, Any],
    walks: list[list[int]],
) -> dict[str, Any]:
    """Compare every engine's allowed sets with the first engine's, at up to 200 positions."""
    every = [(w, r) for w, walk in enumerate(walks) for r in range(len(walk) + 1)]
    picked = np.linspace(0, len(every) - 1, min(200, len(every))).astype(int)
    sample = {every[i] for i in picked}
    sets = {name: masks(engines[name], constraints[name], walks, sample) for name in engines}
    ours, *others = engines
    return {name: differences(sets[ours], sets[name], walks, vocabulary) for name in others}


def summary(
    times: dict[str, dict[str, dict[measure.Place, float]]], new: set[measure.Place]
) -> dict[str, Any]:
    """Keep the times at new positions; ``reached`` says which of them an engine came to."""
    order = sorted(new)
    return {
        name: {
            "reached": [place in by["first"] for place in order],
            "first_us": [round(by["first"][p], 3) for p in order if p in by["first"]],
            "cold_us": [round(by["cold"][p], 3) for p in order if p in by["cold"]],
            "again_us": [round(by["again"][p], 3) for p in order if p in by["again"]],
        }
        for name, by in times.items()
    }


def memory(
    name: str, vocabulary: Vocabulary, cases: list[Case], arguments: argparse.Namespace
) -> dict[str, Any]:
    """Measure preparation and how the process grows with each pattern; all of them are kept."""
    before = resident_bytes()
    engine = ENGINES[name](vocabulary)
    grown_by = resident_bytes() - before
    prepared = {"resident_bytes": grown_by, **preparation(name, vocabulary)}
    walks: dict[str, list[list[int]]] = json.loads(arguments.walks.read_text())
    kept: list[Any] = []
    grown: dict[str, Any] = {}
    for case in cases:
        if (name, case.name) in TOO_LARGE and not arguments.all:
            continue
        before = resident_bytes()
        try:
            constraint = engine.compile(case.pattern)
        except (RuntimeError, ValueError):
            continue
        for _, _, cursor in positions(engine, constraint, walks[case.name]):
            engine.fill(cursor)()
        kept.append(constraint)
        grown[case.name] = {
            "resident_bytes": resident_bytes() - before,
            "stated_bytes": engine.memory_bytes(constraint),
        }
    return {"preparation": prepared, "constraints": grown}


def preparation(name: str, vocabulary: Vocabulary) -> dict[str, Any]:
    """Time the preparation of the vocabulary; best and median of five."""
    ways: dict[str, Callable[[], object]] = {"engine": lambda: ENGINES[name](vocabulary)}
    if name == "formalm":
        import formalm

        ends = [vocabulary.end_token_id]
        ways = {
            "tokens": lambda: formalm.Vocabulary.from_tokens(vocabulary.tokens, end_token_ids=ends),
            "tokenizer_json": lambda: formalm.Vocabulary.from_tokenizer_json(
                vocabulary.json.encode(), end_token_ids=ends
            ),
        }
    times: dict[str, Any] = {}
    for way, prepare in ways.items():
        taken = []
        for _ in range(5):
            with measure.quiet():
                start = perf_counter()
                one = prepare()
                taken.append(perf_counter() - start)
            del one
        times[f"{way}_seconds"] = {"best": min(taken), "median": float(np.median(taken))}
    return times


def resident_bytes() -> int:
    """Return the resident size of this process; zero where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def progress(line: str) -> None:
    """Say on the terminal what is being measured."""
    sys.stderr.write(f"{line}\n")


if __name__ == "__main__":
    missing = [name for name in sys.argv[1:] if name in ENGINES and version(name) is None]
    if missing:
        sys.exit(f"not installed: {', '.join(missing)}")
    main()
