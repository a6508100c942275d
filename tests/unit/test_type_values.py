"""Values of Python types: their JSON, and values without any."""

import base64
import enum
import json
import sys
from decimal import Decimal
from typing import Annotated, Literal

import pydantic
import pytest

from formalm import ArgumentError, PythonType


class Tagged(enum.Enum):
    """One value has no JSON that Pydantic reads as it."""

    number = 1
    raw = b"raw"


@pytest.mark.parametrize(
    "type_", [Literal[b"x"], Literal["a", b"\xff"], list[Tagged], Literal[Tagged.number]]
)
def test_values_without_a_json_form_are_refused(type_: object) -> None:
    with pytest.raises(ArgumentError, match="no JSON is read as"):
        PythonType(type_)


def test_base64_is_a_pattern() -> None:
    for type_, decode in (
        (pydantic.Base64Bytes, base64.b64decode),
        (pydantic.Base64UrlBytes, base64.urlsafe_b64decode),
    ):
        language = PythonType(type_)
        assert language.notes == ()
        for value in (b"", b"a", b"ab", b"abc", b"\xfb\xef\xff\x3e"):
            text = pydantic.TypeAdapter(type_).dump_json(value)
            assert language.value(text) == value == decode(json.loads(text))
        for wrong in ('"a"', '"ab==x"', '"ab="', '"a b="', '"YQ==="', '"===="'):
            assert not language.matches(wrong)
        for text in language.sample(30, seed=1):
            assert language.value(text) == decode(json.loads(text))
    # A text has to be UTF-8 besides, which a pattern cannot say.
    assert "decode_str" in PythonType(pydantic.Base64Str).notes[0].message


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "email_validator", None)
    # Pydantic remembers that it imported the package.
    monkeypatch.setattr("pydantic.networks.email_validator", None, raising=False)
    with pytest.raises(ArgumentError, match="needs a package: email-validator"):
        PythonType(list[pydantic.EmailStr])


def test_bounds_of_doubles_apply_where_no_others_are_given() -> None:
    def decimals(**asked: object) -> PythonType:
        return PythonType(Annotated[Decimal, pydantic.Field(**asked)])  # type: ignore[arg-type]

    large = "1" + "0" * 400
    for language in (decimals(ge=0), decimals(gt=-Decimal(large)), decimals(decimal_places=2)):
        assert not language.matches(large)
        assert language.matches("7")
    assert not decimals(le=0).matches(f"-{large}")
    assert "e308" not in decimals(max_digits=4, decimal_places=2).schema.lower()
    assert "e308" not in decimals(ge=0, lt=5).schema.lower()
    bounded = Annotated[float, pydantic.Field(allow_inf_nan=False, ge=0)]
    assert not PythonType(bounded).matches(large)
    assert PythonType(bounded).matches("1.5")
