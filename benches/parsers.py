"""What masks of a Python parser cost, and what groups, forced strings and equality save.

Run as ``python -m benches.parsers``; writes ``records/parsers-DATE.md`` and the ``.json`` beside
it. The language is the JSON example of Syntactically Constrained Sampling, read by
``schema_parser.py``. At each token of random members the mask is found in five ways, and all
five have to agree.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from statistics import mean, median
from time import perf_counter, thread_time
from typing import Any

import numpy as np

from benches.machine import ROOT, describe
from benches.schema_parser import ARTICLE, SchemaParser
from benches.writing import origin, write
from formalm import Constraint, ParseFailure, Parser, Vocabulary

TOKENIZERS = ROOT / ".." / "shared" / "tokenizers"
NAMES = ("gpt2-50k", "llama3-128k")
WORDS = "the small café was closed, so we went home and read 'Ulysses' until midnight".split()
TARGET = 50

EVERY = "every token"
WAYS = {
    EVERY: "copy and append for each token, in Python",
    "walk": "tokens that begin alike share what was appended",
    "equality": "the same, and equal states are one",
    "hints": "forced strings and groups, without equality",
    "all": "forced strings, groups and equality",
}


class Bare(SchemaParser):
    """The parser without anything that would make it faster."""

    __eq__ = Parser.__eq__
    __hash__ = Parser.__hash__

    def next_strings(self) -> list[str]:
        """Nothing is said."""
        return []

    def allowed_groups(self) -> list[Any]:
        """Nothing is said."""
        return []

    forbidden_groups = allowed_groups


class Equal(Bare):
    """With equality."""

    __eq__ = SchemaParser.__eq__
    __hash__ = SchemaParser.__hash__


class Hinting(SchemaParser):
    """With forced strings and groups."""

    __eq__ = Parser.__eq__
    __hash__ = Parser.__hash__


PARSERS = {"walk": Bare, "equality": Equal, "hints": Hinting, "all": SchemaParser}


def main() -> None:
    """Measure and write the record."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--tokenizers", type=Path, default=TOKENIZERS)
    options.add_argument("--documents", type=int, default=4)
    options.add_argument("--output", type=Path, default=ROOT / "records")
    given = options.parse_args()
    paths = [given.tokenizers / f"{name}.json.gz" for name in NAMES]
    if not all(path.exists() for path in paths):
        sys.exit(f"no tokenizers at {given.tokenizers}")
    texts = [member(seed) for seed in range(given.documents)]
    record: dict[str, Any] = {"about": describe(), "texts": texts, "results": {}}
    for path in paths:
        record["results"][path.name.split(".")[0]] = measure(path, texts)
    record["load_after"] = describe()["load_average"]
    text = page(record)
    write(given.output, "parsers", record, text, indent=1)
    sys.stdout.write(text)


def member(seed: int) -> str:
    """Return a random member of the schema."""
    draw = random.Random(seed)

    def words() -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(2, 12)))

    value: dict[str, Any] = {"output": words()}
    value["array_output"] = [draw.choice([draw.randint(-9, 999), 2.5]) for _ in range(4)]
    if seed % 2:
        value["optional_output"] = draw.randint(0, 10**6)
    value["nested_schema"] = [{"inner_output": words()} for _ in range(draw.randint(1, 3))]
    return json.dumps(value, ensure_ascii=False)


def measure(path: Path, texts: list[str]) -> dict[str, Any]:
    """Return microseconds of every first visit, by way; and of what is done once."""
    vocabulary = Vocabulary.from_tokenizer_json(path)
    pieces = [piece_of(vocabulary.token_bytes(token)) for token in range(len(vocabulary))]
    times: dict[str, list[float]] = {way: [] for way in WAYS}
    seconds: dict[str, float] = {}
    constraints = {}
    for way, kind in PARSERS.items():
        constraint = constraints[way] = Constraint(kind(ARTICLE), vocabulary)
        begun = perf_counter()
        # Inside the first string: groups are found when they are first asked for.
        matcher = constraint.matcher()
        matcher.advance_many(vocabulary.encode('{"output": "a'))
        matcher.mask()
        seconds[way] = perf_counter() - begun
    for text in texts:
        matchers = {way: constraint.matcher() for way, constraint in constraints.items()}
        bare: SchemaParser = Bare(ARTICLE)
        for token in vocabulary.encode(text):
            expected = timed(times[EVERY], lambda bare=bare: checked(bare, pieces))
            for way, matcher in matchers.items():
                seen = matcher.core
                mask = timed(times[way], seen.mask)
                # The ends of sequence are no tokens of a text.
                mask[list(vocabulary.end_token_ids)] = False
                if not np.array_equal(mask, expected):
                    sys.exit(f"{way} and the definition differ in {text!r} at {matcher.text!r}")
                matcher.advance(token)
            bare = bare.copy()
            bare.append(pieces[token] or "")
        if not all(matcher.is_accepting for matcher in matchers.values()):
            sys.exit(f"{text!r} was not accepted")
    return {"vocabulary": len(vocabulary), "times_us": times, "first_seconds": seconds}


def piece_of(data: bytes | None) -> str | None:
    """Return the text of a token, None if it has none."""
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def checked(parser: Parser, pieces: list[str | None]) -> Any:
    """Return the mask as the article finds it."""
    mask = np.zeros(len(pieces), dtype=np.bool_)
    for token, piece in enumerate(pieces):
        if piece is None:
            continue
        copy = parser.copy()
        try:
            copy.append(piece)
        except ParseFailure:
            continue
        mask[token] = True
    return mask


def timed(times: list[float], ask: Any) -> Any:
    """Return the answer, and note the microseconds it took."""
    start = thread_time()
    answer = ask()
    times.append((thread_time() - start) * 1e6)
    return answer


def page(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    about = record["about"]
    lines = [
        "# Masks of a Python parser",
        "",
        *origin(about, record["load_after"]),
        "",
        f"The JSON example of the article, {len(record['texts'])} random members, a mask at every",
        "token; microseconds of the thread. Masks that were found before are copies and count too,",
        "as a generation would meet them. All ways gave the same masks.",
        "",
    ]
    for name, result in record["results"].items():
        times = result["times_us"]
        lines += [f"## {name}, {result['vocabulary']:,} tokens, {len(times[EVERY])} masks", ""]
        lines += ["| way | mean | median | greatest | × | begun, s |", "| --- | " + "---: | " * 5]
        for way, what in WAYS.items():
            ratio = mean(times[EVERY]) / mean(times[way])
            numbers = [f"{figure(times[way]):,.0f}" for figure in (mean, median, max)]
            once = f"{result['first_seconds'][way]:.2f}" if way in PARSERS else ""
            cells = [f"{way}: {what}", *numbers, f"{ratio:,.1f}", once]
            lines.append(f"| {' | '.join(cells)} |")
        best = mean(times[EVERY]) / mean(times["hints"])
        reached = "met" if best >= TARGET else "**missed**"
        lines += ["", f"Groups and forced strings, at least {TARGET} ×: {best:,.0f} ×, {reached}."]
        lines += ["*Begun* is the first mask inside a string, with what is found once.", ""]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
