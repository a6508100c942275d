"""Patterns of Rust's ``regex`` crate, against Pydantic, which validates with that crate."""

from __future__ import annotations

import copy
import json
import re
from typing import Annotated

import pydantic
import pydantic_core
import pytest

from formalm import JsonSchema, Regex
from formalm.errors import ArgumentError, LanguageError

TEXTS = [
    *("", "a", "b", "aB", "ab", "bcd", "é", "aé b", "1", "٣", "a1", "x\n", "x\ny", "K", "\u212a"),
    *("-", "]", "a\u0301", "\u200c", "😀", "_", "a-b", "\r\n"),
]
PATTERNS = [
    *(r"[[:alpha:]]+", r"^[[:alpha:]]+$", r"^[a-z&&[^aeiou]]+$", r"^[\w--\d]+$", r"^[\w~~\d]+$"),
    *(
        r"^\p{Greek}|\d$",
        r"\x{e9}",
        r"(?i)^k$",
        r"(?m)^y$",
        r"^x$",
        r"^x\n?$",
        r"(?x) ^ a [ b ] $ # c",
    ),
    *(r"^\w+$", r"^(?-u:\w)+$", r"\bb", r"\Bb", r"^\b{start}a", r"^.$", r"^(?s:.)$", r"^(?U:a+)"),
    *(r"^[^\s]*$", r"^(?<n>a)(?P<m>b)?$", r"a{0,2}", r"^[]]$", r"^\W\z", r"^$"),
]


def pydantic_finds(pattern: str, text: str) -> bool:
    adapter = pydantic.TypeAdapter(Annotated[str, pydantic.Field(pattern=pattern)])
    try:
        adapter.validate_python(text)
    except pydantic.ValidationError:
        return False
    return True


@pytest.mark.parametrize("pattern", PATTERNS)
def test_schemas_search_as_pydantic_does(pattern: str) -> None:
    asked = {"dialect": "rust", "pattern": pattern}
    schema = JsonSchema({"type": "string", "x-formalm-pattern": asked})
    assert not schema.notes
    for text in TEXTS:
        written = json.dumps(text, ensure_ascii=False)
        assert schema.matches(written) == pydantic_finds(pattern, text), text


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_whole_string_is_matched(pattern: str) -> None:
    language = Regex(pattern, dialect="rust") | Regex("never")
    end = "\n" if pattern.startswith("(?x)") else ""
    for text in TEXTS:
        expected = pydantic_finds(rf"\A(?:{pattern}{end})\z", text)
        assert language.matches(text) == expected, text


@pytest.mark.parametrize(
    ("pattern", "part", "span"),
    [
        ("é(?=a)", "look-around", (1, 4)),
        (r"(a)\1", "backreferences", (3, 5)),
        (r"(?-u:\xff)", "UTF-8", (5, 9)),
        (r"é\p{Nope}", "property", (1, 9)),
        ("[a", "unclosed", (0, 1)),
    ],
)
def test_patterns_that_the_rust_crate_rejects_are_refused_with_their_span(
    pattern: str, part: str, span: tuple[int, int]
) -> None:
    with pytest.raises(pydantic_core.SchemaError):
        pydantic_finds(pattern, "")
    with pytest.raises(LanguageError, match=part) as caught:
        Regex(pattern, dialect="rust")
    assert caught.value.span == span
    schema = JsonSchema({"x-formalm-pattern": {"dialect": "rust", "pattern": pattern}})
    with pytest.raises(LanguageError, match="x-formalm-pattern"):
        schema.shortest()


def test_flags_are_those_of_the_crate() -> None:
    language = Regex("a . # dot", re.I | re.S | re.X, dialect="rust")
    assert language.matches("A\n")
    shown = "Regex('a . # dot', flags=re.IGNORECASE | re.DOTALL | re.VERBOSE, dialect='rust')"
    assert repr(language) == shown
    assert copy.deepcopy(language) == language
    with pytest.raises(LanguageError, match="ascii"):
        Regex("a", re.A, dialect="rust")
    with pytest.raises(ArgumentError, match=r"dialect must be one of python, .*, rust"):
        Regex("a", dialect="pcre")


@pytest.mark.parametrize("method", ["search", "match", "fullmatch"])
@pytest.mark.parametrize("pattern", ["a|ab", "b", "^b$", "a{,2}", "[^]a]", r"\w\Z", "(?<=a)b", ""])
def test_patterns_of_python_are_found_by_each_of_its_methods(method: str, pattern: str) -> None:
    for letters in ("", "i", "ms", "a", "x"):
        flags = sum(getattr(re, letter.upper()) for letter in letters)
        asked = {"dialect": "python", "pattern": pattern, "method": method, "flags": letters}
        schema = JsonSchema({"type": ["string", "null"], "x-formalm-pattern": asked})
        for text in TEXTS:
            expected = getattr(re.compile(pattern, flags), method)(text) is not None
            assert schema.matches(json.dumps(text, ensure_ascii=False)) == expected, (letters, text)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        (1, "#/x-formalm-pattern)"),
        ({}, "#/x-formalm-pattern)"),
        ({"pattern": "a"}, "#/x-formalm-pattern)"),
        ({"pattern": "a", "dialect": "perl"}, "#/x-formalm-pattern/dialect"),
        ({"pattern": "a", "dialect": 1}, "#/x-formalm-pattern/dialect"),
        ({"pattern": "a", "dialect": "rust", "flag": "i"}, "#/x-formalm-pattern/flag"),
        ({"pattern": "a", "dialect": "rust", "flags": "u"}, "#/x-formalm-pattern/flags"),
        ({"pattern": "a", "dialect": "rust", "method": "find"}, "#/x-formalm-pattern/method"),
        ({"pattern": "(", "dialect": "rust"}, "#/x-formalm-pattern/pattern"),
    ],
)
def test_a_pattern_annotation_holds_a_known_dialect_and_nothing_else(
    value: object, place: str
) -> None:
    schema = JsonSchema({"x-formalm-pattern": value})
    with pytest.raises(LanguageError, match="x-formalm-pattern") as caught:
        schema.shortest()
    assert place in str(caught.value)
