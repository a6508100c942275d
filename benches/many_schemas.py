"""What many schemas in one language cost, beside the same schemas alone.

Run as ``python -m benches.many_schemas``; prints a table. Schemas of MaskBench become the arguments
of tools, which are one ``ToolCalls``, one ``anyOf``, one union of schemas, and one grammar whose
rules are schemas; or all schemas are one ``anyOf`` or union without names that tell them apart. A
valid instance of each is read with a new constraint. Each mask that a state asks for first is timed
by the thread's CPU clock, in the arguments only. Instances that an ``anyOf`` refuses because its
alternatives declare other orders are counted. Forms take turns; each row is the median run by its
mean, without the first run, which pays for what the vocabulary makes once.
"""

from __future__ import annotations

import argparse
import gc
import json
import lzma
from collections.abc import Callable, Iterator
from pathlib import Path
from time import thread_time_ns
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from benches.cases import load_vocabulary
from benches.engines import Formalm
from benches.machine import ROOT

#: Separators of texts and schemas.
LINE = (", ", ": ")

#: Options of all schemas.
OPTIONS: dict[str, Any] = {"separators": LINE, "property_order": "schema"}

#: A schema, and an instance of it.
Tool = tuple[Any, Any]


def tools(shared: Path, every: int, first: int) -> Iterator[Tool]:
    """Yield schemas of objects that need no other document or place, with an instance."""
    with lzma.open(shared / "maskbench" / "dev.jsonl.xz", "rt", encoding="utf-8") as lines:
        for at, line in enumerate(lines):
            case = json.loads(line)
            valid = [one["data"] for one in case["tests"] if one["valid"]]
            schema = case["schema"]
            is_alone = isinstance(schema, dict) and '"$ref"' not in line and '"$dynamic' not in line
            if at % every != first or not valid or not isinstance(valid[0], dict) or not is_alone:
                continue
            yield {k: v for k, v in schema.items() if k not in ("$schema", "id", "$id")}, valid[0]


def usable(found: Iterator[Tool], count: int) -> list[Tool]:
    """Return the first tools whose schema accepts the instance."""
    from formalm import FormalmError, JsonSchema

    kept: list[Tool] = []
    for schema, instance in found:
        try:
            accepts = JsonSchema(schema, **OPTIONS).matches(written(instance))
        except FormalmError:
            continue
        if accepts:
            kept.append((schema, instance))
        if len(kept) == count:
            break
    return kept


def written(instance: object) -> str:
    """Return the text of an instance."""
    return json.dumps(instance, separators=LINE, ensure_ascii=False)


def call(number: int, instance: object) -> str:
    """Return a call as a JSON text."""
    return written({"name": f"tool_{number}", "arguments": instance})


