"""Schemas restricted by regular languages of bounded length, against all members."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations, product
from typing import Any

import pytest

from formalm import (
    Choice,
    Constraint,
    JsonSchema,
    Language,
    LanguageError,
    LimitError,
    Regex,
    Vocabulary,
)
from formalm.models.canary import canary

TOKENS = [
    *(bytes([byte]) for byte in b'{}":,a'),
    *(b'{"', b'":', b'":"', b'"a', b'a"', b'","', b'"}', b'"}}', b"aaa", b'a":{"', b'","a":"'),
    *(b"{{", b'""'),
]
VOCABULARY = Vocabulary.from_tokens([*TOKENS, None], end_token_ids=[len(TOKENS)])


@lru_cache
def strings(size: int, content: str) -> list[str]:
    return [f'"{"".join(chars)}"' for chars in product(content, repeat=size - 2)]


@lru_cache
def objects(size: int, content: str) -> list[str]:
    """All texts of objects of that many bytes, whose values are strings or objects."""
    return ["{" + text + "}" for text in lists(size - 2, content, frozenset())]


@lru_cache
def lists(size: int, content: str, used: frozenset[str]) -> list[str]:
    """All lists of that many bytes of properties with other names than the used ones."""
    found = [""] if size == 0 else []
    for end in range(2, size):
        for name in strings(end, content):
            if name in used:
                continue
            found += properties(size, content, used | {name}, f"{name}:")
    return found


def properties(size: int, content: str, used: frozenset[str], begun: str) -> Iterator[str]:
    left = size - len(begun)
    for length in range(2, left + 1):
        rest = left - length
        if rest == 1:
            continue
        further = [""] if rest == 0 else [f",{text}" for text in lists(rest - 1, content, used)]
        if rest and further == [","]:
            continue
        for value in strings(length, content) + objects(length, content):
            for more in further:
                yield begun + value + more


CONTENT = {
    "any": ("{}:,a", {"additionalProperties": {"type": ["string", "object"],
            "additionalProperties": {"$ref": "#/additionalProperties"}}}),
    "few": ("a", {"$defs": {"value": {"type": ["string", "object"], "pattern": "^a*$",
            "propertyNames": {"pattern": "^a*$"},
            "additionalProperties": {"$ref": "#/$defs/value"}}}, "$ref": "#/$defs/value"}),
}  # fmt: skip


@pytest.mark.parametrize(
    ("content", "least", "most", "required"),
    [
        ("any", 5, 10, []),
        ("any", 9, 9, []),
        ("any", 2, 12, ["a"]),
        ("few", 8, 18, []),
        ("few", 20, 20, []),
        ("few", 14, 24, ["aa"]),
        ("few", 8, 12, ["aa", "a"]),
    ],
)
@pytest.mark.parametrize("combined", [False, True])
def test_masks_lead_to_exactly_the_members(
    content: str, least: int, most: int, required: list[str], combined: bool
) -> None:
    letters, schema = CONTENT[content]
    described: dict[str, Any] = {"type": "object", "required": required, **schema}
    language: Language = JsonSchema(described, property_order="any", max_whitespace=0)
    if combined:
        # No token spells the other member.
        language |= Choice(["zzzzzzzzz"])
    language &= Regex(f'[{{}}":,az]{{{least},{most}}}')
    members = {
        text
        for size in range(least, most + 1)
        for text in objects(size, letters)
        if all(f'"{name}"' in top_names(text) for name in required)
    }
    if not members and not combined:
        with pytest.raises(LanguageError):
            Constraint(language, VOCABULARY)
        return
    begun = sorted({text[:end] for text in members for end in range(len(text) + 1)})
    known = set(begun)
    constraint = Constraint(language, VOCABULARY)
    for prefix in random.Random(1).sample(begun, min(len(begun), 1500)):
        matcher = constraint.matcher()
        for byte in prefix.encode():
            matcher.advance(TOKENS.index(bytes([byte])))
        mask = matcher.mask()
        allowed = [prefix + token.decode() in known for token in TOKENS]
        assert mask.tolist() == [*allowed, prefix in members], prefix


def top_names(text: str) -> set[str]:
    """Return the names of the outermost object, with their quotation marks."""
    names, depth, at = set(), 0, 0
    while at < len(text):
        if text[at] == '"':
            end = text.index('"', at + 1) + 1
            if depth == 1 and text[end : end + 1] == ":":
                names.add(text[at:end])
            at = end
            continue
        depth += {"{": 1, "}": -1}.get(text[at], 0)
        at += 1
    return names


def test_names_of_a_real_vocabulary_leave_room_for_the_rest() -> None:
    """After a name there are four more bytes at least: its end, a colon, a digit and the end."""
    vocabulary = canary().vocabulary
    language = JsonSchema({"type": "object"}, max_whitespace=0) & Regex("[ -~]{5,9}")
    plain = re.compile(rb"[ !#-\[\]-~]+")
    matcher = Constraint(language, vocabulary).matcher()
    tokens = [vocabulary.token_bytes(number) for number in range(len(vocabulary))]
    read = b""
    for byte in b'{"ab':
        mask = matcher.mask()
        for number, token in enumerate(tokens):
            if read[:2] == b'{"' and token is not None and plain.fullmatch(token):
                assert mask[number] == (len(read) + len(token) + 4 <= 9), token
        matcher.advance(tokens.index(bytes([byte])))
        read += bytes([byte])


ITEMS = [None, "x", "xy", True]
NAMES = ["a", "b", 'a"b', ""]
FINITE = {
    "array": (
        {"items": {"enum": ITEMS}, "uniqueItems": True},
        [list(items) for length in range(5) for items in permutations(ITEMS, length)],
    ),
    "object": (
        {
            "type": "object",
            "propertyNames": {"enum": NAMES},
            "additionalProperties": {"const": True},
        },
        [
            dict.fromkeys(names, True)
            for length in range(5)
            for names in permutations(NAMES, length)
        ],
    ),
}


@pytest.mark.parametrize("kind", FINITE)
@pytest.mark.parametrize(
    "pattern",
    [
        r"[\W\w]*",
        '.*"b".*"a".*',
        '.*"a".*"b".*"".*',
        r"\{\".\":.,\"a\":.*",
        r"[^,]*,[^,]*,[^,]*",
        ".{9,14}",
        r".*x.*,.*",
        r'.*"xy"(,.*)?\]',
        r".*(true|null)\]",
    ],
)
def test_what_may_not_be_repeated_is_masked(kind: str, pattern: str) -> None:
    schema, values = {"type": kind, **FINITE[kind][0]}, FINITE[kind][1]
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    texts = [json.dumps(value, separators=(",", ":")) for value in values]
    members = {text for text in texts if re.fullmatch(pattern, text)}
    letters = sorted({byte for text in texts for byte in text.encode()})
    tokens = [bytes([byte]) for byte in letters]
    tokens += [
        b'",',
        b'","',
        b'["',
        b'x"',
        b'xy"',
        b'a":',
        b'"b":t',
        b':true,"',
        b"e,",
        b",t",
        b"e}",
    ]
    vocabulary = Vocabulary.from_tokens(tokens)
    if not members:
        with pytest.raises((LanguageError, LimitError)):
            Constraint(language & Regex(pattern), vocabulary)
        return
    begun = {text[:end] for text in members for end in range(len(text) + 1)}
    constraint = Constraint(language & Regex(pattern), vocabulary)
    for prefix in random.Random(2).sample(sorted(begun), min(len(begun), 600)):
        matcher = constraint.matcher()
        matcher.advance_bytes(prefix.encode())
        allowed = [prefix + token.decode() in begun for token in tokens]
        assert matcher.mask().tolist() == allowed, prefix
