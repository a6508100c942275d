"""Canonical masks inside values of common types, prepared with the vocabulary and not.

Run as ``python -m benches.canonical_types``; writes ``records/canonical_types-DATE.md`` and the
``.json`` beside it. A vocabulary is saved with ``canonical=True`` and with ``types=True``. In each
of two new processes per file, a schema of all types is read for the first time, and then another
one with other names. One thread; all times are processor time of that thread.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

from benches.canonical import timed
from benches.machine import ONE_THREAD, ROOT, describe
from benches.writing import origin, write

NAMES = ["gpt2-50k", "cl100k", "o200k", "llama3-128k", "deepseek-129k", "qwen-152k"]
#: Types of values, with two values each.
TYPES: dict[str, tuple[dict[str, str], list[object]]] = {
    "string": ({"type": "string"}, ["It's 12 o'clock, over the lazy dog.", "don't \n 3.5 café"]),
    "number": ({"type": "number"}, [-12.75, 1024.5]),
    "integer": ({"type": "integer"}, [140791, -33]),
    "boolean": ({"type": "boolean"}, [True, False]),
    "date": ({"type": "string", "format": "date"}, ["2024-01-31", "1969-07-20"]),
    "time": ({"type": "string", "format": "time"}, ["12:30:45.25+02:00", "09:12:01Z"]),
    "date-time": (
        {"type": "string", "format": "date-time"},
        ["1999-12-24T23:01:02Z", "2031-10-02T07:40:59-08:00"],
    ),
    "uuid": (
        {"type": "string", "format": "uuid"},
        ["123e4567-e89b-12d3-a456-426614174000", "00a1b2c3-d4e5-4f60-8791-a2b3c4d5e6f7"],
    ),
    "email": (
        {"type": "string", "format": "email"},
        ["ada.lovelace@mail.example.com", "bob_x@y2.org"],
    ),
}
#: Processes of which the median is taken.
PROCESSES = 3


def first_visits(path: str) -> dict[str, Any]:
    """Return the times of masks along two schemas over a saved vocabulary, in microseconds."""
    from formalm import Constraint, JsonSchema, Vocabulary
    from formalm.bitmask import new_bitmask

    vocabulary, loading = timed(Vocabulary.load, path)
    encoder, more = timed(vocabulary.encoder)
    out = new_bitmask(1, len(vocabulary))
    figures: dict[str, Any] = {"load": 1e3 * (loading + more), "schemas": []}
    for at, prefix in enumerate(("a_", "its_")):
        fields = {prefix + name: schema for name, (schema, _) in TYPES.items()}
        values = {prefix + name: values[at] for name, (_, values) in TYPES.items()}
        schema = {"type": "object", "properties": fields, "required": list(fields)}
        language = JsonSchema(schema | {"additionalProperties": False})
        text = json.dumps(values, ensure_ascii=False)
        matcher = Constraint(language, vocabulary, tokenization="canonical").matcher()
        spans = {}
        for name, value in values.items():
            written = json.dumps(value, ensure_ascii=False)
            start = len(text[: text.index(f'"{name}": ')].encode()) + len(name.encode()) + 4
            spans[name.removeprefix(prefix)] = range(start + 1, start + len(written.encode()))
        times: dict[str, list[float]] = {name: [] for name in [*TYPES, "between"]}
        missed = encoder.part_counts[2]
        read = 0
        for token in encoder.encode(text):
            inside = (name for name, span in spans.items() if read in span)
            times[next(inside, "between")].append(1e6 * timed(matcher.fill_bitmask, out)[1])
            matcher.advance(token)
            read += len(vocabulary.token_bytes(token))
        assert matcher.is_accepting
        missed = encoder.part_counts[2] - missed
        figures["schemas"].append({"times": times, "missed": missed})
    return figures


def measure(data: bytes) -> dict[str, Any]:
    """Return the figures of one tokenizer."""
    from formalm import Vocabulary

    vocabulary = Vocabulary.from_tokenizer_json(data)
    figures: dict[str, Any] = {"tokens": len(vocabulary)}
    with tempfile.TemporaryDirectory() as folder:
        for way in ("canonical", "types"):
            path = Path(folder) / way
            start = process_time()
            vocabulary.save(path, **{way: True})
            saving = process_time() - start
            command = [sys.executable, "-m", "benches.canonical_types", "--read", str(path)]
            runs = [
                json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
                for _ in range(PROCESSES)
            ]
            figures[way] = {"save_s": saving, "bytes": path.stat().st_size, **combined(runs)}
    return figures


def combined(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the medians of several processes."""
    return {
        "load_ms": median(run["load"] for run in runs),
        "missed": [one["missed"] for one in runs[0]["schemas"]],
        "schemas": [
            {
                name: {
                    "masks": len(runs[0]["schemas"][at]["times"][name]),
                    "sum": median(sum(run["schemas"][at]["times"][name]) for run in runs),
                    "most": median(
                        max(run["schemas"][at]["times"][name], default=0.0) for run in runs
                    ),
                }
                for name in [*TYPES, "between"]
            }
            for at in range(2)
        ],
    }


