"""Round trips: type, schema, constraint, random tokens, instance, value, JSON."""

from __future__ import annotations

import json
import random
import typing
from functools import cache
from typing import Any

import jsonschema_rs
import pydantic
import pytest

from formalm import Constraint, JsonSchema, PythonType, TypeScript, Vocabulary
from tests.support.case_ids import describe
from tests.support.python_types import TYPES

TYPESCRIPT = [
    "string",
    "number | null",
    "[]integer",
    "'a' | 'b' | 3 | true",
    "{ output: string, array_output: []number, optional?: number, nested: []{ inner: string } }",
    "[string, number?, ...boolean[]]",
    "Record<string, boolean>",
    "Record<'a' | 'b', null>",
    "{ a: 1, [key: string]: number }",
    "{ [key: `x-${string}`]: boolean }",
    "`${'a' | 'b'}-${bigint}`",
    "enum E { A, B = 'b' } E[]",
    "interface A { next: A | null, v: boolean }",
    "interface A { a: string } interface B extends A { b?: integer[] }",
    "type J = boolean | J[] | { [k: string]: J }",
    "({ k: 1 } | { k: 2, w: 'z' }) & { v: boolean }",
    "Partial<{ a: boolean, b: null }>",
    "Omit<{ a: boolean, b: null }, 'b'>",
    "type P<T> = { items: T[], next?: P<T> }; P<boolean>",
    "object",
    "unknown",
]
EXPONENTS = (*b"eE",)
OPENING = (*b"[{,\\",)
PIECES = [
    '{"',
    '":',
    '": ',
    '", "',
    "[[",
    "], ",
    "true",
    "null",
    "12",
    "a1",
    '"a"',
    "}]",
    "é",
    '\\"',
]


@cache
def vocabulary() -> Vocabulary:
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in PIECES]
    return Vocabulary.from_tokens([*tokens, b"<end>"], end_token_ids=[len(tokens)])


def walks(language: JsonSchema, count: int, seed: str) -> list[bytes]:
    """Members: random allowed tokens, and from some length on those that close something."""
    constraint = Constraint(language, vocabulary())
    end = len(vocabulary()) - 1
    found = []
    for number in range(count):
        draw = random.Random(f"{seed} {number}")
        matcher = constraint.matcher()
        turn = draw.randrange(1, 30)
        for step in range(400):
            allowed = matcher.allowed_token_ids().tolist()
            assert allowed, matcher.text
            closing = [each for each in (end, *b'"}]') if each in allowed]
            # Control characters and parts of characters are many, and rarely of interest.
            likely = [each for each in allowed if 32 <= each < 127 or each >= 256] or allowed
            # Exponents make numbers that the judge reads as infinite.
            likely = [each for each in likely if each not in EXPONENTS] or likely
            calm = [each for each in likely if each < 256 and each not in OPENING] or likely
            later = closing[:1] or calm
            token = draw.choice(likely if step < turn else later)
            if token == end:
                break
            matcher.advance(token)
        assert matcher.is_accepting, matcher.text
        found.append(matcher.text)
    return found


def check_instance(language: JsonSchema, text: bytes) -> None:
    """Valid by a judge that does not know us."""
    judge: Any = jsonschema_rs.validator_for(json.loads(language.schema), validate_formats=True)
    judge.validate(json.loads(text))


def test_there_are_enough() -> None:
    assert len(TYPES) + len(TYPESCRIPT) >= 60


@pytest.mark.parametrize(("type_", "unchanged"), TYPES, ids=[describe(row[0]) for row in TYPES])
def test_python_types(type_: Any, unchanged: bool) -> None:
    # A walk that avoids exponents does not come back from a number that needs one.
    language = PythonType(type_, number_format="plain")
    adapter: Any = pydantic.TypeAdapter(type_)
    # Distinct items and bounded multiples are slow to read.
    slow = typing.get_origin(type_) in (set, frozenset) or "decimal_places" in str(type_)
    count = 3 if slow else 30
    for text in walks(language, count, str(type_)):
        check_instance(language, text)
        value = language.value(text)
        again = adapter.dump_json(value, by_alias=True, exclude_unset=True)
        assert adapter.validate_json(again) == value, text
        if unchanged:
            # Numbers of Python's float are doubles, whatever their spelling.
            assert json.loads(again, parse_int=float) == json.loads(text, parse_int=float), text
            if language.notes == () and not isinstance(value, float):
                assert language.matches(json.dumps(json.loads(again), ensure_ascii=False)), again


@pytest.mark.parametrize("source", TYPESCRIPT)
def test_typescript(source: str) -> None:
    language = TypeScript(source)
    for text in walks(language, 30, source):
        check_instance(language, text)
        assert language.value(text) == json.loads(text)
