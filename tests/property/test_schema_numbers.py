"""Numbers: every short text against exact arithmetic."""

import re
from decimal import Decimal
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import JsonSchema, LanguageError

NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
ALPHABET = "-0123456789.eE+"

bounds = st.sampled_from(["-100", "-3.5", "-1", "0", "0.05", "1", "2.5", "7", "19", "99.9", "1000"])
statements = st.fixed_dictionaries(
    {},
    optional={
        "minimum": bounds,
        "maximum": bounds,
        "exclusiveMinimum": bounds,
        "exclusiveMaximum": bounds,
        "multipleOf": st.sampled_from(["1", "0.1", "0.25", "3", "7", "0.3", "1e1"]),
    },
)


def text_of(schema: dict[str, str]) -> str:
    return "{" + ",".join(f'"{name}":{number}' for name, number in schema.items()) + "}"


def holds(schema: dict[str, str], value: Fraction) -> bool:
    tests = {
        "minimum": lambda bound: value >= bound,
        "maximum": lambda bound: value <= bound,
        "exclusiveMinimum": lambda bound: value > bound,
        "exclusiveMaximum": lambda bound: value < bound,
        "multipleOf": lambda unit: (value / unit).denominator == 1,
    }
    return all(tests[name](Fraction(Decimal(number))) for name, number in schema.items())


def check(schema: dict[str, str], other: dict[str, str], length: int) -> None:
    """The numbers that satisfy the one and not the other."""
    source = f'{{"type":"number","allOf":[{text_of(schema)}],"not":{text_of(other)}}}'
    language = JsonSchema(source)
    try:
        language.automaton()
    except LanguageError:
        language = None  # type: ignore[assignment]

    def member(text: str) -> bool:
        value = Fraction(Decimal(text))
        return holds(schema, value) and not holds(other, value)

    def longer(text: str) -> bool:
        """Whether this or something longer is a number that satisfies; texts as long as checked."""
        found = bool(NUMBER.fullmatch(text)) and member(text)
        if language is None:
            assert not found, (source, text)
        else:
            assert language.matches(text) == found, (source, text)
        going = False
        if len(text) < length and re.fullmatch(r"-?[0-9.]*", text):
            for c in ALPHABET:
                going = longer(text + c) or going
        if language is not None and (found or going):
            assert language.is_viable(text), (source, text)
        elif language is not None and language.is_viable(text):
            completed = language.shortest(text)
            assert completed is not None
            assert member(completed.decode()), (source, text)
        return found or going

    longer("")


@settings(max_examples=40, deadline=None)
@given(statements.filter(bool), statements.filter(bool))
def test_short_numbers(schema: dict[str, str], other: dict[str, str]) -> None:
    check(schema, other, 3)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(statements.filter(bool), statements.filter(bool))
def test_longer_numbers(schema: dict[str, str], other: dict[str, str]) -> None:
    check(schema, other, 6)


def test_numbers_of_which_nothing_is_asked_are_those_of_json() -> None:
    language = JsonSchema({"type": "number"})
    full = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
    for length in range(5):
        for chosen in product("-01.eE+", repeat=length):
            text = "".join(chosen)
            assert language.matches(text) == bool(full.fullmatch(text)), text
