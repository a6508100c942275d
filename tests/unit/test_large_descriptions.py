"""Languages with very many parts are read in a time that grows with their number."""

from __future__ import annotations

import copy
import operator
import random
import time
from collections.abc import Callable
from typing import Any

import pytest

from formalm import JsonSchema, Language, Regex, StringLiteral
from formalm.errors import LimitError
from formalm.languages import TypeScript
from formalm.languages.algebra import Combination

OPERATORS = {"|": operator.or_, "&": operator.and_, "+": operator.add}


def cpu_seconds(action: Callable[[], object]) -> float:
    begun = time.process_time()
    action()
    return time.process_time() - begun


@pytest.mark.parametrize("symbol", OPERATORS)
def test_chains_are_what_a_list_of_operands_is(symbol: str) -> None:
    draw = random.Random(symbol)
    for _ in range(20):
        pool: list[tuple[Language, list[Language]]] = [(Regex(c), [Regex(c)]) for c in "abcd"]
        for _ in range(12):
            (one, left), (other, right) = draw.choice(pool), draw.choice(pool)
            pool.append((OPERATORS[symbol](one, other), left + right))
            if draw.random() < 0.3:  # Some are written down before they grow on.
                hash(draw.choice(pool)[0])
        for language, operands in pool[4:]:
            expected = Combination(symbol, *operands)
            assert language == expected
            assert hash(language) == hash(expected)
            assert repr(language) == repr(expected)
            assert language._depth == expected._depth
            assert copy.deepcopy(language) == language


@pytest.mark.parametrize(
    "grown",
    [
        lambda language, part: language | part,
        lambda language, part: part | language,
        lambda language, part: language + part,
        lambda language, part: part + language,
    ],
    ids=["or", "ror", "add", "radd"],
)
def test_a_language_may_grow_by_thousands_of_operators(
    grown: Callable[[Language, Language], Language],
) -> None:
    def make() -> None:
        language: Language = StringLiteral("x")
        for number in range(4000):
            language = grown(language, StringLiteral(f"n{number};"))
        assert isinstance(hash(language), int)
        assert len(repr(language)) > 40_000

    assert cpu_seconds(make) < 2


def test_parts_that_are_nested_too_deep_end_in_a_limit() -> None:
    def deeper() -> None:
        language: Language = StringLiteral("a")
        for _ in range(300):
            language = ~(language | StringLiteral("b"))

    with pytest.raises(LimitError, match="nesting"):
        deeper()


def names(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


SCHEMAS: dict[str, Callable[[int], Any]] = {
    "required": lambda n: {"properties": {key: {} for key in names(n)}, "required": names(n)},
    "typed": lambda n: {
        "properties": {key: {"type": "integer"} for key in names(n)},
        "required": names(n),
    },
    "closed": lambda n: {
        "properties": {key: {"type": "integer"} for key in names(n)},
        "required": names(n),
        "additionalProperties": False,
    },
    "optional": lambda n: {
        "properties": {key: {"type": "integer"} for key in names(n)},
        "additionalProperties": False,
    },
    "enum": lambda n: {"properties": {"n0": {"enum": names(n)}}},
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_objects_may_have_very_many_names(kind: str) -> None:
    def read() -> None:
        schema = JsonSchema({"type": "object", **SCHEMAS[kind](40_000)})
        assert schema.is_viable('{"n0":')
        assert not schema.is_viable("[")

    assert cpu_seconds(read) < 6


def test_an_intersection_may_have_thousands_of_object_types() -> None:
    def read() -> None:
        types = " & ".join(f"{{p{number}: number; shared?: string}}" for number in range(8000))
        language = TypeScript(types)
        assert language.is_viable('{"p0":1,')
        assert not language.is_viable('{"p1":1,"p1"')

    assert cpu_seconds(read) < 6
