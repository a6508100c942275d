"""The cost of replacing interned state: masks and advances of a constraint that serves forever.

Run as ``python -m benches.lifetime``; writes ``records/lifetime-DATE.md`` and the ``.json`` next to
it. Requests never repeat: each has names, items and numbers of its own.

- Two constraints serve the same requests in turns, one with a memory limit so small that its state
  is replaced often, one with a limit that it never reaches. A mask is filled before every token,
  then the token is read. Requests that end in a ``LimitError`` on either side are left out and
  counted.
- Then a new constraint with the small limit serves a long run. After it, a tenth as many requests
  are served in turns with a new constraint, whose first tenth they are: a shared machine changes
  its pace by a third within minutes, and turns let that meet both. The ratio is the median of
  several such rounds. Drawing and tokenizing requests is not timed.

Times are CPU times of the one thread, or wall times (``--clock wall``).
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from benches import cases
from benches.clocks import CLOCKS, NAMES
from benches.fresh_requests import distinct_numbers, distinct_strings, prefixed_record, record
from benches.machine import ROOT, describe
from benches.writing import origin, write
from formalm import Constraint, JsonSchema, LimitError, Vocabulary, new_bitmask
from formalm.constraint import Tokenization

MB = 1 << 20
#: Bytes that no run here reaches.
UNLIMITED = 1 << 40
#: Highest accepted ratio of the slowest masks and advances, with replacements to without.
TAIL_LIMIT = ("p99.9", 3.0)
#: Highest accepted ratio of the time per token, last tenth to first.
TENTHS_LIMIT = 1.1
TENTHS = 10
#: Rounds in which the long run and a new constraint serve the same requests.
ROUNDS = 5
#: Turns of a round.
TURNS = 40
#: Requests before any is timed.
WARMING = 5

Clock = Callable[[], int]


@dataclass(frozen=True)
class Case:
    """A schema and its traffic.

    Attributes
    ----------
    schema
        The language.
    draw
        A member.
    memory_limit_bytes
        A limit that some dozens of requests exceed, so that state is replaced.
    requests
        Number of requests that both constraints serve.
    long
        Number of requests of the long run.
    tokenization
        Of the constraint.
    """

    schema: dict[str, Any]
    draw: Callable[[random.Random], str]
    memory_limit_bytes: int
    requests: int
    long: int
    tokenization: Tokenization = "all"


OPEN = {"type": "object"}
STRINGS = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}
NUMBERS = {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
TYPED = {"type": "object", "additionalProperties": {"type": "integer"}}
PATTERNS = {"type": "object", "patternProperties": {"^x": {"type": "integer"}}}
CASES = {
    "open object": Case(OPEN, record, 4 * MB, 20_000, 200_000),
    "typed extra properties": Case(TYPED, record, 4 * MB, 20_000, 200_000),
    "property patterns": Case(PATTERNS, prefixed_record, 16 * MB, 4000, 10_000),
    "distinct strings": Case(STRINGS, distinct_strings, 16 * MB, 4000, 20_000),
    "distinct numbers": Case(NUMBERS, distinct_numbers, 16 * MB, 4000, 20_000),
    "open object, canonical": Case(OPEN, record, 64 * MB, 300, 1000, "canonical"),
}


class Times:
    """Nanoseconds of the calls of one constraint."""

    def __init__(self) -> None:
        self.begin: list[int] = []
        self.mask: list[int] = []
        self.advance: list[int] = []

    def extend(self, other: Times) -> None:
        """Add the times of a request."""
        self.begin += other.begin
        self.mask += other.mask
        self.advance += other.advance


def main() -> None:
    """Measure, then write the record."""
    arguments = parse()
    found = cases.load_vocabulary(arguments.vocabulary, arguments.shared / "tokenizers")
    vocabulary = Vocabulary.from_tokenizer_json(
        found.json.encode(), end_token_ids=[found.end_token_id]
    )
    tokenizer = Tokenizer.from_str(found.json)
    clock = CLOCKS[arguments.clock]
    about = {**describe(), "vocabulary": arguments.vocabulary, "clock": arguments.clock}
    gc.disable()
    figures = {}
    for name in arguments.only or CASES:
        case = CASES[name]
        figures[name] = {
            "memory_limit_bytes": case.memory_limit_bytes,
            **side_by_side(case, vocabulary, tokenizer, clock, arguments.share),
            "long": long_run(case, vocabulary, tokenizer, clock, arguments.share),
        }
        gc.collect()
    gc.enable()
    about["load_average_after"] = [round(one, 2) for one in os.getloadavg()]
    written = {"about": about, "cases": figures}
    page = markdown(written)
    write(arguments.output, "lifetime", written, page)
    sys.stdout.write(page)


def parse() -> argparse.Namespace:
    """Read the options."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vocabulary", default="llama3-128k")
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--only", nargs="+", choices=tuple(CASES), help="names of cases")
    parser.add_argument("--share", type=float, default=1.0, help="share of the requests to serve")
    parser.add_argument("--clock", choices=tuple(CLOCKS), default="cpu")
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    return parser.parse_args()


