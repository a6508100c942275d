"""The measurements, engines taking turns so that a disturbance meets all of them."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import repeat
from statistics import median
from time import perf_counter_ns
from typing import Any

import numpy as np

from benches.engines import Engine
from benches.walks import positions

Place = tuple[int, int]


@dataclass(frozen=True)
class Effort:
    """How long to measure: seconds an engine may take for one thing, and most repetitions."""

    seconds: float
    compiles: int
    passes: int
    fills: int


THOROUGH = Effort(seconds=2.0, compiles=40, passes=5, fills=2000)
QUICK = Effort(seconds=0.5, compiles=5, passes=2, fills=200)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep the garbage collector out of a measurement."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def compile_and_first_mask(
    engines: dict[str, Engine], pattern: str, effort: Effort
) -> dict[str, dict[str, float]]:
    """Time from the pattern's text to the first mask, each time on a fresh constraint."""
    times: dict[str, list[int]] = {name: [] for name in engines}
    for _ in range(effort.compiles):
        for name, engine in engines.items():
            if sum(times[name]) > effort.seconds * 1e9:
                continue
            with quiet():
                start = perf_counter_ns()
                constraint = engine.compile(pattern)
                cursor = engine.start(constraint)
                engine.fill(cursor)()
                times[name].append(perf_counter_ns() - start)
            del cursor, constraint
    return {
        name: {"median_us": median(t) / 1e3, "first_us": t[0] / 1e3, "count": len(t)}
        for name, t in times.items()
    }


def one_pass(engine: Engine, constraint: Any, walks: list[list[int]]) -> dict[Place, int]:
    """Time the fill at every position of the walks, in nanoseconds."""
    times: dict[Place, int] = {}
    with quiet():
        for number, read, cursor in positions(engine, constraint, walks):
            fill = engine.fill(cursor)
            start = perf_counter_ns()
            fill()
            times[number, read] = perf_counter_ns() - start
    return times


def new_places(engine: Engine, constraint: Any, walks: list[list[int]]) -> set[Place]:
    """Return the positions whose state the constraint has not seen before."""
    seen: set[int] = set()
    places: set[Place] = set()
    for number, read, cursor in positions(engine, constraint, walks):
        if cursor.state_key not in seen:
            seen.add(cursor.state_key)
            places.add((number, read))
    return places


def first_fills(
    engines: dict[str, Engine], pattern: str, walks: list[list[int]], effort: Effort
) -> dict[str, dict[str, dict[Place, float]]]:
    """Return per engine its fill times in µs: ``first`` visits, and ``again`` in a second pass.

    Each repetition takes a fresh constraint. A first visit's time is the median over the
    repetitions; ``cold`` holds the very first, when the vocabulary may not know the pattern's
    character classes either.
    """
    first: dict[str, list[dict[Place, int]]] = {name: [] for name in engines}
    again: dict[str, dict[Place, int]] = {}
    spent = dict.fromkeys(engines, 0)
    for turn in range(effort.passes):
        for name, engine in engines.items():
            if spent[name] > 2 * effort.seconds * 1e9:
                continue
            start = perf_counter_ns()
            constraint = engine.compile(pattern)
            first[name].append(one_pass(engine, constraint, walks))
            spent[name] += perf_counter_ns() - start
            if turn == 0:
                slow = spent[name] > 4 * effort.seconds * 1e9
                again[name] = {} if slow else one_pass(engine, constraint, walks)
            del constraint
    return {
        name: {
            "first": {place: median(t[place] for t in turns) / 1e3 for place in turns[0]},
            "cold": {place: t / 1e3 for place, t in turns[0].items()},
            "again": {place: t / 1e3 for place, t in again[name].items()},
        }
        for name, turns in first.items()
    }


def steady(
    engines: dict[str, Engine],
    constraints: dict[str, Any],
    walks: list[list[int]],
    effort: Effort,
    places: int = 12,
) -> dict[str, list[float]]:
    """Return per engine the time in µs of a fill repeated at states seen before.

    Up to ``places`` positions are spread over the walks; the same ones for every engine. Each
    time is the median of nine rounds, in which the engines take turns.
    """
    every = [(w, r) for w, walk in enumerate(walks) for r in range(len(walk) + 1)]
    chosen = {every[i] for i in np.linspace(0, len(every) - 1, places).astype(int)}
    result: dict[str, list[float]] = {name: [] for name in engines}
    for place in sorted(chosen):
        fills = {}
        for name, engine in engines.items():
            walk = walks[place[0]][: place[1]]
            cursor = engine.start(constraints[name])
            if all(engine.advance(cursor, token_id) for token_id in walk):
                fills[name] = engine.fill(cursor)
        for name, rounds in _rounds(fills, effort).items():
            result[name].append(median(rounds))
    return result


def _rounds(fills: dict[str, Any], effort: Effort, rounds: int = 9) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in fills}
    counts: dict[str, int] = {}
    for name, fill in fills.items():
        start = perf_counter_ns()
        fill()
        fill()
        once = (perf_counter_ns() - start) // 2
        counts[name] = max(3, min(effort.fills, int(effort.seconds * 1e8 / rounds / (once + 1))))
    for _ in range(rounds):
        for name, fill in fills.items():
            with quiet():
                count = counts[name]
                start = perf_counter_ns()
                for _ in repeat(None, count):
                    fill()
                times[name].append((perf_counter_ns() - start) / count / 1e3)
    return times
