"""Schemas that explode: what they say, written out as a tree, or the values they ask for.

Each question ends in a verdict or in a typed limit, in bounded time and memory.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.processes import needs_limits
from tests.support.workers import Worker

Schema = Any

# A question that ends in a limit takes one to two seconds on a quiet machine. A mask takes twice
# that: it is asked once more where nothing else was read. Without limits these take minutes.
CPU_SECONDS = 10.0
MEMORY_BYTES = 1 << 30

ASKED = """
import json, time
from formalm import Constraint, FormalmError, JsonSchema, LimitError, Vocabulary
vocabulary = Vocabulary.from_tokens(
    [*(bytes([byte]) for byte in range(256)), b'"a', b'["', b'[1', b'{"', None], end_token_ids=[260]
)
def answer(item):
    language = JsonSchema(json.dumps(item["schema"]), approximate=True)
    matcher = None
    def mask():
        nonlocal matcher
        matcher = Constraint(language, vocabulary).matcher()
        return len(matcher.allowed_token_ids())
    questions = {
        "is_empty": language.is_empty,
        "matches": lambda: language.matches(item["text"]),
        "is_viable": lambda: language.is_viable(item["text"][:-1]),
        "mask": mask,
        "shortest": language.shortest,
        "sample": lambda: language.sample(1, seed=1, random_bytes=20),
    }
    told = {}
    for name, ask in questions.items():
        begun = time.process_time()
        try:
            found = ask()
            value = found if isinstance(found, bool) else None
        except LimitError:
            value = "limit"
        except FormalmError as error:
            value = str(error).splitlines()[0]
        told[name] = [value, time.process_time() - begun]
    for byte in item["text"].encode()[:40]:
        steps = (lambda: byte in matcher.allowed_token_ids(), lambda: matcher.advance(byte))
        for step in steps:
            begun = time.process_time()
            try:
                if matcher is None or step() is False:
                    return told
            except LimitError:
                return told
            finally:
                told["mask"][1] = max(told["mask"][1], time.process_time() - begun)
    return told
