"""Shortest members and samples of schemas that ask for many different values or members."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

from tests.support.processes import needs_limits
from tests.support.workers import Worker

CPU_SECONDS = 10.0
MEMORY_BYTES = 5 << 30

ASKED = """
import json
from formalm import JsonSchema
def answer(schema):
    language = JsonSchema(json.dumps(schema), approximate=True, property_order="any")
    return [language.shortest().decode(), *language.sample(1, seed=1, random_bytes=40)]
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(ASKED, cpu_seconds=20.0, memory_bytes=MEMORY_BYTES) as worker:
        yield worker


def members(worker: Worker, schema: Any) -> list[str]:
    """Return the shortest member and a sample, which another library has judged."""
    answer = worker.ask(schema)
    assert answer.failure is None, answer.failure
    assert answer.cpu_seconds < CPU_SECONDS, answer.cpu_seconds
    judge = jsonschema_rs.validator_for(schema)
    for text in answer.value:
        assert judge.is_valid(json.loads(text)), text
    found: list[str] = answer.value
    return found


def distinct(values: list[Any], count: int) -> Any:
    return {
        "type": "array",
        "items": {"enum": values},
        "uniqueItems": True,
        "minItems": count,
    }


VALUES = {
    "whole numbers": list(range(300)),
    "numbers": [at / 4 for at in range(-100, 100)],
    "texts": [f"v{at}" for at in range(300)],
    "both": [*range(100), *(f"{at}" for at in range(100)), None, True],
}


@needs_limits
@pytest.mark.parametrize("count", [2, 60, 150])
@pytest.mark.parametrize("kind", VALUES)
def test_the_shortest_of_many_distinct_values_are_taken(
    worker: Worker, kind: str, count: int
) -> None:
    shortest, _ = members(worker, distinct(VALUES[kind], count))
    spelled = [json.dumps(value) for value in VALUES[kind]]
    lengths = sorted(len(text.removesuffix(".0")) for text in spelled)
    assert len(shortest) == sum(lengths[:count]) + count + 1


@needs_limits
@pytest.mark.parametrize("count", [10, 300])
def test_constants_of_many_members_are_written_out(worker: Worker, count: int) -> None:
    value = {f"n{at}": [at, {"x": at}] for at in range(count)}
    for text in members(worker, {"const": value}):
        assert json.loads(text) == value


@needs_limits
@pytest.mark.parametrize("count", [10, 300])
@pytest.mark.parametrize("is_open", [True, False])
def test_many_names_that_are_required_come_in_ascending_order(
    worker: Worker, count: int, is_open: bool
) -> None:
    names = [f"name{at}" for at in range(count)]
    schema: dict[str, Any] = {"type": "object", "required": names}
    if not is_open:
        kinds = ["integer", "string", "null"]
        schema["properties"] = {name: {"type": kinds[at % 3]} for at, name in enumerate(names)}
        schema["additionalProperties"] = False
    shortest, _ = members(worker, {**schema, "maxProperties": count})
    assert list(json.loads(shortest)) == sorted(names)
