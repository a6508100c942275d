"""What masks of structures cost along a text with reasoning, a call of a tool and text again.

Run as ``python -m benches.structure_masks tokenizer.json``; prints a table. A fill is timed by the
thread's CPU time, since other work on the machine would show in the time on the wall. Each case is
measured ``--runs`` times with a new constraint; the table has the median run by its mean.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from time import thread_time_ns
from typing import Any

import numpy as np

MARKS = ("<think>", "</think>")
TEXT = (
    "<think>Let me see what the weather is like in < and > of the places today.</think>"
    "I will look it up now, one moment please.\n<tool_call>\n"
    '{"name": "tool_LAST", "arguments": {"city": "San Francisco, California", "days": 12, '
    '"unit": "celsius"}}\n</tool_call> Here it is: <b>sunny</b>, 20 degrees, and so on.'
)


def cases() -> dict[str, tuple[Callable[[], Any], str]]:
    """Languages to make, and a member of each."""
    from formalm import CallFormat, JsonSchema, Regex, Section, StringLiteral, Structure, ToolCalls

    format = CallFormat(
        '\n{"name": "{name}", "arguments": {arguments}}\n', "<tool_call>", "</tool_call>"
    )

    def schema(closed: bool = True) -> JsonSchema:
        """The arguments of a tool."""
        members = {
            "city": {"type": "string"},
            "days": {"type": "integer"},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        }
        extra = {"additionalProperties": False} if closed else {}
        return JsonSchema({"type": "object", "properties": members, "required": ["city"], **extra})

    def tools(count: int, closed: bool = True, **options: Any) -> Callable[[], Any]:
        """Tools that differ in their names."""

        def make() -> Any:
            # Schemas anew: a language keeps its machine.
            named = {f"tool_{number}": schema(closed) for number in range(count)}
            return ToolCalls(named, format, reasoning=MARKS, **options)

        return make

    start = TEXT.index('{"city"')
    plain = "It is <n>20</n> degrees, and it was <n>18</n> before. <n x"
    return {
        "arguments alone": (schema, TEXT[start : TEXT.index("}}", start) + 1]),
        "regular": (
            lambda: Structure([Section("<n>", Regex("[0-9]+"), "</n>")]) + StringLiteral(""),
            plain,
        ),
        "1 tool": (tools(1), TEXT.replace("LAST", "0")),
        "20 tools": (tools(20), TEXT.replace("LAST", "19")),
        "20 tools, at most 4 calls": (tools(20, maximum=4), TEXT.replace("LAST", "19")),
        "400 tools": (tools(400), TEXT.replace("LAST", "399")),
        "1 tool, open arguments": (tools(1, closed=False), TEXT.replace("LAST", "0")),
    }


def measured(make: Callable[[], Any], text: str, vocabulary: Any) -> dict[str, Any]:
    """Milliseconds to the first mask; microseconds of masks on first visits and later ones."""
    from formalm import Constraint, LimitError, new_bitmask

    out = new_bitmask(1, len(vocabulary))
    began = thread_time_ns()
    constraint = Constraint(make(), vocabulary)
    constraint.matcher().fill_bitmask(out, 0)
    found: dict[str, Any] = {"start": (thread_time_ns() - began) / 1e6}
    for visit in ("first", "later"):
        matcher, spent = constraint.matcher(), []
        for token_id in vocabulary.encode(text):
            began = thread_time_ns()
            try:
                matcher.fill_bitmask(out, 0)
            except LimitError as error:
                return {**found, "error": f"{error.message}, behind {matcher.text[-12:].decode()}"}
            spent.append((thread_time_ns() - began) / 1e3)
            matcher.advance(int(token_id))
        assert matcher.is_accepting
        found[visit] = np.array(spent)
    found["memory"] = constraint.core.memory_bytes / 1e6
    return found


def main() -> None:
    """Measure and print."""
    from formalm import Vocabulary

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tokenizer", help="a tokenizer.json, .gz too")
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    vocabulary = Vocabulary.from_tokenizer_json(arguments.tokenizer)
    print("| structure | to first mask (ms) | first visits: median, mean, max (µs) |", end="")
    print(" later: median (µs) | memory (MB) |\n| --- | --- | --- | --- | --- |")
    for name, (make, text) in cases().items():
        runs = [measured(make, text, vocabulary) for _ in range(arguments.runs)]
        if "error" in runs[0]:
            print(f"| {name} | {runs[0]['start']:.1f} | {runs[0]['error']} | | |")
            continue
        run = sorted(runs, key=lambda one: one["first"].mean())[len(runs) // 2]
        first = run["first"]
        print(f"| {name} | {run['start']:.1f} | {np.median(first):.0f}, ", end="")
        print(f"{first.mean():.0f}, {first.max():.0f} | {np.median(run['later']):.1f}", end="")
        print(f" | {run['memory']:.0f} |")


if __name__ == "__main__":
    main()
