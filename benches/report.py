"""A record of mask measurements as a page of tables."""

from __future__ import annotations

from collections.abc import Iterable
from statistics import mean, median
from typing import Any

from benches.targets import (
    MEGABYTE,
    compile_ratios,
    geometric_mean,
    percentile,
    pooled,
    steady,
    verdicts,
)


def markdown(record: dict[str, Any]) -> str:
    """Return the whole page."""
    parts = [heading(record["about"]), judged(record)]
    for name, vocabulary in record["vocabularies"].items():
        timings, memory = vocabulary["timings"], vocabulary["memory"]
        parts.append(f"## {name}\n")
        parts.append(totals(timings, memory, record["engines"]))
        parts.append(per_pattern(timings, memory, record["engines"]))
        parts.append(disagreements(timings))
    return "\n".join(parts)


def heading(about: dict[str, Any]) -> str:
    """Return where and when the record was made, and how to read it."""
    versions = ", ".join(f"{name} {v}" for name, v in about["versions"].items() if v)
    loads = f"{about['load_average']} before, {about['load_average_after']} after"
    return f"""# Masks of regular expressions, side by side

{about["date"]}; {about["cpu"]}, {about["cores"]} cores, {about["system"]}; Python {about["python"]}
{versions}; formalm at {about["commit"]}{"; QUICK RUN" if about["quick"] else ""}
Load averages: {loads}.

Engines take turns in one process on one thread, called from Python through each one's fastest
bitmask call; llguidance without canonical forcing, XGrammar without its cache of grammars. Times
in µs unless marked. *Steady*: a fill repeated at a state seen before (median over states).
*Return*: the first fill after coming back to a state. *First*: a fill at a state that is new to
the constraint, over members in their canonical tokens and random walks, the same tokens for all.
*Compile*: from the pattern's text to the first mask.
"""


def judged(record: dict[str, Any]) -> str:
    """Return the table of targets."""
    rows = [
        [v.target, v.vocabulary, v.reached, "met" if v.met else "**missed**"]
        for v in verdicts(record)
    ]
    return "## Targets\n\n" + table(["target", "vocabulary", "reached", ""], rows) if rows else ""


def totals(timings: dict[str, Any], memory: dict[str, Any], engines: list[str]) -> str:
    """Return one row per engine, over all patterns."""
    rows = []
    for engine in engines:
        first = pooled(timings, engine, "first_us")
        again = pooled(timings, engine, "again_us")
        prepared = memory[engine]["preparation"]
        seconds = ", ".join(
            f"{way.removesuffix('_seconds')} {by['median']:.3f}"
            for way, by in prepared.items()
            if way.endswith("_seconds")
        )
        ratios = compile_ratios(timings, engine)
        rows.append(
            [
                engine,
                number(steady(timings, engine)),
                number(median(again) if again else None),
                number(mean(first) if first else None),
                number(percentile(first, 0.99) if first else None),
                f"{geometric_mean(list(ratios.values())):.3f}" if ratios else "",
                seconds,
                f"{prepared['resident_bytes'] / MEGABYTE:.0f}",
            ]
        )
    names = ["engine", "steady", "return", "first mean", "first p99", "compile, ours / theirs"]
    return table([*names, "vocabulary, seconds", "vocabulary, MB"], rows)


def per_pattern(timings: dict[str, Any], memory: dict[str, Any], engines: list[str]) -> str:
    """Return one row per pattern; a cell holds an engine's figures."""
    rows = []
    for name, case in timings.items():
        cells = [cell(name, case, memory[engine], engine) for engine in engines]
        rows.append([f"`{name}`", *cells])
    intro = "Cells: compile ; first mean / p99 (new states reached) ; steady ; MB grown.\n\n"
    return intro + table(["pattern", *engines], rows)


def cell(name: str, case: dict[str, Any], memory: dict[str, Any], engine: str) -> str:
    """Return an engine's figures for a pattern."""
    if engine in case["left_out"]:
        return str(case["left_out"][engine]).splitlines()[0][:60].replace("|", "\\|")
    first = case["first_fill"][engine]
    times = first["first_us"]
    grown = memory["constraints"].get(name, {}).get("resident_bytes")
    reached, every = sum(first["reached"]), len(first["reached"])
    places = f"{every}" if reached == every else f"**{reached} of {every}**"
    steady_us = median(case["steady_us"][engine]) if case["steady_us"][engine] else None
    return (
        f"{number(case['compile'][engine]['median_us'])} ; "
        f"{number(mean(times) if times else None)} / "
        f"{number(percentile(times, 0.99) if times else None)} ({places}) ; "
        f"{number(steady_us)} ; {number(None if grown is None else grown / MEGABYTE)}"
    )


def disagreements(timings: dict[str, Any]) -> str:
    """Return where an engine's allowed set differs from the first engine's."""
    lines = []
    for name, case in timings.items():
        for engine, compared in case["compared"].items():
            missed = compared["compared"] - compared["equal"]
            if missed:
                shown = "; ".join(difference(entry) for entry in compared["different"][:2])
                lines.append(
                    f"- `{name}`, {engine}: {missed} of {compared['compared']} positions. {shown}"
                )
    head = "Allowed sets that differ from ours:\n\n"
    return head + "\n".join(lines or ["none"]) + "\n"


def difference(entry: dict[str, Any]) -> str:
    """Return one differing position in words."""
    where = f"after `{entry['after']}`"
    if entry.get("unreached"):
        return f"{where} not reached: an earlier token was refused"
    parts = [
        f"{label} {entry[key]['count']} (`{'` `'.join(entry[key]['pieces'])}`)"
        for label, key in (("only ours", "only_ours"), ("only theirs", "only_theirs"))
        if entry[key]["count"]
    ]
    return f"{where} {', '.join(parts)}"


def number(value: float | None) -> str:
    """Return a figure with about three digits."""
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def table(names: list[str], rows: Iterable[list[str]]) -> str:
    """Return a Markdown table."""
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines) + "\n"
