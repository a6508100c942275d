"""Numbers: every short text against exact arithmetic."""

import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import product
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import JsonSchema, LanguageError, LimitError

PLAIN = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?"
#: By the spelling of numbers: all of them, and what some begin with.
NUMBERS = {
    "plain": (re.compile(PLAIN), re.compile(r"-?[0-9.]*")),
    "any": (
        re.compile(PLAIN + r"(?:[eE][+-]?[0-9]+)?"),
        re.compile(r"-?[0-9.]*(?:[eE][+-]?[0-9]*)?"),
    ),
}
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


def check(
    schema: dict[str, str],
    other: dict[str, str],
    length: int,
    numbers: str = "plain",
    alphabet: str = ALPHABET,
) -> None:
    """The numbers that satisfy the one and not the other."""
    source = f'{{"type":"number","allOf":[{text_of(schema)}],"not":{text_of(other)}}}'

    def member(text: str) -> bool:
        value = Fraction(Decimal(text))
        return holds(schema, value) and not holds(other, value)

    check_texts(source, member, length, numbers, alphabet)


def check_texts(
    source: str,
    member: Callable[[str], bool],
    length: int,
    numbers: str,
    alphabet: str = ALPHABET,
) -> None:
    """Every text of a length: what it is a member of, and what can become one."""
    language = JsonSchema(source, number_format=numbers)
    try:
        language.automaton()
    except LanguageError:
        language = None  # type: ignore[assignment]
    number, beginning = NUMBERS[numbers]
    # The shortest of numbers with exponents are looked for among many.
    asked = (
        (lambda text: True) if numbers == "plain" else (lambda text: crc32(text.encode()) % 97 == 0)
    )

    def longer(text: str) -> bool:
        """Whether this or something longer is a number that satisfies; texts as long as checked."""
        found = bool(number.fullmatch(text)) and member(text)
        if language is None:
            assert not found, (source, text)
        else:
            assert language.matches(text) == found, (source, text)
        going = False
        if len(text) < length and beginning.fullmatch(text):
            for c in alphabet:
                going = longer(text + c) or going
        if language is not None and (found or going):
            assert language.is_viable(text), (source, text)
        elif language is not None and language.is_viable(text) and asked(text):
            completed = language.shortest(text)
            assert completed is not None
            assert number.fullmatch(completed.decode()), (source, text, completed)
            assert member(completed.decode()), (source, text, completed)
        return found or going

    longer("")


@settings(max_examples=40, deadline=None)
@given(statements.filter(bool), statements.filter(bool))
def test_short_numbers(schema: dict[str, str], other: dict[str, str]) -> None:
    check(schema, other, 3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=25, deadline=None)
@given(statements.filter(bool), statements.filter(bool))
def test_longer_numbers(schema: dict[str, str], other: dict[str, str]) -> None:
    check(schema, other, 6)


def test_unconstrained_numbers_are_json_numbers() -> None:
    language = JsonSchema({"type": "number"})
    full = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
    for length in range(5):
        for chosen in product("-01.eE+", repeat=length):
            text = "".join(chosen)
            assert language.matches(text) == bool(full.fullmatch(text)), text


@settings(max_examples=15, deadline=None)
@given(statements.filter(bool), statements.filter(bool))
def test_short_numbers_with_exponents(schema: dict[str, str], other: dict[str, str]) -> None:
    check(schema, other, 3, "any")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=40, deadline=None)
@given(statements.filter(bool), statements.filter(bool))
def test_longer_numbers_with_exponents(schema: dict[str, str], other: dict[str, str]) -> None:
    # Each text leads to a state of its own, so that their number decides: few digits, longer texts.
    check(schema, other, 7, "any", "-0159.e")


LISTED = ["0", "100", "-0.5", "1e-3", "12.5"]


@pytest.mark.parametrize("keyword", ["enum", "const", "not"])
def test_listed_numbers_with_exponents(keyword: str) -> None:
    values = {Fraction(Decimal(one)) for one in (LISTED if keyword != "const" else LISTED[1:2])}
    sources = {
        "enum": f'{{"enum":[{",".join(LISTED)}]}}',
        "const": '{"const":100}',
        "not": f'{{"type":"integer","not":{{"enum":[{",".join(LISTED)}]}}}}',
    }

    def member(text: str) -> bool:
        value = Fraction(Decimal(text))
        if keyword == "not":
            return value.denominator == 1 and value not in values
        return value in values

    check_texts(sources[keyword], member, 4, "any")


