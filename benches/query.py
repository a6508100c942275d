"""What questions to a model cost: caches, bookkeeping, planted URLs, the mass of dates.

Run as ``python -m benches.query``; writes ``records/query-DATE.md`` and the ``.json`` beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from benches import query_canary, query_frontier
from benches.machine import ONE_THREAD, ROOT, describe
from benches.writing import origin

TOKENIZER = ROOT / ".." / "shared" / "tokenizers" / "gpt2-50k.json.gz"
LARGE = TOKENIZER.with_name("llama3-128k.json.gz")
FORWARDS = 2000
PARTS = ("mass", "urls", "frontier", "growth")


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--tokenizer", type=Path, default=TOKENIZER, help="GPT-2's")
    parser.add_argument("--large", type=Path, default=LARGE, help="Llama 3's, for growth")
    parser.add_argument("--forwards", type=int, default=100_000, help="most of growth")
    parser.add_argument("--results", type=int, default=1000, help="hits of the frontier's search")
    parser.add_argument("--alone", type=int, default=100, help="contexts evaluated alone")
    parser.add_argument("--seconds", type=float, help="where the frontier's search stops")
    parser.add_argument("--urls", type=int, default=4, help="hits of the search for URLs")
    parser.add_argument("--batches", type=int, default=10, help="of 64 samples, a stop length")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    options = parser.parse_args()
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        # Threads that wait for each other would count as work.
        again = [sys.executable, "-m", "benches.query", *sys.argv[1:]]
        os.execve(sys.executable, again, os.environ | ONE_THREAD)  # noqa: S606
    if "frontier" in options.only and not options.tokenizer.exists():
        sys.exit(f"no tokenizer at {options.tokenizer}")
    stem = options.output / f"query-{datetime.now(timezone.utc):%Y-%m-%d}"
    kept = stem.with_suffix(".json")
    # Parts that were measured the same day and are not asked for stay.
    record: dict[str, Any] = json.loads(kept.read_text()) if kept.exists() else {}
    measures = {
        "frontier": lambda: query_frontier.frontier(
            options.tokenizer, options.results, options.alone, options.seconds
        ),
        "growth": lambda: query_frontier.growth(options.large, options.forwards),
        "urls": lambda: query_canary.urls(options.urls, options.batches),
        "mass": lambda: query_canary.date_mass(FORWARDS),
    }
    for name in options.only:
        about = describe()
        record[name] = {"result": measures[name](), "about": about}
        record[name]["load_after"] = describe()["load_average"]
    text = page(record)
    kept.write_text(json.dumps(record, indent=1) + "\n")
    stem.with_suffix(".md").write_text(text)
    sys.stdout.write(text)


def page(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    lines = ["# Questions to a model", ""]
    lines += ["A *forward* is one prefix evaluated, a *call* one batch of them.", ""]
    makers: dict[str, Callable[[Any], list[str]]] = {
        "frontier": query_frontier.frontier_lines,
        "growth": query_frontier.growth_lines,
        "urls": query_canary.url_lines,
        "mass": lambda result: query_canary.mass_lines(result, FORWARDS),
    }
    for name, make in makers.items():
        if name in record:
            lines += [
                *make(record[name]["result"]),
                *origin(record[name]["about"], record[name]["load_after"]),
                "",
            ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
