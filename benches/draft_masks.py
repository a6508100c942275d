"""Masks of draft tokens: 256 sequences with drafts of 8 tokens, beside llguidance's native call.

Run it where llguidance is installed: ``python -m benches.draft_masks TOKENIZER_JSON [--out
records]``. The
sequences are at positions of documents of JSON Schemas, drafts are the documents' next tokens, and
all states were visited before. The two take turns; times are the median of the rounds.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import time
from importlib import metadata
from pathlib import Path
from typing import Any

from benches.machine import describe
from benches.writing import origin, write
from formalm import Constraint, JsonSchema, Vocabulary, new_bitmask
from formalm.constraint import fill_draft

SEQUENCES, DRAFT, ROUNDS = 256, 8, 15
SCHEMA = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 40},
        "tags": {"type": "array", "items": {"enum": ["red", "green", "blue"]}},
        "size": {"type": "integer", "minimum": 0},
        "inner": {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]},
    },
    "required": ["name", "tags", "size", "inner"],
    "additionalProperties": False,
}


def document(number: int) -> str:
    """Returns a text of the schema."""
    value = {
        "name": f"item number {number}",
        "tags": ["red", "green", "blue"][: number % 4],
        "size": number * 7919,
        "inner": {"ok": number % 2 == 0},
    }
    return json.dumps(value, separators=(",", ":"))


def measured(path: str) -> tuple[int, int, dict[str, list[float]]]:
    """Returns the number of tokens, the number of rows, and the seconds of each call."""
    import llguidance
    import torch
    from llguidance.torch import fill_next_token_bitmask_par_with_draft_tokens

    data = Path(path).read_bytes()
    text = gzip.decompress(data) if path.endswith(".gz") else data
    vocabulary = Vocabulary.from_tokenizer_json(text, end_token_ids=None)
    constraint = Constraint(JsonSchema(SCHEMA, max_whitespace=0), vocabulary)
    theirs = llguidance.LLTokenizer(text.decode(), n_vocab=len(vocabulary))
    grammar = llguidance.LLMatcher.grammar_from_json_schema(
        json.dumps(SCHEMA), defaults={"whitespace_flexible": False}
    )
    matchers, drafts, others = [], [], []
    for number in range(SEQUENCES):
        ids = vocabulary.encode(document(number))
        start = number * 5 % max(1, len(ids) - DRAFT)
        matcher, other = constraint.matcher(), llguidance.LLMatcher(theirs, grammar)
        assert matcher.advance_many(ids[:start]) == start
        assert other.consume_tokens(ids[:start])
        matchers.append(matcher)
        others.append(other)
        drafts.append(ids[start : start + DRAFT])
    rows = sum(len(draft) + 1 for draft in drafts)
    out = new_bitmask(rows, constraint.width)
    mask = torch.zeros((rows, out.shape[1]), dtype=torch.int32)
    executor = llguidance.LLExecutor(num_threads=2)
    starts = [0]
    for draft in drafts[:-1]:
        starts.append(starts[-1] + len(draft) + 1)
    entries = list(zip(others, starts, drafts, strict=True))

    def ours() -> None:
        fill_draft(matchers, drafts, out)

    def peer() -> None:
        fill_next_token_bitmask_par_with_draft_tokens(executor, entries, mask)

    times: dict[str, list[float]] = {"formalm": [], "llguidance": []}
    calls: list[tuple[str, Any]] = [("formalm", ours), ("llguidance", peer)]
    for round_number in range(ROUNDS + 2):
        for name, call in calls:
            begun = time.perf_counter()
            call()
            if round_number >= 2:
                times[name].append(time.perf_counter() - begun)
    return len(vocabulary), rows, times


def main() -> None:
    """Measures both, and writes a record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer", help="a tokenizer.json, plain or gzipped")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    about = describe()
    tokens, rows, times = measured(options.tokenizer)
    title = f"{SEQUENCES} sequences, {rows} rows, {tokens:,} tokens, states seen before."
    lines = ["| call | median ms | least | most |", "| --- | --- | --- | --- |"]
    for name, seconds in times.items():
        numbers = (statistics.median(seconds), min(seconds), max(seconds))
        lines.append(f"| {name} | " + " | ".join(f"{one * 1e3:.2f}" for one in numbers) + " |")
    median = {name: statistics.median(seconds) for name, seconds in times.items()}
    lines += ["", f"llguidance / formalm: {median['llguidance'] / median['formalm']:.1f}"]
    print(title, *lines, sep="\n")
    if options.out is not None:
        record = {
            "about": about,
            "llguidance": metadata.version("llguidance"),
            "tokenizer": Path(options.tokenizer).name,
            "sequences": SEQUENCES,
            "draft": DRAFT,
            "rows": rows,
            "seconds": times,
        }
        load = [round(one, 2) for one in os.getloadavg()]
        page = ["# Masks of draft tokens", "", *origin(about, load), title, "", *lines]
        write(options.out, "draft_masks", record, "\n".join(page) + "\n")


if __name__ == "__main__":
    main()
