"""Figures of a run of MaskBench, and the page of a record."""

from __future__ import annotations

from statistics import median
from typing import Any

import numpy as np

from benches.clocks import NAMES

#: Highest ratios to llguidance that are asked for.
TARGETS = {
    ("first", "p50"): 1 / 10,
    ("first", "p99"): 1 / 4,
    ("between", "p50"): 1 / 8,
    ("between", "mean"): 1 / 10,
    ("between", "p99"): 1 / 10,
    ("between", "p99.9"): 1 / 4,
}
TURNS = {
    "runs": "each engine reads all schemas, then the next one",
    "schemas": "engines take turns schema by schema, so that caches are cold",
}
#: Thresholds, in µs, of slow masks; their number is steadier than quantiles.
SLOW = (15, 50, 200)
WHAT = {"first": "time to first mask", "between": "time between masks"}


def summary(times: list[int]) -> dict[str, float]:
    """Return the figures of a list of times, in µs."""
    if not times:
        return {"count": 0}
    values = np.array(times) / 1e3
    quantiles = {f"p{q}": float(np.percentile(values, q)) for q in (50, 90, 99, 99.9)}
    most, mean = float(values.max()), float(values.mean())
    above = {f"above {limit}": int((values > limit).sum()) for limit in SLOW}
    return {"count": len(times), **quantiles, "mean": mean, "max": most, **above}


def markdown(record: dict[str, Any]) -> str:
    """Return the page."""
    about, runs = record["about"], record["runs"]
    versions = ", ".join(
        f"{name} {version}" for name, version in about["versions"].items() if version
    )
    lines = [
        "# JSON Schemas as MaskBench measures them, side by side",
        "",
        f"{about['date']}; {about['cpu']}, {about['cores']} cores; Python {about['python']};",
        f"{about['vocabulary']}; formalm at {about['commit']}; {versions};",
        f"load averages {about['load_average']} before, {about['load_average_after']} after.",
        "",
        f"One schema of {about['every']} of the development part;",
        f"medians of {len(runs)} runs, in µs of {NAMES[about['clock']]}; {TURNS[about['turns']]}.",
        f"Members in order {about['order']!r}, at most {about['blanks']} blanks in a gap of ours,",
        f"layout {about['layout']!r}; the first schema is number {about['first']}.",
        *chosen(about),
        "Times are compared on schemas that the peer compiles; ours on the others stand beside.",
        f"Between masks {record['idle']['p50']:.2f} µs are the clock's and the loop's, as an",
        "engine that does nothing has them; the net ratio is without them on both sides.",
    ]
    for peer in runs[0]["figures"]:
        lines += ["", f"## {peer}", "", *table(runs, peer, record["idle"]["p50"])]
    lines += ["", *slow_masks(runs)]
    kept = runs[0]["memory_bytes"]
    sizes = ", ".join(f"{name} {size / 1e6:.1f}" for name, size in kept.items())
    lines += ["", f"Memory of a schema above the vocabulary, in MB: {sizes}."]
    if runs[0]["solver_seconds"] is not None:
        lines += ["", shared(runs)]
    names = list(runs[0]["verdicts"])
    lines += ["", "| verdict | " + " | ".join(names) + " |", "| --- " * (len(names) + 1) + "|"]
    for verdict in sorted({one for name in names for one in runs[0]["verdicts"][name]}):
        counts = (str(runs[0]["verdicts"][name].get(verdict, 0)) for name in names)
        lines.append(f"| {verdict} | " + " | ".join(counts) + " |")
    if runs[0]["faults"]["formalm"]:
        lines += ["", "Ours that do not pass:", ""]
        lines += [f"- {one}" for one in runs[0]["faults"]["formalm"]]
    return "\n".join(lines) + "\n"


def chosen(about: dict[str, Any]) -> list[str]:
    """Return what is said of the instances and of warm-ups, where they are not the usual ones."""
    lines = []
    if about["instances"] == "first":
        lines.append("Of each schema the first valid instance is read.")
    if about["warm_up"]:
        lines.append(
            f"Our constraints are warmed up for {about['warm_up'] * 1e3:g} ms after the first mask."
        )
    return lines


def told(ratio: float) -> str:
    """Return a ratio as a fraction of one, or as a multiple."""
    return f"1/{1 / ratio:.1f}" if ratio <= 1 else f"{ratio:.2f}"


def table(runs: list[dict[str, Any]], peer: str, idle: float) -> list[str]:
    """Return ours beside a peer's; what is asked for is asked beside llguidance.

    ``idle`` are the µs between two masks that are the measurement's own.
    """
    lines = [
        f"| what | figure | formalm | {peer} | ratio | net ratio | target | |"
        f" ours where {peer} refuses |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    of = [one["figures"][peer] for one in runs if peer in one["figures"]]
    for (what, figure), target in TARGETS.items():
        ours, theirs, other = (
            median([one[who][what].get(figure, 0.0) for one in of])
            for who in ("formalm", peer, "where refused")
        )
        itself = idle if what == "between" else 0.0
        ratio = (ours - itself) / (theirs - itself)
        asked, verdict = "", ""
        if peer == "llguidance":
            asked, verdict = f"1/{1 / target:.0f}", "met" if ratio <= target else "**missed**"
        lines.append(
            f"| {WHAT[what]} | {figure} | {ours:.1f} | {theirs:.1f} | {told(ours / theirs)} |"
            f" {told(ratio)} | {asked} | {verdict} | {other:.1f} |"
        )
    return lines


def slow_masks(runs: list[dict[str, Any]]) -> list[str]:
    """Return how many masks are slow, and our slowest with the place in the text."""
    heads = " | ".join(f"above {limit} µs" for limit in SLOW)
    lines = [f"| peer, and whose masks | masks | {heads} |", "| --- " * (len(SLOW) + 2) + "|"]
    for peer, of in runs[0]["figures"].items():
        measured = [one for one in runs if peer in one["figures"]]
        for who in ("formalm", peer):
            counts = [
                median(
                    [
                        one["figures"][peer][who]["between"].get(f"above {limit}", 0)
                        for one in measured
                    ]
                )
                for limit in SLOW
            ]
            every = of[who]["between"]["count"]
            lines.append(
                f"| {peer}: {who} | {every} | " + " | ".join(f"{n:.0f}" for n in counts) + " |"
            )
    lines += ["", "Our ten slowest masks of the first run:", ""]
    lines += [
        f"- {one['us']:.0f} µs, {one['place']}, {one['schema']}: `{one['before']}` `{one['token']}`"
        for one in runs[0]["slowest"]
    ]
    return lines


def shared(runs: list[dict[str, Any]]) -> str:
    """Return what of our time is the solver's."""

    def whole(one: dict[str, Any]) -> float:
        by = one["figures"]["llguidance"]
        every = [of for who in ("formalm", "where refused") for of in by[who].values()]
        return float(sum(of["count"] * of.get("mean", 0.0) for of in every)) / 1e6

    share = median([one["solver_seconds"] / whole(one) for one in runs])
    return f"The solver has {share:.0%} of our time, first masks and those between together."