def requests(case: Case, tokenizer: Tokenizer, numbers: range) -> Iterator[list[int]]:
    """Yield the tokens of requests; a number always gives the same one."""
    for number in numbers:
        text = case.draw(random.Random(number))
        yield list(tokenizer.encode(text, add_special_tokens=False).ids)


def constraint_of(case: Case, vocabulary: Vocabulary, memory_limit_bytes: int) -> Constraint:
    """Return a new constraint with a limit."""
    return Constraint(
        JsonSchema(case.schema),
        vocabulary,
        tokenization=case.tokenization,
        memory_limit_bytes=memory_limit_bytes,
    )


def serve(
    constraint: Constraint, tokens: list[int], bits: npt.NDArray[np.int32], clock: Clock
) -> Times | None:
    """Return the times of a request; None if it ends in a limit."""
    times = Times()
    begun = clock()
    matcher = constraint.matcher()
    times.begin.append(clock() - begun)
    try:
        for token_id in tokens:
            start = clock()
            matcher.fill_bitmask(bits)
            filled = clock()
            if not int(bits[0, token_id >> 5]) >> (token_id & 31) & 1:
                raise AssertionError(f"token {token_id} of {tokens} is not allowed")
            before = clock()
            matcher.advance(token_id)
            times.advance.append(clock() - before)
            times.mask.append(filled - start)
    except LimitError:
        return None
    if not matcher.is_accepting:
        raise AssertionError(f"{tokens} is not accepted")
    return times


def side_by_side(
    case: Case, vocabulary: Vocabulary, tokenizer: Tokenizer, clock: Clock, share: float
) -> dict[str, Any]:
    """Return figures of calls with replacements and without, over requests that both survive."""
    limits = {"with": case.memory_limit_bytes, "without": UNLIMITED}
    constraints = {name: constraint_of(case, vocabulary, limit) for name, limit in limits.items()}
    bits = new_bitmask(1, constraints["with"].width)
    # Tables of the vocabulary are made once, by the first requests of any constraint.
    before = constraint_of(case, vocabulary, UNLIMITED)
    for tokens in requests(case, tokenizer, range(-WARMING, 0)):
        serve(before, tokens, bits, clock)
    times = {name: Times() for name in limits}
    count = max(10, int(case.requests * share))
    left_out = 0
    for at, tokens in enumerate(requests(case, tokenizer, range(count))):
        order = ["with", "without"] if at % 2 else ["without", "with"]
        found = {name: serve(constraints[name], tokens, bits, clock) for name in order}
        if any(one is None for one in found.values()):
            left_out += 1
            continue
        for name, one in found.items():
            if one is not None:
                times[name].extend(one)
    stats = {name: constraint.stats() for name, constraint in constraints.items()}
    return {
        "requests": count,
        "left_out": left_out,
        "replacements": {name: one.replacements for name, one in stats.items()},
        "counted_bytes": {name: one.total_bytes for name, one in stats.items()},
        "times_us": {
            what: {name: summary(getattr(times[name], what)) for name in times}
            for what in ("mask", "advance", "begin")
        },
    }


def summary(nanoseconds: list[int]) -> dict[str, float]:
    """Return figures in µs."""
    values = np.array(nanoseconds or [0]) / 1e3
    quantiles = {f"p{q}": float(np.percentile(values, q)) for q in (50, 99, 99.9)}
    return {
        "count": len(nanoseconds),
        **quantiles,
        "mean": float(values.mean()),
        "max": float(values.max()),
    }