def wrapped(number: int, schema: object) -> dict[str, Any]:
    """Return the schema of a call."""
    members = {"name": {"const": f"tool_{number}"}, "arguments": schema}
    return {
        "type": "object",
        "properties": members,
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def forms() -> dict[str, tuple[Callable[[list[Any]], Any], Callable[[int, Any], tuple[str, str]]]]:
    """Languages of a list of schemas, and the parts of a text before and after the arguments."""
    from formalm import CallFormat, Grammar, JsonSchema, ToolCalls

    format = CallFormat(
        '\n{"name": "{name}", "arguments": {arguments}}\n', "<tool_call>", "</tool_call>"
    )

    def tool_calls(schemas: list[Any]) -> Any:
        named = {f"tool_{n}": JsonSchema(s, **OPTIONS) for n, s in enumerate(schemas)}
        return ToolCalls(named, format)

    def any_of(schemas: list[Any]) -> Any:
        calls = [wrapped(n, s) for n, s in enumerate(schemas)]
        return JsonSchema({"anyOf": calls}, **OPTIONS)

    def union(schemas: list[Any]) -> Any:
        whole: Any = JsonSchema(wrapped(0, schemas[0]), **OPTIONS)
        for n, schema in enumerate(schemas[1:], 1):
            whole = whole | JsonSchema(wrapped(n, schema), **OPTIONS)
        return whole

    def bare_any_of(schemas: list[Any]) -> Any:
        return JsonSchema({"anyOf": schemas}, **OPTIONS)

    def bare_union(schemas: list[Any]) -> Any:
        whole: Any = JsonSchema(schemas[0], **OPTIONS)
        for schema in schemas[1:]:
            whole = whole | JsonSchema(schema, **OPTIONS)
        return whole

    def grammar(schemas: list[Any]) -> Any:
        lines = ["start: " + " | ".join(f"tool_{n}" for n in range(len(schemas)))]
        lines += [f'tool_{n}: "tool_{n}(" arguments_{n} ")"' for n in range(len(schemas))]
        lines += [f"%declare arguments_{n}" for n in range(len(schemas))]
        # As %json, which has no options.
        parts = {f"arguments_{n}": JsonSchema(s, **OPTIONS) for n, s in enumerate(schemas)}
        return Grammar("\n".join(lines), languages=parts)

    def as_json(n: int, instance: Any) -> tuple[str, str]:
        before, _, after = call(n, "?").partition('"?"')
        return before, after

    def as_call(n: int, instance: Any) -> tuple[str, str]:
        before, after = as_json(n, instance)
        return f"<tool_call>\n{before}", f"{after}\n</tool_call>"

    def in_rule(n: int, instance: Any) -> tuple[str, str]:
        return f"tool_{n}(", ")"

    return {
        "ToolCalls": (tool_calls, as_call),
        "anyOf": (any_of, as_json),
        "union": (union, as_json),
        "grammar": (grammar, in_rule),
        "anyOf, no names": (bare_any_of, lambda n, instance: ("", "")),
        "union, no names": (bare_union, lambda n, instance: ("", "")),
    }


class Reading:
    """Masks of one run: microseconds of first visits inside arguments and of all of them."""

    def __init__(self) -> None:
        self.compile_ms = 0.0
        self.inside: list[float] = []
        self.everywhere: list[float] = []
        self.refused = 0
        self.seen: set[int] = set()

    def read(self, constraint: Any, parts: tuple[str, str, str], tokenizer: Tokenizer) -> None:
        """Read a text: its beginning, the arguments and its end."""
        from formalm import TokenError, new_bitmask

        out = new_bitmask(1, len(constraint.vocabulary))
        encoding = tokenizer.encode("".join(parts), add_special_tokens=False)
        start, end = len(parts[0]), len(parts[0]) + len(parts[1])
        matcher = constraint.matcher()
        for token_id, (begins, _) in zip(encoding.ids, encoding.offsets, strict=True):
            is_new = matcher.state_key not in self.seen
            self.seen.add(matcher.state_key)
            began = thread_time_ns()
            matcher.fill_bitmask(out, 0)
            took = (thread_time_ns() - began) / 1e3
            if is_new:
                self.everywhere.append(took)
                if start <= begins < end:
                    self.inside.append(took)
            try:
                matcher.advance(token_id)
            except TokenError:
                # Alternatives with other declared orders may rule out this one.
                self.refused += 1
                break


def measured(
    form: Callable[[list[Any]], Any],
    schemas: list[Any],
    texts: list[tuple[str, str, str]],
    over: tuple[Any, Tokenizer],
) -> Reading:
    """Compile a language and read texts with it, over a vocabulary and its tokenizer."""
    from formalm import Constraint, new_bitmask

    (vocabulary, tokenizer), reading = over, Reading()
    out = new_bitmask(1, len(vocabulary))
    gc.collect()
    gc.disable()
    began = thread_time_ns()
    constraint = Constraint(form(schemas), vocabulary)
    constraint.matcher().fill_bitmask(out, 0)
    reading.compile_ms = (thread_time_ns() - began) / 1e6
    for parts in texts:
        reading.read(constraint, parts, tokenizer)
    gc.enable()
    return reading


def row(name: str, readings: list[Reading]) -> str:
    """Return a line of the table."""
    one = sorted(readings, key=lambda one: float(np.mean(one.inside)))[len(readings) // 2]
    inside = np.array(one.inside)
    compile_ms = sorted(r.compile_ms for r in readings)[len(readings) // 2]
    quantiles = " | ".join(f"{np.percentile(inside, q):.1f}" for q in (50, 90, 99, 99.9))
    return (
        f"| {name} | {compile_ms:.1f} | {len(inside)} | {inside.mean():.1f} | {quantiles} |"
        f" {int((inside > 50).sum())} | {np.mean(one.everywhere):.1f} | {one.refused} |"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", default="llama3-128k")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--counts", type=int, nargs="+", default=[50, 200])
    parser.add_argument("--forms", nargs="+", default=list(forms()))
    parser.add_argument("--every", type=int, default=3, help="take one schema of so many")
    parser.add_argument("--first", type=int, default=1, help="which of them")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--order", choices=("any", "schema"), default="schema")
    arguments = parser.parse_args()
    OPTIONS["property_order"] = arguments.order
    loaded = load_vocabulary(arguments.vocabulary, arguments.shared / "tokenizers")
    over = Formalm(loaded)._vocabulary, Tokenizer.from_str(loaded.json)
    print("| form | compile (ms) | first visits | mean (µs) | p50 | p90 | p99 | p99.9 |", end="")
    print(" above 50 µs | mean everywhere | refused |\n|" + " --- |" * 11)
    chosen = usable(
        tools(arguments.shared, arguments.every, arguments.first), max(arguments.counts)
    )
    for count in arguments.counts:
        runs = [one_run(chosen[:count], arguments.forms, over) for _ in range(arguments.runs)]
        for name in runs[0]:
            # The first run pays for what the vocabulary makes once.
            print(row(f"{count} {name}", [run[name] for run in runs[1:] or runs]), flush=True)


def one_run(of: list[Tool], names: list[str], over: tuple[Any, Tokenizer]) -> dict[str, Reading]:
    """Measure schemas alone, and all forms of them."""
    from formalm import JsonSchema

    alone = Reading()
    for schema, instance in of:
        texts = [("", written(instance), "")]
        one = measured(lambda schemas: JsonSchema(schemas[0], **OPTIONS), [schema], texts, over)
        alone.compile_ms += one.compile_ms
        alone.inside += one.inside
        alone.everywhere += one.everywhere
    found = {"alone": alone}
    for name in names:
        form, around = forms()[name]
        texts = []
        for number, (_, instance) in enumerate(of):
            before, after = around(number, instance)
            texts.append((before, written(instance), after))
        found[name] = measured(form, [schema for schema, _ in of], texts, over)
    return found


if __name__ == "__main__":
    main()
