"""Canonical tokens: loading, masks at states met first and again, memory, steps without a choice.

Run as ``python -m benches.canonical``; writes ``records/canonical-DATE.md`` and the ``.json``
beside it. One thread. All times are processor time of that thread, which other load disturbs least.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from statistics import mean, median
from time import thread_time_ns
from typing import Any

import numpy as np

from benches.documents import CALLS, PATTERN, WORDS, call, document
from benches.machine import ONE_THREAD, ROOT, describe
from benches.writing import origin, write

NAMES = [
    *("gpt2-50k", "cl100k", "o200k", "llama3-128k", "tekken-240911-131k"),
    *("mistral-v1-32k", "mistral-v3-32k", "llama2-32k", "deepseek-129k", "qwen-152k"),
]
DOCUMENTS = 60
#: Calls in a row that are timed together.
REPETITIONS = 50
#: Masks of more tokens than this are those of states where text is free.
FREE = 1000


def timed(work: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Do something, and say how many seconds of the processor it took."""
    start = thread_time_ns()
    result = work(*arguments)
    return result, (thread_time_ns() - start) / 1e9


def measure(data: bytes, is_sentencepiece: bool = False) -> dict[str, Any]:
    """Return the figures of one tokenizer."""
    from formalm import Vocabulary, _core

    read: Callable[..., Any] = Vocabulary.from_tokenizer_json
    make: Callable[..., Any] = _core.Encoder
    if is_sentencepiece:
        read, make = Vocabulary.from_sentencepiece, _core.Encoder.from_sentencepiece
    vocabulary, prepared = timed(read, data)
    made = [timed(make, data, vocabulary.core) for _ in range(3)]
    vocabulary.encode("a")  # the library's own reading of the file is no part of the check
    checked = timed(vocabulary.encoder)[1] - min(seconds for _, seconds in made)
    relation = made[0][0].memory_bytes
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved"
        vocabulary.save(path, canonical=True)
        loads = []
        for _ in range(5):
            loaded, whole = timed(Vocabulary.load, path)
            loads.append((timed(loaded.encoder)[1], whole))
    figures = {
        "tokens": len(vocabulary),
        "vocabulary_s": prepared,
        "relation_s": median(seconds for _, seconds in made),
        "check_s": checked,
        "reload_s": median(seconds for seconds, _ in loads),
        "load_vocabulary_s": median(seconds for _, seconds in loads),
        "relation_bytes": relation,
    }
    figures |= masks(vocabulary)
    figures |= schemas(read(data))
    figures["encoder_bytes"] = vocabulary.encoder().memory_bytes
    figures |= choices(vocabulary)
    return figures


def masks(vocabulary: Any) -> dict[str, Any]:
    """Return the times of masks along canonical tokens, in microseconds."""
    from formalm import Constraint, Regex
    from formalm.bitmask import new_bitmask

    space = " " if vocabulary.encoder().prepends_space else ""
    language = Regex(space + PATTERN)
    out = new_bitmask(1, len(vocabulary))
    times: dict[str, list[float]] = {"first": [], "free": [], "pair": [], "again": [], "read": []}
    compiles = []
    for _ in range(2):  # the second time with a fresh constraint: the vocabulary's share is made
        constraint, seconds = timed(
            lambda: Constraint(Regex(space + PATTERN), vocabulary, tokenization="canonical")
        )
        compiles.append(seconds)
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    chance = random.Random(1)
    states: set[int] = set()
    pairs: set[int] = set()
    for _ in range(DOCUMENTS):
        token_ids = vocabulary.encoder().encode(space + document(chance))
        if token_ids is None:  # not all texts have canonical tokens
            continue
        matcher = constraint.matcher()
        for token_id in [*token_ids, None]:
            key = matcher.state_key
            spent = 1e6 * timed(matcher.fill_bitmask, out)[1]
            if key >> 24 not in states:
                times["first"].append(spent)
                if int(np.bitwise_count(out.view(np.uint32)).sum()) > FREE:
                    times["free"].append(spent)
            elif key not in pairs:
                times["pair"].append(spent)
            states.add(key >> 24)
            pairs.add(key)
            times["again"].append(1e6 * timed(matcher.fill_bitmask, out)[1])
            if token_id is not None:
                times["read"].append(1e6 * timed(matcher.advance, token_id)[1])
        assert matcher.is_accepting
    result: dict[str, Any] = {
        "compile_s": min(compiles),
        "constraint_bytes": constraint.memory_bytes,
    }
    return result | {name: summary(spent_each) for name, spent_each in times.items()}


