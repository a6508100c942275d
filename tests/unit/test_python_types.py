"""Python types as languages: what they have, their values, what is refused."""

from __future__ import annotations

import copy
import datetime
import ipaddress
import pickle
import random
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Literal, NewType

import pydantic
import pytest
from typing_extensions import TypeAliasType, TypedDict

from formalm import (
    ArgumentError,
    Choice,
    LanguageError,
    PythonType,
    Regex,
    TableModel,
    TokenError,
    Vocabulary,
    generate,
)
from formalm.languages import as_language
from tests.support.case_ids import describe
from tests.support.python_types import Address, Animal, Cat, Color, Open, Person, Point

#: A type, texts it has and texts it has not.
CASES: list[tuple[Any, list[str], list[str]]] = [
    (int, ["1", "-20"], ["1.0", "1.5", '"1"', "true"]),
    (float, ["1", "1.5"], ['"1"', "null"]),
    (Color, ['"red"'], ['"RED"', '"blue"']),
    (Literal["a", 1], ['"a"', "1"], ["1.0", "true", '"b"']),
    (int | None, ["1", "null"], ["1.5", "1.0"]),
    (Literal[1, 2], ["1", "2"], ["1.0", "3"]),
    (TypedDict("Names", {"const": int, "type": int, "default": int}),
     ['{"const": 1, "type": 2, "default": 3}'], ['{"const": 1, "type": 2, "default": 3.0}']),
    (Point, ['{"x": 1}', '{"x": 1, "y": 2}'], ["{}", '{"x": 1, "z": 2}']),
    (Open, ['{"a": true, "b": 1}'], ['{"b": 1}']),
    (Address, ['{"street": "", "number": 99}'], ['{"street": "", "number": 100}']),
    (Person, ['{"fullName": "A", "born": "2000-02-29"}'], ['{"name": "A", "born": "2000-02-29"}']),
    (Animal, ['{"animal": {"kind": "cat", "lives": 9}}'], ['{"animal": {"kind": "dog"}}']),
    (dict[int, bool], ['{"1": true}', "{}"], ['{"01": true}', '{"a": true}']),
    (dict[Annotated[str, pydantic.Field(pattern="^a")], int], ['{"ab": 1}'], ['{"b": 1}']),
    (Annotated[dict[str, int], pydantic.Field(max_length=1)], ["{}"], ['{"a": 1, "b": 2}']),
    (set[bool], ["[true, false]"], ["[true, true]"]),
    (datetime.date, ['"2024-02-29"'], ['"2023-02-29"', '"0000-01-01"']),
    (datetime.datetime, ['"2024-02-29T23:59:59.5Z"'], ['"2016-12-31T23:59:60Z"']),
    (pydantic.NaiveDatetime, ['"2024-02-29T23:59:59"'], ['"1900-02-29T00:00:00"', '"2024-01-01"']),
    (datetime.timedelta, ['"P1DT2H"'], ['"P9999999D"', '"1"']),
    (Annotated[Decimal, pydantic.Field(gt=0, decimal_places=2)], ["0.01", "2"], ["0", "0.001"]),
    (Decimal, ["1.5", '"-12.50"'], ['"x"', '"1e5"', '"01"']),
    (Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=2)], ['"a b"'],
     ['" a"', '"a "', '"a"']),
    (Any, ["[1]"], ["]"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "has", "has_not"), CASES, ids=[describe(row[0]) for row in CASES]
)
def test_types(type_: Any, has: list[str], has_not: list[str]) -> None:
    language = PythonType(type_)
    for text in has:
        assert language.matches(text), text
        assert language.value(text) == pydantic.TypeAdapter(type_).validate_json(text)
    for text in has_not:
        assert not language.matches(text), text
        with pytest.raises(TokenError):
            language.value(text)