@pytest.mark.parametrize("draft", ["http://json-schema.org/draft-04/schema#", None])
def test_integers_with_exponents(draft: str | None) -> None:
    named = f'"$schema":"{draft}",' if draft else ""
    source = f'{{{named}"type":"integer","minimum":-15,"maximum":200}}'

    def member(text: str) -> bool:
        value = Fraction(Decimal(text))
        # Draft 4 has no integers with a fraction or an exponent.
        spelled = draft is None or re.fullmatch("-?[0-9]+", text) is not None
        return spelled and value.denominator == 1 and -15 <= value <= 200

    check_texts(source, member, 5 if draft else 4, "any")


@pytest.mark.parametrize(
    ("text", "instance"),
    [
        ("1e2", True),
        ("1E+2", True),
        ("10e-1", True),
        ("1e-1", False),
        ("1.5e0", False),
        ("1.5e1", True),
        ("0.000e-7", True),
        ("100e-3", False),
        ("1e100000000000000000000", True),
        ("-1e2", False),
        ("1e-100000000000000000000", False),
    ],
)
def test_exponents_are_part_of_the_value(text: str, instance: bool) -> None:
    schema = {"type": "integer", "minimum": 0}
    assert JsonSchema(schema, number_format="any").matches(text) == instance
    assert JsonSchema(schema).accepts(text) == instance
    assert not JsonSchema(schema).matches(text)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(-400, 400),
    st.integers(-400, 400),
    st.sampled_from(["1", "3", "0.7", "1e-5", "64", "390625"]),
    st.integers(-(10**8), 10**8),
    st.integers(-30, 30),
)
def test_large_exponents_are_exact(low: int, high: int, unit: str, digits: int, power: int) -> None:
    source = f'{{"minimum":{-3}e{low},"maximum":5e{high},"multipleOf":{unit},"type":"number"}}'
    language = JsonSchema(source, number_format="any")
    for exponent in (power, low, high, low - 1, high + 1, high - 8):
        text = f"{digits}e{exponent}"
        value = Fraction(digits) * Fraction(10) ** exponent
        expected = (
            -3 * Fraction(10) ** low <= value <= 5 * Fraction(10) ** high
            and (value / Fraction(unit)).denominator == 1
        )
        assert language.matches(text) == expected, (source, text)


def test_items_that_cannot_be_compared_end_in_a_limit() -> None:
    language = JsonSchema({"type": "array", "uniqueItems": True})
    assert not language.is_viable("[1e1000,10e999,")
    with pytest.raises(LimitError, match="digits"):
        language.matches("[1e3000,1]")
    deep = "[" * 126 + "]" * 126
    assert language.matches(f"[{deep},1]")
    assert not language.matches(f"[{deep},{deep}]")
    with pytest.raises(LimitError, match="nesting"):
        language.matches(f"[[[{deep}]],1]")


def test_endless_numbers_end_in_a_limit() -> None:
    language = JsonSchema({"type": "integer"}, number_format="any")
    assert language.matches("1" * 1900)
    with pytest.raises(LimitError, match="digits"):
        language.matches("1" * 2100)
    assert JsonSchema({"type": "integer"}).matches("1" * 2100)


def test_how_listed_numbers_are_written() -> None:
    """In draft 4 a number with a point is no integer, whatever its value."""
    draft = {"$schema": "http://json-schema.org/draft-04/schema#"}
    language = JsonSchema({**draft, "enum": [3, 4.5], "not": {"type": "integer"}})
    assert [language.matches(text) for text in ("3", "3.0", "4.5", "4")] == [
        False,
        True,
        True,
        False,
    ]
    assert language.is_viable("3")
    assert language.matches(language.shortest())


def test_multiples_that_exclude_each_other() -> None:
    schema = {
        "type": "number",
        "oneOf": [{"multipleOf": 33}, {"multipleOf": 12}, {"multipleOf": 77}],
        "anyOf": [{"not": {"multipleOf": 11}}, {"multipleOf": 13}],
        "not": {"multipleOf": 8},
    }
    language = JsonSchema(schema)

    def right(value: int) -> bool:
        units = [value % unit == 0 for unit in (33, 12, 77)]
        return sum(units) == 1 and (value % 11 != 0 or value % 13 == 0) and value % 8 != 0

    members = [value for value in range(3000) if language.matches(str(value))]
    assert members == [value for value in range(3000) if right(value)]
    # What a number has to be comes back only after thousands.
    for value in range(1000):
        assert language.is_viable(f"-{value}") == (value > 0), value
        assert not language.matches(f"{value}.5")