"""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(ASKED, cpu_seconds=20.0, memory_bytes=MEMORY_BYTES + (4 << 30)) as worker:
        yield worker


def nested(depth: int, outer: Any, inner: Schema) -> Schema:
    for level in range(depth):
        inner = outer(inner, level)
    return inner


def referring(depth: int, outer: Any, inner: Schema) -> Schema:
    """The same with a definition for each level, so that the schema itself stays small."""
    definitions = {"d0": inner}
    for level in range(depth):
        definitions[f"d{level + 1}"] = outer({"$ref": f"#/$defs/d{level}"}, level)
    return {"$ref": f"#/$defs/d{depth}", "$defs": definitions}


def pattern(level: int) -> Schema:
    return {"pattern": f"p{level}"}


def listed(level: int) -> Schema:
    return {"enum": [f"v{level}", f"w{level}", "z", level]}


def limited(level: int) -> Schema:
    return {"minimum": level}


def required(level: int) -> Schema:
    return {"required": [f"p{level}"]}


def holding(level: int) -> Schema:
    return {"properties": {f"p{level}": {"type": "integer"}}}


def having(level: int) -> Schema:
    return {"contains": {"const": level}}


LEAVES = {
    "pattern": pattern,
    "enum": listed,
    "minimum": limited,
    "required": required,
    "properties": holding,
    "contains": having,
}
# How a level uses the one below, mostly twice.
LEVELS = {
    "if": lambda one, leaf: {"if": leaf, "then": one, "else": {"not": leaf}},
    "if twice": lambda one, leaf: {"if": leaf, "then": one, "else": {"not": one}},
    "any of not": lambda one, leaf: {"anyOf": [{"not": one}, leaf]},
    "one of": lambda one, leaf: {"oneOf": [one, leaf]},
    "one of three": lambda one, leaf: {"oneOf": [one, leaf, {"allOf": [one, leaf]}]},
    "either": lambda one, leaf: {
        "anyOf": [{"allOf": [one, leaf]}, {"not": {"allOf": [one, leaf]}}]
    },
    "both ways": lambda one, leaf: {
        "anyOf": [{"allOf": [one, leaf]}, {"allOf": [{"not": one}, {"not": leaf}]}]
    },
    "all of": lambda one, leaf: {"allOf": [one, {"if": one, "then": one}, {"anyOf": [one, leaf]}]},
    "condition": lambda one, leaf: {"if": one, "then": leaf, "else": one},
}
WHOLE = {"pattern": "string", "enum": "string", "minimum": "number", "contains": "array"}


def check(worker: Worker, schema: Schema, text: str) -> dict[str, Any]:
    answer = worker.ask({"schema": schema, "text": text})
    assert answer.failure is None, answer.failure
    assert answer.peak_bytes < MEMORY_BYTES, f"{answer.peak_bytes >> 20} MiB"
    slow = {name: seconds for name, (_, seconds) in answer.value.items() if seconds > CPU_SECONDS}
    assert not slow, (slow, answer.value)
    for value, _ in answer.value.values():
        assert value in (None, True, False, "limit") or "no instance" in value, answer.value
    return {name: value for name, (value, _) in answer.value.items()}


TEXTS = {
    "pattern": '"p0p3"',
    "enum": '"v3"',
    "minimum": "7",
    "required": '{"p0":1,"p3":2}',
    "properties": '{"p0":1,"p3":2}',
    "contains": "[0,3]",
}


@needs_limits
@pytest.mark.parametrize("leaf", LEAVES)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("depth", [6, pytest.param(15, marks=pytest.mark.slow), 30])
def test_mutually_recursive_levels_compile_in_bounded_time(
    worker: Worker, level: str, leaf: str, depth: int
) -> None:
    def outer(one: Schema, at: int) -> Schema:
        return LEVELS[level](one, LEAVES[leaf](at))

    inner = {"type": WHOLE.get(leaf, "object")}
    told = check(worker, referring(depth, outer, inner), TEXTS[leaf])
    if depth == 6:
        # Small ones are answered, and as they are when all is written out.
        assert "limit" not in told.values()
        assert check(worker, nested(depth, outer, inner), TEXTS[leaf]) == told


@needs_limits
@pytest.mark.parametrize("depth", [15, 30])
@pytest.mark.parametrize("level", ["if", "any of not", "one of", "either"])
def test_property_names_compile_in_bounded_time(worker: Worker, level: str, depth: int) -> None:
    def outer(one: Schema, at: int) -> Schema:
        return LEVELS[level](one, pattern(at))

    names = referring(depth, outer, {"type": "string"})
    definitions = names.pop("$defs")
    check(worker, {"type": "object", "propertyNames": names, "$defs": definitions}, '{"p0":1}')


@needs_limits
def test_alternatives_of_undeclared_properties_have_masks(worker: Worker) -> None:
    kinds = {
        f"kind{at}": {
            "type": "object",
            "properties": {
                "type": {"const": f"kind{at}"},
                "name": {"type": "string", "pattern": f"^[a-z{at % 10}]+$", "minLength": 1},
                "options": {"type": "array", "items": {"enum": [f"o{at}", "all"]}},
                **{f"f{field}": {"type": ["string", "null"]} for field in range(at % 5)},
            },
            "required": ["type", "name"],
            "additionalProperties": False,
        }
        for at in range(30)
    }
    choice = {"oneOf": [{"$ref": f"#/definitions/{name}"} for name in kinds]}
    schema = {"type": "object", "additionalProperties": choice, "definitions": kinds}
    text = '{"a":{"type":"kind7","name":"ab7","options":["o7"]},"b":{"type":"kind1","name":"x"}}'
    told = check(worker, schema, text)
    assert told["matches"] is True
    assert "limit" not in told.values()
    strings = [{"pattern": f'^["\\\\]{at}'} for at in range(30)]
    told = check(worker, {"additionalProperties": {"type": "string", "oneOf": strings}}, "{}")
    assert "limit" not in told.values()


MANY = 100_000
ARRAYS = {
    "integers": {"items": {"type": "integer"}},
    "natural numbers": {"items": {"type": "integer", "minimum": 0}},
    "numbers": {"items": {"type": "number"}},
    "strings": {"items": {"type": "string"}},
    "patterns": {"items": {"type": "string", "pattern": "^a"}},
    "booleans": {"items": {"type": "boolean"}},
    "arrays": {"items": {"type": "array", "items": {"type": "integer"}}},
    "objects": {"items": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    "anything": {},
    "some strings": {"contains": {"type": "string"}},
    "many strings": {"contains": {"type": "string"}, "minContains": MANY},
    "few strings": {"contains": {"type": "string"}, "maxContains": 3},
    "a beginning": {"prefixItems": [{"minimum": at, "type": "number"} for at in range(500)]},
    "few values": {"items": {"enum": list(range(300))}},
    "alternatives": {"items": {"anyOf": [{"type": "integer"}, {"type": "string"}]}},
    "all but one": {"not": {"contains": {"const": 1}}},
}
OTHERS: dict[str, Schema] = {
    "minProperties": {"type": "object", "minProperties": MANY},
    "minProperties of patterns": {
        "type": "object",
        "patternProperties": {"^a": {"type": "integer"}, "b$": {"type": "string"}},
        "additionalProperties": False,
        "minProperties": MANY,
    },
    "minProperties of names": {
        "type": "object",
        "propertyNames": {"pattern": "^[ab]{1,20}$"},
        "minProperties": MANY,
    },
    "minProperties of few names": {
        "type": "object",
        "propertyNames": {"pattern": "^[ab]{1,9}$"},
        "minProperties": MANY,
    },
    "minLength": {"type": "string", "minLength": 10**9, "pattern": "^(ab)*$"},
    "minContains": {"type": "array", "contains": {"type": "integer"}, "minContains": 10**9},
    "minItems": {"type": "array", "items": {"type": "integer"}, "minItems": 10**9},
    "multiples": {
        "type": "number",
        "minimum": 1,
        "allOf": [{"multipleOf": one} for one in (10007, 10009, 10037, 10039, 10061, 10067)],
        "not": {"multipleOf": 2},
    },
    "multiples excluded": {
        "type": "integer",
        "allOf": [{"not": {"multipleOf": one}} for one in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29)],
        "minimum": 10**30,
    },
    "tiny unit": {"type": "number", "multipleOf": 1e-300, "minimum": 1e300},
    "enum of numbers": {"enum": list(range(MANY))},
    "enum of strings": {"enum": [f"value {at}" for at in range(MANY)]},
    "deep constant": {"const": json.loads("[" * 90 + "1" + "]" * 90)},
    "long constant": {"const": list(range(20_000))},
    "large constant": {"const": {f"n{at}": [at] for at in range(5_000)}},
    "arrays of arrays": {
        "type": "array",
        "uniqueItems": True,
        "minItems": 2_000,
        "items": {"type": "array", "uniqueItems": True, "minItems": 2_000},
    },
}


@needs_limits
@pytest.mark.parametrize("unique", [True, False], ids=["distinct", "any"])
@pytest.mark.parametrize("kind", ARRAYS)
def test_many_items_compile_in_bounded_time_and_memory(
    worker: Worker, kind: str, unique: bool
) -> None:
    schema = {"type": "array", "minItems": MANY, "uniqueItems": unique, **ARRAYS[kind]}
    text = '["a",1,2]' if "strings" in kind else "[1,2,3]"
    check(worker, schema, text)


@needs_limits
@pytest.mark.parametrize("kind", OTHERS)
def test_large_counts_end_in_time_and_memory(worker: Worker, kind: str) -> None:
    texts = {"object": '{"ab":1,"b":"x"}', "string": '"abab"', "array": "[1,2,3]"}
    text = texts.get(OTHERS[kind].get("type", ""), "1000")
    check(worker, OTHERS[kind], text)


FORMATS = [
    *("date-time", "date", "time", "duration", "email", "idn-email", "hostname", "idn-hostname"),
    *("ipv4", "ipv6", "uri", "uri-reference", "iri", "iri-reference", "uuid", "uri-template"),
    *("json-pointer", "relative-json-pointer", "regex"),
]
BEGINNINGS = [
    *("", "x", "xn-", "xn--", "xn--X", "xn--a-", "xn--zca", "a.xn--", "a.xn--X", "é", "日本", "א"),
    *("2024-02-2", "1.2", "::", "a@", "a@xn--", "http://", "http://xn--", "{", "/", "P1", "%"),
    *("a." * 100, "a" * 60, "xn--" + "a" * 50, "ー", "·", "l·", "-", "[", "("),
]


@needs_limits
@pytest.mark.parametrize("name", FORMATS)
def test_beginnings_of_formats_are_completed_at_once(name: str) -> None:
    program = """
    import time
    from formalm import JsonSchema
    def answer(item):
        language = JsonSchema({"type": "string", "format": item["format"]})
        slow = {}
        for text in item["beginnings"]:
            begun = time.process_time()
            found = language.shortest('"' + text)
            seconds = time.process_time() - begun
            assert found is None or language.matches(found), text
            if seconds > 0.5:
                slow[text] = seconds
        return slow
    """
    with Worker(program, cpu_seconds=20.0, memory_bytes=5 << 30) as worker:
        answer = worker.ask({"format": name, "beginnings": BEGINNINGS})
    assert answer.failure is None, answer.failure
    assert answer.value == {}


@needs_limits
@pytest.mark.parametrize("depth", [8, 25, 60])
def test_regular_languages_that_use_operands_twice_are_graphs(depth: int) -> None:
    program = """
    from formalm import FormalmError, Regex
    def answer(depth):
        language, told = Regex(".*a.*"), []
        for level in range(depth):
            letter = Regex(f".*[{chr(97 + level % 3)}].*")
            language = (language & letter) | (language - letter)
        for text in ("", "b", "abc"):
            try:
                told.append(language.matches(text))
            except FormalmError as error:
                told.append(type(error).__name__)
        return told
    """
    with Worker(program, cpu_seconds=5.0, memory_bytes=5 << 30) as worker:
        answer = worker.ask(depth)
    assert answer.failure is None, answer.failure
    assert answer.cpu_seconds < CPU_SECONDS
    # Each level is the language itself.
    assert answer.value in ([False, False, True], ["LimitError"] * 3)