def page(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    about = record["about"]
    lines = [
        "# Canonical masks inside common types",
        "",
        *origin(about, about["load_average_after"]),
        "",
        "One thread; processor time of that thread, medians of three processes. *Plain*: the",
        "vocabulary was saved with `canonical=True`; *prepared*: with `types=True`. *Saving*",
        "includes taking the tokenizer apart. A process loads the file and reads a document of a",
        "schema with all types, then one of another schema with other names and values. The sum",
        "of all masks inside the values of a type and the longest of them, in µs; *between*: all",
        "other masks. A Boolean value is one token of these tokenizers, so nothing is inside.",
        "*Missed*: positions inside types, in both schemas, that are not prepared.",
        "",
    ]
    for name, one in record["tokenizers"].items():
        plain, prepared = one["canonical"], one["types"]
        lines += [
            f"## {name}",
            "",
            f"Saving {plain['save_s']:.2f} s plain, then {prepared['save_s']:.2f} s more; file"
            f" {plain['bytes'] / 1e6:.1f} MB, {prepared['bytes'] / 1e6:.1f} MB; loading"
            f" {plain['load_ms']:.0f} ms, {prepared['load_ms']:.0f} ms; missed"
            f" {sum(prepared['missed'])}.",
            "",
            "| type | masks | plain: sum | most | prepared: sum | most "
            "| second schema, masks | plain: sum | most | prepared: sum | most |",
            "| --- |" + " ---: |" * 10,
        ]
        for kind in [*TYPES, "between"]:
            cells = []
            for at in range(2):
                both = [way["schemas"][at][kind] for way in (plain, prepared)]
                cells.append(str(both[0]["masks"]))
                cells += [f"{way[part]:.0f}" for way in both for part in ("sum", "most")]
            lines.append(f"| {kind} | " + " | ".join(cells) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizers", type=Path, default=ROOT.parent / "shared" / "tokenizers")
    parser.add_argument("--only", nargs="+", default=NAMES)
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    parser.add_argument("--read", help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)
    if options.read:
        json.dump(first_visits(options.read), sys.stdout)
        return
    record: dict[str, Any] = {"about": describe(), "tokenizers": {}}
    for name in options.only:
        path = options.tokenizers / f"{name}.json.gz"
        if not path.exists():
            sys.stderr.write(f"left out, not there: {path}\n")
            continue
        record["tokenizers"][name] = measure(gzip.decompress(path.read_bytes()))
        record["about"]["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
        sys.stderr.write(f"{name} done\n")
    if record["tokenizers"]:
        write(options.output, "canonical_types", record, page(record), indent=1)
        sys.stdout.write(page(record))


if __name__ == "__main__":
    main()