def summary(times: list[float]) -> dict[str, Any]:
    """Return the number, mean and percentiles of times."""
    if not times:
        return {"count": 0} | dict.fromkeys(("mean", "p50", "p90", "p99"))
    return {
        "count": len(times),
        "mean": mean(times),
        **{f"p{part}": float(np.percentile(times, part)) for part in (50, 90, 99)},
    }


def schemas(vocabulary: Any) -> dict[str, Any]:
    """Return the times of masks along documents of two schemas of sixty fields, in microseconds.

    The vocabulary is new. ``start`` are masks at new states in the first ten fields, ``field``
    those in the other fifty, whose kinds were seen, and ``second`` those in another schema with
    other names. ``cached`` is ``Matcher.bitmask()`` at a position whose mask is known.
    """
    from formalm import Constraint, JsonSchema
    from formalm.bitmask import new_bitmask

    if vocabulary.encoder().prepends_space:
        return {}
    out = new_bitmask(1, len(vocabulary))
    times: dict[str, list[float]] = {"start": [], "field": [], "second": [], "cached": []}
    for prefix in ("", "its_"):
        schema, names = sixty_fields(prefix)
        language = JsonSchema(schema)
        constraint = Constraint(language, vocabulary, tokenization="canonical")
        chance = random.Random(3)
        states: set[int] = set()
        for _ in range(5):
            text = sixty_values(names, chance)
            known = len(text[: text.index(f'"{names[10]}"')].encode())
            token_ids = vocabulary.encoder().encode(text)
            if token_ids is None:
                continue
            matcher = constraint.matcher()
            read = 0
            for token_id in token_ids:
                key = matcher.state_key >> 24
                spent = 1e6 * timed(matcher.fill_bitmask, out)[1]
                if key not in states:
                    kind = "second" if prefix else "start" if read <= known else "field"
                    times[kind].append(spent)
                states.add(key)
                matcher.bitmask()
                _, spent = timed(repeated, matcher.bitmask)
                times["cached"].append(1e6 * spent / REPETITIONS)
                matcher.advance(token_id)
                read += len(vocabulary.token_bytes(token_id))
            assert matcher.is_accepting
    return {"schemas": {name: summary(spent_each) for name, spent_each in times.items()}}


def repeated(work: Callable[[], Any]) -> None:
    """Do something often enough to be timed."""
    for _ in range(REPETITIONS):
        work()


def sixty_fields(prefix: str) -> tuple[dict[str, Any], list[str]]:
    """Return a schema of sixty fields of five kinds, and their names."""
    owners = ("user", "order", "ship", "bill", "item", "meta")
    of = ("name", "count", "price", "active", "tags", "title", "size", "ratio", "open", "labels")
    names = [f"{prefix}{owner}_{one}" for owner in owners for one in of]
    kinds: list[dict[str, Any]] = [
        *({"type": kind} for kind in ("string", "integer", "number", "boolean")),
        {"type": "array", "items": {"type": "string"}},
    ]
    properties = {name: kinds[at % 5] for at, name in enumerate(names)}
    schema = {"type": "object", "properties": properties, "required": names}
    return schema | {"additionalProperties": False}, names


def sixty_values(names: list[str], chance: random.Random) -> str:
    """Return a document of a schema of sixty fields."""

    def text() -> str:
        return " ".join(chance.choices(WORDS, k=chance.randrange(9)))

    values: list[Callable[[], object]] = [
        text,
        lambda: chance.randrange(-100, 10**6),
        lambda: round(chance.random() * 1000, chance.randrange(1, 5)),
        lambda: chance.random() < 0.5,
        lambda: [text() for _ in range(chance.randrange(4))],
    ]
    made = {name: values[at % 5]() for at, name in enumerate(names)}
    return json.dumps(made, ensure_ascii=False)


def choices(vocabulary: Any) -> dict[str, Any]:
    """Return the share of steps with one option, by tokenization."""
    from formalm import Constraint, Regex

    space = " " if vocabulary.encoder().prepends_space else ""
    shares = {}
    for tokenization in ("all", "canonical"):
        constraint = Constraint(Regex(space + CALLS), vocabulary, tokenization=tokenization)
        chance = random.Random(2)
        steps = single = 0
        for _ in range(DOCUMENTS):
            matcher = constraint.matcher()
            for token_id in vocabulary.encoder().encode(space + call(chance)) or ():
                steps += 1
                single += len(matcher.allowed_token_ids()) == 1
                matcher.advance(token_id)
        shares[tokenization] = single / steps
    return {"single_option": shares}


