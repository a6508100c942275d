"""Random nested schemas end in a verdict, in bounded time and memory, and the verdict is right."""

from __future__ import annotations

import json
import statistics
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal
from random import Random
from typing import Any

import pytest

from tests.property.random_schemas import (
    KEYWORDS,
    MAX_DEPTH,
    random_schema,
    references,
    subschemas,
)
from tests.support.processes import needs_limits
from tests.support.workers import Worker

CPU_SECONDS = 2.0
MEMORY_BYTES = 1 << 30

# Compiles a schema, draws members, reads one of them token by token, and judges values.
MEMBERS = """
import json
from random import Random
from formalm import Constraint, JsonSchema, LanguageError, LimitError, Vocabulary
from tests.property.random_schemas import near
tokens = [bytes([byte]) for byte in range(256)]
tokens += [b'":', b'","', b'{"', b'["', b'true', b'null', b'"}', b'],[', b'12', b'name', b'2024-']
vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
def values(members, seed):
    random = Random(seed)
    drawn = [one for one in map(json.loads, members) if "Infinity" not in json.dumps(one)]
    return [*drawn, *(near(near(one, random), random) for one in drawn for _ in range(2))]
def answer(item):
    schema, seed, is_exact = json.dumps(item["schema"]), item["seed"], True
    try:
        try:
            language = JsonSchema(schema, property_order=item["order"])
            is_empty = language.is_empty()
        except LanguageError as error:
            if "enough distinct items remain" not in str(error):
                raise
            # Its members are exact; masks may have dead ends.
            language = JsonSchema(schema, property_order=item["order"], approximate=True)
            is_empty, is_exact = language.is_empty(), False
        if is_empty:
            return {"verdict": "empty"}
        members = [language.shortest().decode(), *language.sample(4, seed=seed, random_bytes=60)]
        read = members[-1].encode()[:300]
        matcher = Constraint(language, vocabulary).matcher()
        for byte in read:
            if byte not in matcher.allowed_token_ids():
                return {"verdict": "refused member", "text": members[-1]}
            matcher.advance(byte)
        judged = values(members, seed)
        truths = [language.accepts(json.dumps(value)) for value in judged]
    except LimitError as error:
        return {"verdict": "limit", "why": str(error).splitlines()[0]}
    except LanguageError as error:
        why = str(error).splitlines()[0]
        return {"verdict": "empty" if "no instance" in why else "unread", "why": why}
    return {
        "verdict": "members" if is_exact else "approximate",
        "values": judged,
        "truths": truths,
        "drawn": sum("Infinity" not in json.dumps(json.loads(text)) for text in members),
    }
"""

# Both validators have to agree: they differ from each other where numbers are no doubles.
VALIDATORS = """
import jsonschema, jsonschema_rs
FORMATS = jsonschema.Draft202012Validator.FORMAT_CHECKER
def answer(item):
    schema = item["schema"]
    one = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
    other = jsonschema.Draft202012Validator(schema, format_checker=FORMATS)
    truths = []
    for value in item["values"]:
        first = one.is_valid(value)
        try:
            second = other.is_valid(value)
        except RecursionError:
            second = None
        truths.append(first if second in (first, None) else None)
    return truths
"""


@dataclass
class Judged:
    """What became of some schemas."""

    verdicts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    compared: int = 0
    drawn: int = 0


def is_double(value: Any) -> bool:
    """Whether validators that compute with doubles read a value as it is."""
    if isinstance(value, dict | list):
        return all(map(is_double, value.values() if isinstance(value, dict) else value))
    if isinstance(value, float):
        return abs(value) < 1e15 and Decimal(repr(value)) == Decimal(value)
    return not isinstance(value, int) or abs(value) < 2**53


def judged(seeds: range) -> Judged:
    found = Judged()
    limits = {"cpu_seconds": 10.0, "memory_bytes": MEMORY_BYTES + (4 << 30)}
    with Worker(MEMBERS, **limits) as ours, Worker(VALIDATORS, **limits) as theirs:
        for seed in seeds:
            schema = random_schema(seed)
            order = Random(seed).choice(["schema", "any"])
            item = {"schema": schema, "seed": seed, "order": order}
            answer = ours.ask(item)
            if answer.cpu_seconds > CPU_SECONDS:
                # Other work of the machine slows processes down: once more, in a new one.
                ours.close()
                answer = min(answer, ours.ask(item), key=lambda one: one.cpu_seconds)
            if answer.failure is not None:
                found.failures.append(f"{seed}: {answer.failure}")
                continue
            if answer.cpu_seconds > CPU_SECONDS or answer.peak_bytes > MEMORY_BYTES:
                used = f"{answer.cpu_seconds:.1f} s, {answer.peak_bytes >> 20} MiB"
                found.failures.append(f"{seed}: {used}, {answer.value}"[:300])
            verdict = answer.value["verdict"]
            found.verdicts[verdict] += 1
            if verdict == "refused member":
                found.failures.append(f"{seed}: masks refuse {answer.value['text']!r}")
            if verdict not in ("members", "approximate"):
                continue
            values, truths = answer.value["values"], answer.value["truths"]
            expected = theirs.ask({"schema": schema, "values": values})
            # The validator itself may take exponential time.
            for at, (value, truth) in enumerate(zip(values, truths, strict=True)):
                right = expected.value[at] if expected.failure is None else None
                is_drawn = at < answer.value["drawn"]
                if not is_double(value):
                    # What was drawn is another number than the one that Python read.
                    continue
                if right is None:
                    right = True if is_drawn else None
                else:
                    found.compared += 1
                    found.drawn += is_drawn
                if (right is not None and truth != right) or (is_drawn and right is not True):
                    found.failures.append(f"{seed}: {json.dumps(value)[:200]} is {right}")
                    break
    return found


def check(found: Judged, count: int) -> None:
    assert not found.failures, "\n".join([str(found.verdicts), *found.failures[:20]])
    exact = found.verdicts["members"] + found.verdicts["empty"]
    assert exact + found.verdicts["approximate"] >= 0.95 * count, found.verdicts
    assert exact >= 0.6 * count, found.verdicts
    assert found.drawn >= count
    assert found.compared >= 4 * count


@needs_limits
def test_random_nested_schemas_end_in_the_verdict_of_a_validator() -> None:
    check(judged(range(100)), 100)


@needs_limits
@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_random_nested_schemas_end_in_the_verdict_of_a_validator(part: int) -> None:
    check(judged(range(500 * part, 500 * (part + 1))), 500)


def test_random_schemas_are_deep_and_wide_and_have_every_keyword() -> None:
    schemas = [random_schema(seed) for seed in range(300)]
    counts, depths, keywords, shared = [], [], Counter[str](), 0
    for schema in schemas:
        parts = list(subschemas(schema))
        counts.append(len(parts))
        depths.append(max(depth for _, depth in parts))
        keywords.update({word for part, _ in parts if isinstance(part, dict) for word in part})
        shared += any(count > 1 for count in Counter(references(schema)).values())
    assert statistics.median(counts) >= 60
    assert max(depths) >= MAX_DEPTH - 2
    assert sum(depth >= 20 for depth in depths) >= 20
    assert {word: keywords[word] for word in KEYWORDS if keywords[word] < 30} == {}
    assert shared >= 90
