"""Strings: every spelling of every kind of character, and lengths at their edges."""

import json

import pytest

from formalm import JsonSchema

#: One of each kind: escaped by name, control, plain, of two, three and four bytes.
CHARACTERS = ['"', "\\", "/", "\b", "\f", "\n", "\r", "\t", "\0", "\x1f", " ", "a", "\x7f"]
CHARACTERS += ["é", "€", "\u2028", "\ufeff", "\uffff", "😀", "\U0010ffff"]
NAMED = {'"': '"', "\\": "\\", "/": "/", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


def spellings(c: str) -> list[str]:
    """All ways in which JSON may spell a character."""
    units = c.encode("utf-16-be")
    pairs = [units[at : at + 2].hex() for at in range(0, len(units), 2)]
    ways = [
        "".join("\\u" + pair for pair in pairs),
        "".join("\\u" + pair.upper() for pair in pairs),
    ]
    if c in NAMED:
        ways.append("\\" + NAMED[c])
    if c >= " " and c not in '"\\':
        ways.append(c)
    return list(dict.fromkeys(ways))


@pytest.mark.parametrize("c", CHARACTERS)
def test_every_spelling_is_read_as_the_character(c: str) -> None:
    only = JsonSchema({"const": c}, escapes="any")
    other = JsonSchema({"type": "string", "not": {"const": c}}, escapes="any")
    free = {kind: JsonSchema({"type": "string"}, escapes=kind) for kind in ("minimal", "ascii")}
    taken = dict.fromkeys(free, 0)
    for way in spellings(c):
        text = f'"{way}"'
        assert json.loads(text) == c
        assert only.matches(text) and not other.matches(text), text  # noqa: PT018
        data = text.encode()
        assert all(only.is_viable(data[:end]) for end in range(len(data)))
        for kind, language in free.items():
            taken[kind] += language.matches(text)
    # The stricter policies have one spelling of each, up to the case of digits.
    assert all(1 <= count <= 2 for count in taken.values()), taken


@pytest.mark.parametrize("lone", ["\\ud83d", "\\ude00", "\\ud83d\\u0041", "\\ude00\\ud83d"])
def test_lone_surrogates_are_no_text(lone: str) -> None:
    language = JsonSchema({"type": "string"}, escapes="any")
    assert not language.matches(f'"{lone}"')
    assert not language.is_viable(f'"{lone}"')


@pytest.mark.parametrize("c", ["a", "é", "😀", "\n"])
def test_lengths_count_characters(c: str) -> None:
    for most in (0, 1, 2, 7):
        language = JsonSchema(
            {"minLength": min(most, 2), "maxLength": most, "type": "string"}, escapes="any"
        )
        for count in range(most + 3):
            for way in spellings(c):
                text = '"' + way * count + '"'
                assert language.matches(text) == (min(most, 2) <= count <= most), text
                assert language.is_viable(text[:-1]) == (count <= most), text