def main() -> None:
    """Measure and write the record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokenizers", type=Path, default=ROOT.parent / "shared" / "tokenizers")
    parser.add_argument("--only", nargs="*", default=NAMES)
    parser.add_argument(
        "--more", nargs="+", type=Path, default=[], help="files of other tokenizers"
    )
    parser.add_argument("--output", type=Path, default=ROOT / "records")
    options = parser.parse_args()
    os.environ.update(ONE_THREAD)
    record: dict[str, Any] = {"about": describe(), "tokenizers": {}}
    for path in [options.tokenizers / f"{name}.json.gz" for name in options.only] + options.more:
        if not path.exists():
            sys.stderr.write(f"left out, not there: {path}\n")
            continue
        data = path.read_bytes()
        name = path.name if path in options.more else path.name.removesuffix(".json.gz")
        data = gzip.decompress(data) if path.suffix == ".gz" else data
        record["tokenizers"][name] = measure(data, path.suffix == ".model")
        # What was measured so far.
        record["about"]["load_average_after"] = [round(x, 2) for x in os.getloadavg()]
        write(options.output, "canonical", record, page(record), indent=1)
        sys.stderr.write(f"{name} done\n")
    if record["tokenizers"]:
        sys.stdout.write(page(record))


def page(record: dict[str, Any]) -> str:
    """Return the record as a page."""
    about = record["about"]
    lines = [
        "# Canonical tokens",
        "",
        *origin(about, about["load_average_after"]),
        "",
        "One thread; processor time of that thread. *Relation*: the tokenizer taken apart,",
        "from its file. *Check*: comparison with its own library, which had read the file.",
        "*Reload*: both again from a saved vocabulary. *Compile*: a pattern of fifteen fields.",
        f"*First*: masks at states new to the constraint, along {DOCUMENTS} documents; *free*:",
        f"those of more than {FREE} tokens. *Pair*: known state, new last token. *Again*: the same",
        "mask once more. *One option*: steps of function calls at which one token is allowed, all",
        "tokenizations and canonical ones.",
        "",
        "| tokenizer | relation, ms | check, ms | reload, ms | relation, MB | compile, ms "
        "| first, ms: p50 | p90 | p99 | free, ms: p50 | p99 | pair, µs: p50 | p99 "
        "| again, µs: p50 | p99 | constraint, MB | one option, %: all | canonical |",
        "| --- " * 18 + "|",
    ]
    for name, one in record["tokenizers"].items():
        first, free, pair, again = (one[key] for key in ("first", "free", "pair", "again"))
        cells = [
            *(f"{1e3 * one[key]:.0f}" for key in ("relation_s", "check_s", "reload_s")),
            f"{one['relation_bytes'] / 2**20:.1f}",
            f"{1e3 * one['compile_s']:.1f}",
            *(f"{first[part] / 1e3:.2f}" for part in ("p50", "p90", "p99")),
            *(f"{free[part] / 1e3:.2f}" if free["count"] else "–" for part in ("p50", "p99")),
            *(f"{pair[part]:.1f}" if pair["count"] else "–" for part in ("p50", "p99")),
            *(f"{again[part]:.1f}" for part in ("p50", "p99")),
            f"{one['constraint_bytes'] / 2**20:.1f}",
            *(f"{100 * one['single_option'][kind]:.1f}" for kind in ("all", "canonical")),
        ]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "Two schemas of sixty fields of five kinds over a new vocabulary, five documents each, in",
        "µs. *Start*: masks at new states in the first ten fields; *field*: in the other fifty,",
        "whose kinds were seen; *second*: in a schema with other names. *Cached*:",
        "`Matcher.bitmask()` where the mask is known.",
        "",
        "| tokenizer | start: p50 | p99 | field: p50 | p99 | second: p50 | p99 "
        "| cached: p50 | p99 |",
        "| --- " * 9 + "|",
    ]
    for name, one in record["tokenizers"].items():
        if "schemas" in one:
            kinds = [one["schemas"][kind] for kind in ("start", "field", "second")]
            cells = [f"{kind[part]:.0f}" for kind in kinds for part in ("p50", "p99")]
            cells += [f"{one['schemas']['cached'][part]:.2f}" for part in ("p50", "p99")]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