#: Types whose values have a shape of their own, with texts to begin from.
SHAPES: list[tuple[Any, list[str]]] = [
    (datetime.date, ['"2024-02-29"', '"0001-01-01"', '"1900-02-28"']),
    (datetime.datetime, ['"2024-02-29T23:59:59.123456Z"', '"0001-01-01T00:00:00+23:59"']),
    (pydantic.NaiveDatetime, ['"2024-02-29T23:59:59.12"', '"2000-02-29T00:00:00"']),
    (datetime.time, ['"23:59:59.5Z"', '"00:00:00+00:00"']),
    (datetime.timedelta, ['"P1DT2H3M4S"', '"P99999Y"', '"P2W"', '"PT99999H"']),
    (pydantic.UUID4, ['"6fa459ea-ee8a-4ca4-894e-db77e160355e"']),
    (Decimal, ['"-12.50"', "12.5", "1e308"]),
    (Annotated[Decimal, pydantic.Field(gt=0, max_digits=4, decimal_places=2)], ["12.25", "0.01"]),
    (pydantic.FiniteFloat, ["1.5", "-2e308"]),
    (Annotated[float, pydantic.Field(gt=0.1, lt=0.3)], ["0.11", "0.29999"]),
    (Annotated[int, pydantic.Field(ge=-5, multiple_of=3)], ["3", "-3", "300"]),
    (ipaddress.IPv6Address, ['"fe80::1:2"', '"1:2:3:4:5:6:7:8"', '"::ffff:1.2.3.4"']),
    (dict[datetime.date, int], ['{"2024-02-29": 1}']),
    (dict[int, int], ['{"1":2,"-3":4}']),
    (Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=2)], ['"a b"']),
    (Annotated[bytes, pydantic.Field(min_length=2, max_length=3)], ['"abc"']),
    (Literal["a", 1, True], ["1", "true"]),
]


@pytest.mark.parametrize(("type_", "texts"), SHAPES, ids=[describe(row[0]) for row in SHAPES])
def test_members_are_values(type_: Any, texts: list[str]) -> None:
    """Whatever the language has, the type takes: texts changed in a few places."""
    draw = random.Random(str(type_))
    language, adapter = PythonType(type_), pydantic.TypeAdapter(type_)
    members = 0
    for _ in range(4000):
        text = draw.choice(texts)
        for _ in range(draw.randrange(4)):
            at = draw.randrange(len(text) + 1)
            sign = draw.choice('0123456789-+.:TZzPYMWDHSaf" ,{}é\u00a0\u0085\ufeff\x1c\u0661eE')
            text = text[:at] + draw.choice([sign, "", sign]) + text[at + draw.randrange(2) :]
        if language.matches(text):
            members += 1
            adapter.validate_json(text)
    assert members > 100


def book(title: str, seats: Annotated[int, pydantic.Field(ge=1)] = 1, *, on: datetime.date) -> None:
    """Book seats."""


def test_functions() -> None:
    language = PythonType(book)
    assert '"description":"Book seats."' in language.schema
    assert not language.matches('{"title": "a"}')
    arguments = language.value('{"title": "a", "on": "2026-01-02"}')
    assert arguments == {"title": "a", "on": datetime.date(2026, 1, 2)}
    full = PythonType(book, property_order="any").value(
        '{"on": "2026-01-02", "title": "a", "seats": 3}'
    )
    assert full == {"title": "a", "seats": 3, "on": datetime.date(2026, 1, 2)}

    class Desk:
        def ask(self, schema: str, model_name: int) -> str:
            return schema * model_name

    desk = Desk()
    asked: Any = PythonType(desk.ask).value('{"schema": "a", "model_name": 2}')
    assert desk.ask(**asked) == "aa"


def test_functions_that_are_refused() -> None:
    def untyped(a, b: int) -> None: ...  # type: ignore[no-untyped-def]
    def many(*values: int) -> None: ...
    def named(**values: int) -> None: ...
    def unnamed(value: int, /) -> None: ...

    with pytest.raises(ArgumentError, match="'a' of untyped must have an annotation"):
        PythonType(untyped)
    for function in (many, named, unnamed):
        with pytest.raises(ArgumentError, match="must have a name"):
            PythonType(function)


@pytest.mark.parametrize(
    "type_",
    [
        type[int],
        Callable[[], int],
        int | Callable[[], int],
        dict[float, int],
        dict[tuple[int, int], int],
        range,
        Regex,
    ],
    ids=describe,
)
def test_types_without_json(type_: Any) -> None:
    with pytest.raises(ArgumentError):
        PythonType(type_)


