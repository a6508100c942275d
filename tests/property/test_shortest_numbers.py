"""Completions of numbers in schemas: the smallest of the shortest."""

from fractions import Fraction
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import JsonSchema, LanguageError

UNITS = st.sampled_from([2, 3, 7, 13, 101, 999, 2.5, 0.5, 0.25, 0.03])
BOUNDS = st.sampled_from([-100, -12.5, -3, -0.5, 0, 0.25, 1, 9, 9.99, 10, 42, 99, 500, 1234])
PARTS = st.one_of(
    st.fixed_dictionaries({"multipleOf": UNITS}),
    st.builds(
        lambda key, at: {key: at},
        st.sampled_from(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"]),
        BOUNDS,
    ),
    st.fixed_dictionaries({"enum": st.lists(BOUNDS, min_size=1, max_size=4)}),
    st.just({"type": "integer"}),
)
DENIED = st.one_of(PARTS, PARTS.map(lambda part: {"not": part}))
SCHEMAS = st.lists(
    st.one_of(DENIED, st.lists(DENIED, min_size=2, max_size=3).map(lambda some: {"anyOf": some})),
    min_size=1,
    max_size=4,
).map(lambda some: {"type": "number", "allOf": some})


def all_numbers(most: int) -> list[str]:
    """Return numbers as JSON spells them, of at most so many characters."""
    digits = "0123456789"
    wholes = ["0", *(str(number) for number in range(1, 10**most))]
    texts = [
        sign + text
        for whole in wholes
        for places in range(max(1, most - len(whole)))
        for tail in (product(digits, repeat=places) if places else [()])
        for text in [whole + "." * bool(places) + "".join(tail)]
        for sign in ("", "-")
    ]
    return sorted((text for text in texts if len(text) <= most), key=lambda one: (len(one), one))


NUMBERS = [(text, Fraction(text)) for text in all_numbers(4)]


def holds(schema: dict[str, object], value: Fraction) -> bool:
    """Whether a number is valid, exactly; schemas are of the keywords drawn."""
    tests = {
        "type": lambda kind: kind == "number" or value.denominator == 1,
        "multipleOf": lambda unit: (value / Fraction(str(unit))).denominator == 1,
        "minimum": lambda at: value >= Fraction(str(at)),
        "maximum": lambda at: value <= Fraction(str(at)),
        "exclusiveMinimum": lambda at: value > Fraction(str(at)),
        "exclusiveMaximum": lambda at: value < Fraction(str(at)),
        "enum": lambda some: value in [Fraction(str(one)) for one in some],
        "not": lambda one: not holds(one, value),
        "allOf": lambda some: all(holds(one, value) for one in some),
        "anyOf": lambda some: any(holds(one, value) for one in some),
    }
    return all(tests[key](asked) for key, asked in schema.items())


@settings(max_examples=40)
@given(schema=SCHEMAS)
def test_completions_are_the_smallest_of_the_shortest(schema: dict[str, object]) -> None:
    """Against all numbers of a few characters."""
    members = [text for text, value in NUMBERS if holds(schema, value)]
    try:
        language = JsonSchema(schema, property_order="any")
        language.automaton()
    except LanguageError:
        assert members == []
        return
    for begun in ["", "-", "0", "1", "-1", "12", "0.", "3.", "-0.", "99", "1.2"]:
        least = next((text for text in members if text.startswith(begun)), None)
        found = language.shortest(begun)
        if least is not None:
            assert found == least.encode()
        elif found is not None:
            assert len(found) > 4
            assert holds(schema, Fraction(found.decode()))
