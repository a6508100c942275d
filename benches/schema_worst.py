"""JSON Schemas at their worst: large ones, long ones, and alternatives that overlap.

Run as ``python -m benches.schema_worst``; writes ``records/schema_worst-DATE.md`` and the
``.json`` beside it. Each schema is compiled and its first mask filled, then members of it are cut
into tokens and masks filled along them. Times are CPU times of the thread.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from benches.cases import load_vocabulary
from benches.machine import ROOT, describe
from benches.schema_engines import Ours
from benches.writing import write

#: Milliseconds to the first mask, for schemas of megabytes, and of the slowest masks but one of
#: a hundred; members are as many as give some hundred masks.
FIRST, FIRST_OF_MEGABYTES, P99 = 50.0, 500.0, 1.0


def main() -> None:
    """Measure, then write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", default="llama3-128k")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    arguments = parser.parse_args()
    vocabulary = load_vocabulary(arguments.vocabulary, arguments.shared / "tokenizers")
    engine, tokenizer = Ours(vocabulary), Tokenizer.from_str(vocabulary.json)
    about = {**describe(), "vocabulary": arguments.vocabulary}
    gc.disable()
    # The first schema pays for the tables of the vocabulary.
    measured(engine, tokenizer, *next(cases()))
    wanted = [one for one in cases() if not arguments.only or one[0] in arguments.only]
    results = [measured(engine, tokenizer, *one) for one in wanted]
    about["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
    record = {"about": about, "results": results}
    page = markdown(record)
    write(arguments.output, "schema_worst", record, page)
    sys.stdout.write(page)


def compact(value: object) -> str:
    """Return a JSON text without blanks."""
    return json.dumps(value, separators=(",", ":"))


def kinds(count: int, *, last: bool, closed: bool) -> dict[str, Any]:
    """Return alternatives that a constant member tells apart."""

    def one(number: int) -> dict[str, Any]:
        kind = {"kind": {"const": f"k{number}"}}
        types = ("string", "integer")
        rest = {f"p{at}": {"type": types[(number + at) % 2]} for at in range(5)}
        properties = {**rest, **kind} if last else {**kind, **rest}
        more = {"required": ["kind"], "additionalProperties": not closed}
        return {"type": "object", "properties": properties, **more}

    return {"oneOf": [one(number) for number in range(count)]}


def conditions(count: int) -> dict[str, Any]:
    """Return a chain of conditions on a constant member."""

    def one(number: int) -> dict[str, Any]:
        kind = {"properties": {"kind": {"const": f"k{number}"}}, "required": ["kind"]}
        then = {"properties": {"p": {"maxLength": number + 5}}, "required": [f"q{number}"]}
        return {"if": kind, "then": then}

    kinds = {"kind": {"type": "string"}}
    return {"type": "object", "properties": kinds, "allOf": [one(at) for at in range(count)]}


def tools(count: int) -> dict[str, Any]:
    """Return alternatives like the calls of tools."""
    types = ("string", "integer", "boolean")

    def one(number: int) -> dict[str, Any]:
        of = {f"a{at}": {"type": types[(number + at) % 3]} for at in range(4)}
        closed = {"type": "object", "additionalProperties": False}
        arguments = {**closed, "properties": of, "required": ["a0"]}
        properties = {"name": {"const": f"tool_{number}"}, "arguments": arguments}
        return {**closed, "properties": properties, "required": ["name", "arguments"]}

    return {"anyOf": [one(number) for number in range(count)]}


def megabytes(count: float) -> dict[str, Any]:
    """Return a schema of so many megabytes."""
    field = {"type": "string", "description": "y" * 60, "maxLength": 100}
    fields = {f"f{at}": field for at in range(8)}
    one = {"type": "object", "description": "x" * 120, "properties": fields, "required": ["f0"]}
    number = int(count * 1e6 / len(json.dumps(one)))
    return {"type": "object", "properties": {f"prop{at}": one for at in range(number)}}


def cases() -> Iterator[tuple[str, object, list[str]]]:
    """Yield name, schema and members."""
    values = [{"a": "b" * at, "c": [at, "x"], f"d{at}": True, "e": {"f": None}} for at in range(12)]
    yield "any value", {}, [compact(one) for one in values]
    text = "lorem ipsum " * 200
    yield "maxLength 100,000", {"type": "string", "maxLength": 100_000}, [compact(text)]
    texts = [f"value-{at * 7919 % 10007}-{at}" for at in range(10_000)]
    yield "enum of 10,000 texts", {"enum": texts}, [compact(one) for one in texts[::333]]
    numbers = [at * 37 for at in range(10_000)]
    chosen = [compact(one) for one in numbers[::111]]
    yield "enum of 10,000 numbers", {"enum": numbers}, chosen
    calls = [
        {"name": f"tool_{at}", "arguments": {"a0": ("x", 1, True)[at % 3]}}
        for at in range(0, 400, 20)
    ]
    yield "400 tools, name first", tools(400), [compact(call) for call in calls]
    turned = [compact(dict(reversed(call.items()))) for call in calls]
    yield "400 tools, name last", tools(400), turned
    unique = {"type": "array", "uniqueItems": True}
    items = [compact(list(range(200))), compact([f"item {at}" for at in range(200)])]
    yield "200 distinct integers", {**unique, "items": {"type": "integer"}}, items[:1]
    yield "200 distinct strings", {**unique, "items": {"type": "string"}}, items[1:]
    yield (
        "1,000 distinct integers",
        {**unique, "items": {"type": "integer"}},
        [compact([*range(1000)])],
    )
    mixed = [at * 617 % 1000 for at in range(1000)]
    yield "the same, mixed", {**unique, "items": {"type": "integer"}}, [compact(mixed)]
    called = [{f"prop{at}": {"f0": "x", "f1": "y"}, "prop40": {"f0": "abc"}} for at in range(20)]
    yield "5 MB", megabytes(5), [compact(one) for one in called]
    for last, where in ((False, "first"), (True, "last")):
        both = [{"kind": f"k{at}", "p0": 1 if at % 2 else "x"} for at in range(50)]
        members = [compact(dict(reversed(one.items())) if last else one) for one in both]
        yield f"50 kinds, told {where}", kinds(50, last=last, closed=True), members
    told = [{"kind": f"k{at}", "p": "abc", f"q{at}": True} for at in range(50)]
    yield "50 conditions, told first", conditions(50), [compact(one) for one in told]
    backwards = [compact(dict(reversed(one.items()))) for one in told]
    yield "50 conditions, told last", conditions(50), backwards
    overlapping: dict[str, object]
    overlapping = {"oneOf": [{"type": "object", "required": [f"r{at}"]} for at in range(50)]}
    named = [compact({"x": 1, f"r{at}": 2, "y": "z"}) for at in range(50)]
    yield "50 names, one of them", overlapping, named
    ranges = [{"minimum": at * 10, "maximum": at * 10 + 15} for at in range(50)]
    members_of = [{"properties": {"n": one}, "required": ["n"]} for one in ranges]
    overlapping = {"type": "object", "oneOf": members_of}
    within = [compact({"n": at * 10 + 7, "y": "z"}) for at in range(50)]
    yield "50 overlapping ranges", overlapping, within


def measured(
    engine: Ours, tokenizer: Any, name: str, schema: object, texts: list[str]
) -> dict[str, Any]:
    """Return the figures of one schema, in ms and MB."""
    source = json.dumps(schema)
    start = thread_time_ns()
    try:
        constraint = engine.compile(source)
        engine.fill(engine.start(constraint))()
    except Exception as error:
        return {"name": name, "error": str(error), "first": (thread_time_ns() - start) / 1e6}
    first = (thread_time_ns() - start) / 1e6
    times: list[float] = []
    for text in texts:
        cursor = engine.start(constraint)
        fill, bits = engine.fill(cursor), engine.bits()
        for token in tokenizer.encode(text, add_special_tokens=False).ids:
            start = thread_time_ns()
            fill()
            if not int(bits[token >> 5]) >> (token & 31) & 1:
                return {"name": name, "error": f"{text[:60]} is refused", "first": first}
            engine.advance(cursor, token)
            times.append((thread_time_ns() - start) / 1e6)
        if not engine.accepts(cursor):
            return {"name": name, "error": f"{text[:60]} is not accepted", "first": first}
    quantiles = {f"p{q}": float(np.percentile(times, q)) for q in (50, 99, 100)}
    quantiles["masks"] = len(times)
    memory = constraint.memory_bytes / 1e6
    size = len(source)
    return {"name": name, "bytes": size, "first": first, **quantiles, "memory_mb": memory}


def markdown(record: dict[str, Any]) -> str:
    """Return the page."""
    about = record["about"]
    lines = [
        "# JSON Schemas at their worst",
        "",
        f"{about['date']}; {about['cpu']}, {about['cores']} cores; Python {about['python']};",
        f"{about['vocabulary']}; formalm at {about['commit']};",
        f"load averages {about['load_average']} before, {about['load_average_after']} after.",
        "",
        "Time to the first mask and of masks along members, tokens read, in ms; MB in the end.",
        "",
        "| schema | kB | first | | masks | p50 | p99 | | slowest | MB |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in record["results"]:
        if "error" in one:
            lines.append(f"| {one['name']} | | {one['first']:.1f} | {one['error']} | | | | | | |")
            continue
        allowed = FIRST if one["bytes"] < 1e6 else FIRST_OF_MEGABYTES
        first = "met" if one["first"] <= allowed else "**missed**"
        masks = "met" if one["p99"] <= P99 else "**missed**"
        lines.append(
            f"| {one['name']} | {one['bytes'] / 1e3:.0f} | {one['first']:.1f} | {first} |"
            f" {one['masks']} | {one['p50']:.3f} | {one['p99']:.2f} | {masks} |"
            f" {one['p100']:.2f} | {one['memory_mb']:.1f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
