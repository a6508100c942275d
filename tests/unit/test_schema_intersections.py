"""Schemas that a regular language restricts: masks against the list of all members."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from formalm import Constraint, JsonSchema, Regex, Vocabulary

PIECES = ['{"', '":', ',"', '"}', "a", "b", "ab", "aa", '"', ":1", ":2,", "}", "{", "{}", "1", "2"]

TOKENS = [piece.encode() for piece in PIECES]

OBJECTS: list[Any] = [
    {"type": "object", "additionalProperties": {"enum": [1, 2]}},
    {
        "properties": {"a": {"const": 1}, "ab": {"const": 2}},
        "required": ["ab"],
        "additionalProperties": {"enum": [1, 2]},
    },
    {"propertyNames": {"pattern": "b"}, "additionalProperties": {"const": 2}},
    {"patternProperties": {"^a": {"const": 1}}, "maxProperties": 1},
]

PATTERNS = {
    r'\{("[ab]{1,2}":[12](,"[ab]{1,2}":[12])?)?\}': (0, 1, 2),
    r'\{"[ab]{1,2}":1,"[ab]{1,2}":[12]\}': (2,),
    r'\{"a{1,2}":1,"a{1,2}":1\}': (2,),
    r'\{"(a|b)b?":[12](,"ab?":[12])?,"b":2\}': (2, 3),
}


def texts(counts: tuple[int, ...]) -> list[str]:
    """Returns objects of short names, those that repeat a name included."""
    names = ["a", "b", "aa", "ab", "ba", "bb"]
    found = []
    for count in counts:
        for chosen in itertools.product(itertools.product(names, (1, 2)), repeat=count):
            found.append("{" + ",".join(f'"{name}":{value}' for name, value in chosen) + "}")
    return found


@pytest.mark.parametrize("schema", OBJECTS, ids=json.dumps)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_name_is_allowed_where_some_member_continues_so(schema: Any, pattern: str) -> None:
    language = JsonSchema(schema, separators=(",", ":"))
    regular = Regex(pattern)
    members = [
        text
        for text in texts(PATTERNS[pattern])
        if regular.matches(text) and language.matches(text)
    ]
    both = language & regular
    if not members:
        assert both.is_empty()
        return
    vocabulary = Vocabulary.from_tokens([*TOKENS, None], end_token_ids=[len(TOKENS)])
    matcher = Constraint(both, vocabulary).matcher()
    open_texts, read = [""], {""}
    while open_texts:
        text = open_texts.pop()
        matcher.reset()
        matcher.advance_bytes(text.encode())
        expected = [
            number
            for number, piece in enumerate(PIECES)
            if any(member.startswith(text + piece) for member in members)
        ]
        if text in members:
            expected.append(len(PIECES))
        assert matcher.allowed_token_ids().tolist() == expected, text
        for number in expected:
            longer = text + (PIECES[number] if number < len(PIECES) else "")
            if longer not in read:
                read.add(longer)
                open_texts.append(longer)
    assert len(read) > 10