def long_run(
    case: Case, vocabulary: Vocabulary, tokenizer: Tokenizer, clock: Clock, share: float
) -> dict[str, Any]:
    """Return the time per token of each tenth of a long run with the small limit.

    Then further tenths are served in turns with a new constraint each.
    """
    constraint = constraint_of(case, vocabulary, case.memory_limit_bytes)
    size = max(TURNS, int(case.long * share) // TENTHS)

    def tenth(number: int) -> list[list[int]]:
        # Other requests than those of the comparison.
        first = case.requests + number * size
        return list(requests(case, tokenizer, range(first, first + size)))

    def per_token(nanoseconds: int, todo: list[list[int]]) -> float:
        return nanoseconds / 1e3 / sum(map(len, todo))

    tenths = []
    for number in range(TENTHS):
        todo = tenth(number)
        tenths.append(per_token(taken(constraint, todo, clock), todo))
    rounds = []
    for number in range(TENTHS, TENTHS + ROUNDS):
        todo = tenth(number)
        fresh = constraint_of(case, vocabulary, case.memory_limit_bytes)
        spent = {"last": 0, "first": 0}
        for turn in range(TURNS):
            block = todo[turn * size // TURNS : (turn + 1) * size // TURNS]
            pair = [("last", constraint), ("first", fresh)]
            for name, one in pair if turn % 2 else reversed(pair):
                spent[name] += taken(one, block, clock)
        rounds.append({name: per_token(each, todo) for name, each in spent.items()})
    return {
        "requests": size * (TENTHS + ROUNDS),
        "replacements": constraint.stats().replacements,
        "us_per_token": tenths,
        "rounds": rounds,
    }


def taken(constraint: Constraint, todo: list[list[int]], clock: Clock) -> int:
    """Return the nanoseconds that requests take."""
    bits = new_bitmask(1, constraint.width)
    begun = clock()
    for tokens in todo:
        matcher = constraint.matcher()
        for token_id in tokens:
            matcher.fill_bitmask(bits)
            matcher.advance(token_id)
    return clock() - begun


def markdown(record: dict[str, Any]) -> str:
    """Return the page."""
    about = record["about"]
    figure, most = TAIL_LIMIT
    lines = [
        "# Constraints that serve forever",
        "",
        *origin(about, about["load_average_after"]),
        "",
        f"{about['vocabulary']}, one thread, µs of {NAMES[about['clock']]}. Two constraints serve",
        "the same requests in turns; the small limit makes the one replace its state, the other",
        "keeps all. *Begin* makes a matcher: a new state is made there if the old one is retired.",
        "",
        "| case | limit, MB | requests (left out) | replacements | what | figure | without | with |"
        " ratio | limit | |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, case in record["cases"].items():
        about_case = (
            f"{name} | {case['memory_limit_bytes'] // MB} |"
            f" {case['requests']} ({case['left_out']}) | {case['replacements']['with']}"
        )
        for what, times in case["times_us"].items():
            for shown in ("p50", "p99", "p99.9", "max"):
                without, replaced = (times[one][shown] for one in ("without", "with"))
                ratio = replaced / without
                asked = shown == figure and what != "begin"
                verdict = ("met" if ratio <= most else "**missed**") if asked else ""
                lines.append(
                    f"| {about_case} | {what} | {shown} | {without:.1f} | {replaced:.1f} |"
                    f" {ratio:.2f} | {f'{most:g}' if asked else ''} | {verdict} |"
                )
                about_case = " | | | "
    lines += [
        "",
        "Time per token over a long run with the small limit, and its last tenth in turns with the",
        f"first tenth of a new constraint: medians of {ROUNDS} rounds, with the lowest and highest",
        "ratio. The tenths of the run show the machine's changes of pace as well.",
        "",
        "| case | requests | replacements | first tenth | last tenth | ratio | limit | |"
        " ratios | tenths |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for name, case in record["cases"].items():
        long = case["long"]
        tenths, rounds = long["us_per_token"], long["rounds"]
        first, last = (median(one[which] for one in rounds) for which in ("first", "last"))
        ratios = [one["last"] / one["first"] for one in rounds]
        ratio = median(ratios)
        verdict = "met" if ratio <= TENTHS_LIMIT else "**missed**"
        lines.append(
            f"| {name} | {long['requests']} | {long['replacements']} | {first:.2f} | {last:.2f} |"
            f" {ratio:.3f} | {TENTHS_LIMIT:g} | {verdict} |"
            f" {min(ratios):.2f} to {max(ratios):.2f} | {min(tenths):.2f} to {max(tenths):.2f} |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
