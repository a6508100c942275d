"""What the masks must reach, judged on a record."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp, log
from statistics import mean, median
from typing import Any

RIVAL = "llguidance"
#: Patterns judged one by one on first fills: counters far beyond any token, and Unicode classes.
HARD = ("dot_0_1000", "az_1_500", "pyident_w")
MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Verdict:
    """A target, what was reached, and whether that is enough."""

    target: str
    vocabulary: str
    reached: str
    met: bool


def percentile(values: list[float], share: float) -> float:
    """Return the smallest value that at least ``share`` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -int(-share * len(ordered) // 1) - 1))]


def pooled(timings: dict[str, Any], engine: str, field: str, only: tuple[str, ...] = ()) -> Any:
    """Return all first-fill times of an engine over the patterns."""
    return [
        time
        for name, case in timings.items()
        if (not only or name in only) and engine in case["first_fill"]
        for time in case["first_fill"][engine][field]
    ]


def steady(timings: dict[str, Any], engine: str) -> float | None:
    """Return the median over all patterns and states of a fill at a state seen before."""
    times = [t for case in timings.values() for t in case["steady_us"].get(engine, [])]
    return median(times) if times else None


def compile_ratios(timings: dict[str, Any], rival: str) -> dict[str, float]:
    """Return, per pattern, our time to the first mask over the rival's."""
    return {
        name: case["compile"]["formalm"]["median_us"] / case["compile"][rival]["median_us"]
        for name, case in timings.items()
        if "formalm" in case["compile"] and rival in case["compile"]
    }


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return exp(mean(log(v) for v in values))


def verdicts(record: dict[str, Any]) -> Iterator[Verdict]:
    """Judge every vocabulary of a record."""
    if "formalm" not in record["engines"]:
        return
    for name, part in record["vocabularies"].items():
        yield from _steady(name, part["timings"], record["engines"])
        if RIVAL in record["engines"]:
            yield from _compile(name, part["timings"])
            yield from _first_fill(name, part["timings"])
        yield from _memory(name, part["memory"]["formalm"])


def _steady(name: str, timings: dict[str, Any], engines: list[str]) -> Iterator[Verdict]:
    ours = steady(timings, "formalm")
    others = {e: steady(timings, e) for e in engines if e != "formalm"}
    best = min((t, e) for e, t in others.items() if t is not None) if others else None
    if ours is None:
        return
    if "128k" in name:
        yield Verdict("steady mask, median ≤ 0.7 µs", name, f"{ours:.2f} µs", ours <= 0.7)
    if best is not None:
        reached = f"{ours:.2f} µs against {best[0]:.2f} µs ({best[1]})"
        yield Verdict("steady mask below the best peer's", name, reached, ours < best[0])


def _compile(name: str, timings: dict[str, Any]) -> Iterator[Verdict]:
    ratios = compile_ratios(timings, RIVAL)
    worst = max(ratios, key=lambda case: ratios[case])
    together = geometric_mean(list(ratios.values()))
    yield Verdict(
        f"compile + first mask, each pattern ≤ 1/2 of {RIVAL}",
        name,
        f"largest {ratios[worst]:.3f} ({worst})",
        ratios[worst] <= 0.5,
    )
    yield Verdict(
        f"compile + first mask, geometric mean ≤ 1/5 of {RIVAL}",
        name,
        f"{together:.3f}",
        together <= 0.2,
    )


def _first_fill(name: str, timings: dict[str, Any]) -> Iterator[Verdict]:
    for label, only in [("all patterns", ()), *((case, (case,)) for case in HARD)]:
        ours = pooled(timings, "formalm", "first_us", only)
        theirs = pooled(timings, RIVAL, "first_us", only)
        if not ours or not theirs:
            continue
        means = mean(ours) / mean(theirs)
        tails = percentile(ours, 0.99) / percentile(theirs, 0.99)
        target = f"first fill, {label}: mean ≤ 1/5 of {RIVAL}, p99 ≤ 1/3"
        yield Verdict(target, name, f"{means:.3f}, {tails:.3f}", means <= 1 / 5 and tails <= 1 / 3)


def _memory(name: str, part: dict[str, Any]) -> Iterator[Verdict]:
    sizes = {
        case: max(by["resident_bytes"], by["stated_bytes"] or 0)
        for case, by in part["constraints"].items()
    }
    worst = max(sizes, key=lambda case: sizes[case])
    reached = f"largest {sizes[worst] / MEGABYTE:.2f} MB ({worst})"
    yield Verdict("constraint memory < 2 MB", name, reached, sizes[worst] < 2 * MEGABYTE)
    if "128k" in name:
        for way, limit in (("tokens", 0.15), ("tokenizer_json", 0.3)):
            seconds = part["preparation"][f"{way}_seconds"]["median"]
            target = f"vocabulary from {way} ≤ {limit} s"
            yield Verdict(target, name, f"{seconds:.3f} s", seconds <= limit)
