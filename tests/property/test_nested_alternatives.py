"""Alternatives within alternatives that a property or two tell apart, as configuration files have
them, judged by another library.
"""

from __future__ import annotations

import json
from random import Random
from time import process_time
from typing import Any

import jsonschema_rs
import pytest

from formalm import Constraint, JsonSchema, Vocabulary

VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + [None], [256])
#: Kinds of bindings, with what they have coming in and going out.
KINDS = {
    "http": (["methods", "route"], []),
    "queue": (["queueName", "connection"], ["queueName", "connection"]),
    "blob": (["path", "connection"], ["path", "connection"]),
    "table": (["tableName", "take", "filter"], ["tableName", "partitionKey"]),
    "events": (["path", "group"], ["path"]),
    "bus": (["topicName", "queueName"], ["topicName"]),
    "documents": (["databaseName"], ["databaseName", "create"]),
    "timer": (["schedule"], []),
    "messages": (["to"], ["from"]),
    "mobile": (["tableName"], ["apiKey"]),
}
DIRECTIONS = ["in", "out", "inout"]
BASE = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "type": {"type": "string"},
        "direction": {"enum": DIRECTIONS},
    },
    "required": ["name", "type", "direction"],
}


def alternative(kind: str, direction: str, names: list[str], chance: Random) -> dict[str, Any]:
    """Return one side of a kind, of which much may be missing."""
    if chance.random() < 0.1:
        return {}
    properties: dict[str, Any] = {
        "type": {"enum": [kind]},
        "direction": {"enum": [direction]},
        **{name: {"type": "string"} for name in names},
    }
    missing = chance.choice([None] * 5 + ["type", "direction"])
    properties.pop(missing, None)
    required = [name for name in ("type", "direction", *names[:1]) if chance.random() < 0.7]
    schema = {"type": "object", "properties": properties}
    if required and chance.random() < 0.7:
        schema["required"] = required
    if chance.random() < 0.3:
        del schema["type"]
    return schema


def drawn_schema(chance: Random) -> dict[str, Any]:
    pairs = []
    for kind in chance.sample(list(KINDS), chance.randint(3, 8)):
        coming, going = KINDS[kind]
        sides = [
            alternative(f"{kind}Trigger", "in", coming, chance),
            alternative(kind, "out", going, chance),
        ]
        pairs.append({"oneOf": sides})
    items = chance.choice(
        [
            {"oneOf": pairs},
            {"allOf": [BASE, {"oneOf": pairs}]},
            {"allOf": [BASE], "oneOf": pairs},
            {"allOf": [{"required": ["name", "type", "direction"]}], "oneOf": pairs},
            {"allOf": [BASE], "anyOf": pairs},
        ]
    )
    bindings = {"type": "array", "items": items}
    return {"type": "object", "properties": {"bindings": bindings, "disabled": {"type": "boolean"}}}


def drawn_instance(chance: Random) -> dict[str, Any]:
    names = sorted({name for sides in KINDS.values() for side in sides for name in side})

    def binding() -> dict[str, Any]:
        kind = chance.choice([*KINDS, "other"]) + chance.choice(["", "Trigger"])
        made: dict[str, Any] = {"name": "x", "type": kind, "direction": chance.choice(DIRECTIONS)}
        made |= {name: chance.choice(["s", "s", 1]) for name in chance.sample(names, 3)}
        order = sorted(made, key=lambda _: chance.random())
        return {name: made[name] for name in order if chance.random() < 0.95}

    return {"bindings": [binding() for _ in range(chance.randint(1, 2))]}


def check(seed: int) -> None:
    chance = Random(seed)
    schema = drawn_schema(chance)
    judge = jsonschema_rs.validator_for(schema)
    begun = process_time()
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    constraint = Constraint(language, VOCABULARY)
    for _ in range(5):
        instance = drawn_instance(chance)
        text, valid = json.dumps(instance, separators=(",", ":")), judge.is_valid(instance)
        assert language.matches(text) == valid, (schema, text)
        matcher = constraint.matcher()
        read = 0
        while read < len(text) and matcher.mask()[ord(text[read])]:
            matcher.advance(ord(text[read]))
            read += 1
        assert (read == len(text) and matcher.is_accepting) == valid, (schema, text, read)
    assert process_time() - begun < 3, schema


@pytest.mark.parametrize("part", range(6))
def test_alternatives_within_alternatives_are_masked_soon(part: int) -> None:
    for seed in range(20 * part, 20 * part + 20):
        check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(20))
def test_many_more_are_masked_soon(part: int) -> None:
    for seed in range(10_000 + 50 * part, 10_050 + 50 * part):
        check(seed)
