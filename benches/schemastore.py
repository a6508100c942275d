"""Times on real schemas of configuration files: compilation, first masks and masks.

Run as ``python -m benches.schemastore``; writes ``records/schemastore-DATE.md`` and the ``.json``
beside it. Each schema is compiled with properties in any order and without whitespace; its first
mask is filled; then each instance is cut into tokens, and for every token a mask is filled and the
token read, until one is refused. Times are CPU times of the thread, or those on the wall
(``--clock wall``). Schemas that refer to others, which are not fetched, are counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from benches.cases import load_vocabulary
from benches.clocks import CLOCKS, NAMES
from benches.machine import ROOT, describe
from benches.maskbench_page import summary
from benches.schema_engines import Ours
from benches.writing import origin, write
from formalm import LanguageError, LimitError

#: Most milliseconds that are asked for: what is measured, and at which quantile.
TARGETS = {"compile": ("p99", 20.0), "first": ("p99", 0.5), "masks": ("p99.9", 5.0)}
#: So many of the slowest are named.
NAMED = 12


def main() -> None:
    """Measure, then write the record."""
    arguments = parse()
    vocabulary = load_vocabulary(arguments.vocabulary, arguments.shared / "tokenizers")
    tokenizer = Tokenizer.from_str(vocabulary.json)
    engine = Ours(vocabulary)
    about = {**describe(), "vocabulary": arguments.vocabulary, "clock": arguments.clock}
    clock = CLOCKS[arguments.clock]
    schemas, refused = [], []
    gc.disable()
    for case in cases(arguments.shared):
        try:
            schemas.append(measured(case, engine, tokenizer, clock))
        except (LanguageError, LimitError) as error:
            refused.append((case["name"], str(error).splitlines()[0]))
    gc.enable()
    about["load_average_after"] = [round(one, 2) for one in os.getloadavg()]
    times = {
        "compile": [one["compile"] for one in schemas],
        "first": [one["first"] for one in schemas],
        "masks": [time for one in schemas for time in one["masks"]],
    }
    record = {
        "about": about,
        "times_us": {name: summary(list(each)) for name, each in times.items()},
        "slowest_masks": slowest(schemas, lambda one: max(one["masks"], default=0)),
        "slowest_compile": slowest(schemas, lambda one: one["compile"]),
        "refused": refused,
    }
    page = markdown(record)
    write(arguments.output, "schemastore", record, page)
    sys.stdout.write(page)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", default="llama3-128k")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="cpu")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    return parser.parse_args()


def cases(shared: Path) -> list[dict[str, Any]]:
    """Return the schemas with their instances."""
    with lzma.open(shared / "schemastore" / "dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def measured(
    case: dict[str, Any], engine: Ours, tokenizer: Tokenizer, clock: Callable[[], int]
) -> dict[str, Any]:
    """Return the nanoseconds that one schema takes."""
    schema = json.dumps(case["schema"])
    bits = np.zeros(engine.bits().shape, dtype=np.int32)
    begun = clock()
    constraint = engine.compile(schema)
    matcher = constraint.matcher()
    compiled = clock()
    matcher.fill_bitmask(bits)
    first = clock()
    masks = []
    for test in case["tests"]:
        text = json.dumps(test["data"], separators=(",", ":"), ensure_ascii=False)
        matcher = constraint.matcher()
        for at, token_id in enumerate(tokenizer.encode(text, add_special_tokens=False).ids):
            before = clock()
            matcher.fill_bitmask(bits)
            if at:
                masks.append(clock() - before)
            if not bits[token_id >> 5] >> (token_id & 31) & 1:
                break
            matcher.advance(token_id)
    times = {"compile": compiled - begun, "first": first - compiled, "masks": masks}
    return {"name": case["name"], **times}


def slowest(
    schemas: list[dict[str, Any]], time: Callable[[dict[str, Any]], int]
) -> list[tuple[str, float]]:
    """Return names with milliseconds, the slowest first."""
    named = [(one["name"], round(time(one) / 1e6, 3)) for one in schemas]
    return sorted(named, key=lambda one: -one[1])[:NAMED]


def markdown(record: dict[str, Any]) -> str:
    """Return the page."""
    about = record["about"]
    lines = [
        "# Real schemas of configuration files",
        "",
        *origin(about, about["load_average_after"]),
        "",
        f"{NAMES[about['clock']]}, {about['vocabulary']}, in ms.",
        "",
        "| | count | p50 | p99 | p99.9 | max | asked for |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, figures in record["times_us"].items():
        quantile, most = TARGETS[name]
        told = " | ".join(f"{figures[one] / 1e3:.3f}" for one in ("p50", "p99", "p99.9", "max"))
        verdict = "met" if figures[quantile] / 1e3 <= most else "missed"
        lines.append(
            f"| {name} | {figures['count']} | {told} | {quantile} ≤ {most:g} ({verdict}) |"
        )
    for title, key in (("masks", "slowest_masks"), ("compilation", "slowest_compile")):
        named = ", ".join(f"{name} {time:g}" for name, time in record[key])
        lines += ["", f"Slowest {title}: {named}."]
    lines += ["", f"Refused: {len(record['refused'])}.", ""]
    lines += [f"- {name}: {why}" for name, why in record["refused"]]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