def test_wrong_arguments() -> None:
    for wrong in ("int", 3, None, [int], Choice(["a"])):
        with pytest.raises(ArgumentError, match="must be a type"):
            PythonType(wrong)
    for options in ({"resources": {}}, {"formats": False}, {"property_order": "no"}):
        with pytest.raises(ArgumentError):
            PythonType(int, **options)


def test_code_is_named_in_notes() -> None:
    class Even(pydantic.BaseModel):
        number: int

        @pydantic.field_validator("number")
        @classmethod
        def is_even(cls, number: int) -> int:
            if number % 2:
                raise ValueError("odd")
            return number

    @dataclass
    class Made:
        number: int

        def __post_init__(self) -> None: ...

    language = PythonType(Even)
    assert "is_even" in language.notes[0].message
    assert language.value('{"number": 2}') == Even(number=2)
    with pytest.raises(TokenError, match="odd"):
        language.value('{"number": 1}')
    assert "Made" in PythonType(Made).notes[0].message
    assert "bounds of dates" in PythonType(pydantic.PastDate).notes[0].message
    spaced = PythonType(Annotated[str, pydantic.Field(pattern=r"^\s+$")])
    assert spaced.notes == ()
    assert spaced.matches('"\u3000"')
    assert not spaced.matches('"\ufeff"')
    assert (
        "doubles" in PythonType(Annotated[float, pydantic.Field(multiple_of=0.1)]).notes[0].message
    )
    assert PythonType(Person).notes == PythonType(list[Cat]).notes == ()


Count = NewType("Count", int)
Nested = TypeAliasType("Nested", "list[Nested] | int")


def test_a_type_is_a_language() -> None:
    for type_ in (int, list[int], int | None, Literal["a"], Count, Nested, Any, book, Point):
        assert as_language(type_) == PythonType(type_)
    assert as_language(Nested).matches("[[1], 2]")
    with pytest.raises(LanguageError):
        as_language(3)
    with pytest.raises(LanguageError):
        as_language("int")


def test_values_of_the_class() -> None:
    language = PythonType(Person, property_order="any", max_whitespace=0)
    for again in (copy.copy(language), pickle.loads(pickle.dumps(language))):  # noqa: S301
        assert again == language
        assert hash(again) == hash(language)
        assert again.type is Person
    assert repr(language) == "PythonType(Person, property_order='any', max_whitespace=0)"
    assert repr(PythonType(list[int])) == "PythonType(list[int])"
    assert language != PythonType(Person)
    other = type("Point", (), {"__annotations__": {"x": int, "y": int}, "y": 0})
    assert PythonType(dataclass(other)) != PythonType(Point)


def model() -> TableModel:
    pieces = [b'{"', b"x", b"y", b'":', b"1", b',"', b"}", b"<end>"]
    vocabulary = Vocabulary.from_tokens(pieces, end_token_ids=[7])
    return TableModel(vocabulary, {}, default=[1 / 8] * 8)


def test_generate_returns_values() -> None:
    for seed in range(5):
        made = generate(model(), None, Point, max_tokens=30, finish=True, seed=seed)
        assert isinstance(made.value, Point)
        assert str(made.value.x) in made.text
    chosen = generate(model(), None, list[Literal[1]] | dict[str, int], max_tokens=9, finish=True)
    assert isinstance(chosen.value, dict)


def test_typed_dictionaries_of_the_standard_library_say_what_to_do() -> None:
    if sys.version_info >= (3, 12):
        pytest.skip("they are as good as the others from Python 3.12 on")
    import typing

    with pytest.raises(ArgumentError, match="typing_extensions"):
        PythonType(typing.TypedDict("Old", {"a": int}))
    assert PythonType(TypedDict("New", {"a": int})).matches('{"a": 1}')


def test_without_pydantic() -> None:
    code = (
        "import sys; sys.modules['pydantic'] = None\n"
        "from formalm import ArgumentError, PythonType\n"
        "try: PythonType(int)\n"
        "except ArgumentError as error: print(error.hint)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "formalm[pydantic]" in done.stdout
