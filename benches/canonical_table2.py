"""Table 2 of "Fast, High-Fidelity LLM Decoding with Regex Constraints", beside ours.

Run as ``python -m benches.canonical_table2``; writes ``records/canonical_table2-DATE.md`` and the
``.json`` beside it. The article took JSON texts of a data set of function calls as patterns; here,
1,000 function calls from a seed, as the texts that they are and as patterns with typed values. One
thread; all times are processor time of that thread.
"""

from __future__ import annotations

import argparse
import gzip
import os
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import mean
from typing import Any

import numpy as np

from benches.canonical import timed
from benches.documents import random_call
from benches.machine import ONE_THREAD, ROOT, describe
from benches.writing import origin, write

NAMES = ["mistral-v1-32k", "llama3-128k", "o200k"]
CALLS = 1000
#: Seconds of the article's four steps.
ARTICLE = (20.9, 0.687, 27.3, 0.00153)


def measure(data: bytes, calls: int) -> dict[str, Any]:
    """Return the seconds of each step with one tokenizer."""
    from formalm import Constraint, Regex, Vocabulary, _core
    from formalm.bitmask import new_bitmask

    vocabulary: Any = Vocabulary.from_tokenizer_json(data)
    relation = timed(_core.Encoder, data, vocabulary.core)[1]
    space = " " if vocabulary.encoder().prepends_space else ""
    out = new_bitmask(1, len(vocabulary))
    figures: dict[str, Any] = {"tokens": len(vocabulary), "relation": relation}
    for way in ("text", "typed"):
        chance = random.Random(3)
        compiles: list[float] = []
        visits: list[float] = []
        first: list[float] = []
        again: list[float] = []
        for _ in range(calls):
            pattern, text = random_call(chance)
            language = Regex(space + (re.escape(text) if way == "text" else pattern))
            constraint, seconds = timed(
                lambda language=language: Constraint(language, vocabulary, tokenization="canonical")
            )
            compiles.append(seconds)
            tokens = vocabulary.encoder().encode(space + text)
            for times in (first, again):
                matcher = constraint.matcher()
                for token in tokens:
                    times.append(timed(matcher.fill_bitmask, out)[1])
                    matcher.advance(token)
                times.append(timed(matcher.fill_bitmask, out)[1])
                assert matcher.is_accepting
            visits.append(sum(first[-len(tokens) - 1 :]))
        figures[way] = {
            "compile": mean(compiles),
            "visits": mean(visits),
            "first": mean(first),
            "first_p99": float(np.percentile(first, 99)),
            "again": mean(again),
            "tokens": len(first) / calls,
        }
    return figures


def page(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    about = record["about"]
    lines = [
        "# Canonical tokens of function calls: the article's Table 2",
        "",
        *origin(about, about["load_average_after"]),
        "",
        f"{record['calls']} function calls made from a seed. *Text*: the pattern is the call",
        "itself; *typed*: names are fixed and values typed. Means, in milliseconds of processor",
        "time on one thread. The article's column is as printed, on its machine and data, with",
        "Mistral-7B's tokenizer.",
        "",
        "Step 1 takes the tokenizer apart; step 2 compiles the pattern. The article's step 3 finds",
        "the pairs of states from which a member can be completed, all of them in advance. Here,",
        "they are found where a text goes, within its first masks; so the row has the time of all",
        "masks of one call, when each is new. Step 4 is a mask that was made before.",
        "",
        "| step | article, ms | "
        + " | ".join(f"{name}: text | typed" for name in record["tokenizers"])
        + " |",
        "| --- | ---: |" + " ---: | ---: |" * len(record["tokenizers"]),
    ]
    rows: list[tuple[str, Callable[[dict[str, Any], str], float]]] = [
        ("1: canonical tokens of the tokenizer, once", lambda one, _: one["relation"]),
        ("2: the pattern", lambda one, way: one[way]["compile"]),
        (
            "3: pairs of states, here those that one call visits",
            lambda one, way: one[way]["visits"],
        ),
        ("4: a mask, as each decoding step needs it", lambda one, way: one[way]["again"]),
    ]
    for (title, cell), printed in zip(rows, ARTICLE, strict=True):
        cells = [
            f"{1e3 * cell(one, way):.4g}"
            for one in record["tokenizers"].values()
            for way in ("text", "typed")
        ]
        lines.append(f"| {title} | {1e3 * printed:,g} | " + " | ".join(cells) + " |")
    for title, key in (("mean", "first"), ("99th percentile", "first_p99")):
        cells = [
            f"{1e3 * one[way][key]:.4g}"
            for one in record["tokenizers"].values()
            for way in ("text", "typed")
        ]
        lines.append(f"| a mask when it is new, {title} | – | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizers", type=Path, default=ROOT.parent / "shared" / "tokenizers")
    parser.add_argument("--only", nargs="+", default=NAMES)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)
    record: dict[str, Any] = {"about": describe(), "calls": options.calls, "tokenizers": {}}
    for name in options.only:
        path = options.tokenizers / f"{name}.json.gz"
        if not path.exists():
            sys.stderr.write(f"left out, not there: {path}\n")
            continue
        record["tokenizers"][name] = measure(gzip.decompress(path.read_bytes()), options.calls)
        record["about"]["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
        sys.stderr.write(f"{name} done\n")
    if record["tokenizers"]:
        write(options.output, "canonical_table2", record, page(record), indent=1)
        sys.stdout.write(page(record))


if __name__ == "__main__":
    main()
