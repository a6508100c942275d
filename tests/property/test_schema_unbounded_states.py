"""Masks of schemas that make a state of every input: host names, patterns, distinct items."""

import json
import random

import pytest

from formalm import Constraint, JsonSchema, Vocabulary
from tests.support.mask_walks import compare_masks

HOSTS = ["a", "-", ".", "xn", "--", "xn--", "Xn-", "b9", "a-", ".com", "é", "ü", "_", "a" * 9]
HOSTS += ["..", ".-", "n--", "N--a", "-" * 30, "-" * 70, "a-" * 20, '"a', '"xn--', '"-', '"a"']
HOSTS += ['"é', '"\\', '"a.b', '"a",', "\\u0061", "\\u002", "\\n"]
HOSTS += ["9", ".9", "-.", "a.b.c", "a" * 40, "abc-def", "tda", '"', '",', '"]', "\\", "\\u00fc"]
PATTERNS = ["a", "z", "-", "[", "]", "(", ")", "?", "*", "{", "}", ",", "3", "12", "|", "^", "b-a"]
PATTERNS += ["é", "€", "é-a", "\\", "\\\\", "\\\\d", "\\\\u", "00e9", "(?", "(?<", "n", ">", "(?:"]
PATTERNS += ["a)", "a]", "+?", "{2,", "1}", "(?<n>", "\\\\k<n>", "[a-", "[^", ")+", '"', '",', '"]']

HOST = {"type": "string", "format": "hostname"}
ADDRESSES = [
    *HOSTS,
    "1:2:3:4:5:6:7",
    "fd00:1234:5678:9abc:def0:1234:",
    '":',
    '"1.',
    ":",
    "::",
    "1",
    ".1",
    "127",
    "0.0.",
    "fe80",
    ":1",
    "a:b",
    "256",
]

FORMATS = [
    (HOST, HOSTS),
    ({**HOST, "maxLength": 200}, HOSTS),
    ({**HOST, "minLength": 4, "maxLength": 64}, HOSTS),
    ({**HOST, "minLength": 9, "maxLength": 12}, HOSTS),
    ({**HOST, "minLength": 40, "maxLength": 41}, HOSTS),
    ({**HOST, "minLength": 180, "maxLength": 230}, HOSTS),
    ({"anyOf": [HOST, {"type": "string", "format": "ipv4"}]}, ADDRESSES),
    ({"anyOf": [{**HOST, "maxLength": 9}, {"format": "ipv6"}], "type": "string"}, ADDRESSES),
    (
        {"anyOf": [{**HOST, "minLength": 3}, *({"format": f} for f in ("ipv6", "ipv4"))]},
        ADDRESSES,
    ),
    ({"anyOf": [HOST, {"pattern": "^a-*b*$"}], "type": "string"}, HOSTS),
    ({"type": "string", "format": "regex"}, PATTERNS),
]


def walk(language: JsonSchema, tokens: list[str], start: str, rng: random.Random) -> None:
    """Compare masks along a random walk with what tokens lead to."""
    encoded = [token.encode() for token in tokens] + [b"\xc3", b"\xa9", b"\xc3\xa9\xe2"]
    vocabulary = Vocabulary.from_tokens([*encoded, b"<end>"], end_token_ids=[len(encoded)])
    matcher = Constraint(language, vocabulary).matcher()
    matcher.advance_bytes(start.encode())

    def choose(allowed: list[int]) -> int | None:
        # Texts that go on for long are reached by leaving quotes for later.
        going = [one for one in allowed if b'"' not in encoded[one] or rng.random() < 0.1]
        return rng.choice(going) if going else None

    compare_masks(matcher, 14, choose)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("item", "tokens"), FORMATS)
def test_strings_of_formats(item: dict[str, object], tokens: list[str], seed: int) -> None:
    language = JsonSchema({"type": "array", "items": item}, max_whitespace=0)
    start = "[" if seed % 3 == 0 else '["'
    walk(language, tokens, start, random.Random(f"{item} {seed}"))


NAME_TOKENS = [
    "a",
    "b",
    "-",
    "A",
    "$",
    "ab",
    "ab-",
    "-A",
    "x",
    "é",
    "\\",
    "u0061",
    "\\u0061",
    "\\n",
]
NAME_TOKENS += [
    '"',
    '":',
    '":1',
    '":1,',
    '":1,"',
    '{"',
    "{",
    "}",
    ',"',
    '"}',
    "1",
    '1,"',
    "1}",
    'a":',
    'b":1',
]
NAME_TOKENS += ['b":1,"a', ":", ",", '"a', '"ab', '"$', '"ab-', '"\\u0061', '"ab":1', ',"a', '"x"']
NAME_PATTERNS = [
    {"^[a-b]{2}(-[A-Z]{2})?$": {"type": "integer"}, "^(?!\\$).*$": {"type": "integer"}},
    {"^a": {"type": "integer"}, "b$": {"type": "integer"}, "^ab?": {}},
    {"^a+$": {"type": "integer"}, "^[ab]$": {"const": 1}},
    {"^(a|ab|x)$": {"type": "integer"}, "x": {"enum": [1, 11]}, "^.$": {}},
]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("patterns", NAME_PATTERNS)
@pytest.mark.parametrize("more", [{}, {"properties": {"x": {"const": 1}, "aba": {}}}])
def test_names_of_patterns_that_overlap(
    patterns: dict[str, object], more: dict[str, object], seed: int
) -> None:
    schema = {"type": "object", "patternProperties": patterns, "additionalProperties": False}
    language = JsonSchema({**schema, **more}, max_whitespace=0, property_order="any")
    rng = random.Random(f"{patterns} {more} {seed}")
    start = rng.choice(["", '{"', '{"ab":1,"', '{"a":1,"ab', '{"x":1,"a'])
    walk(language, NAME_TOKENS, start if language.is_viable(start) else "", rng)


EXCLUSIONS = [
    r"^(?!(a|ab|b-)$).*$",
    r"^(?!.*--)\S*$",
    r"^(?![$_]).+$",
    r"^(?!a\u00e9).*b$",
    r"^(?=.*a)(?!b).{0,40}$",
    r"^(?!([a-b]{2}|x)$)[^\\\\]*$",
]
EXCLUDED = ["a", "b", "ab", "-", "--", "b-", "$", "_", "x", "é", " ", "\\", "u0061", "\\u0061"]
EXCLUDED += [
    "\\u00",
    "e9",
    "\\n",
    "\\\\",
    '"',
    '",',
    '"]',
    '"a',
    '"ab',
    '"$',
    '"\\',
    '"é',
    '"ab"',
    "aé",
]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("pattern", EXCLUSIONS)
def test_patterns_that_exclude_strings(pattern: str, seed: int) -> None:
    item = {"type": "string", "pattern": pattern}
    language = JsonSchema({"type": "array", "items": item}, max_whitespace=seed % 2)
    walk(language, EXCLUDED, "[" if seed % 3 == 0 else '["', random.Random(f"{pattern} {seed}"))


TEXT = {"type": "string"}
FEW = {"type": "string", "pattern": "^(a|ab|b[a-c]*|\\\\\\\\n?)$"}
PAIR = {"type": "object", "properties": {"a": TEXT, "b": {"type": "integer"}}}
CLOSED = {**PAIR, "additionalProperties": False, "required": ["a"]}
DISTINCT = [
    (TEXT, ["ab", "a", "b", "", "\\n"]),
    (FEW, ["a", "ab", "b", "ba", "bac"]),
    (PAIR, [{"a": "a"}, {"a": "b"}, {}, {"a": "a", "b": 1}]),
    (CLOSED, [{"a": "a"}, {"a": "b"}, {"a": "ab"}]),
    ({"anyOf": [TEXT, PAIR]}, ["a", {"a": "a"}, "ab", {}]),
    ({"type": "array", "items": TEXT, "uniqueItems": True}, [["a"], ["a", "b"], []]),
]
JOINS = ['"', ",", "[", "]", "{", "}", ":", "a", "b", "ab", "1", "\\\\", "\\n", '","', '","a']
JOINS += ['","ab', '"},{"', '"},{"a', '},{"a":"', '{"a":"a"},{', '["a"],["', '"],["', '"],["a"']
JOINS += [
    'a","b',
    '","\\',
    '","a","',
    '{},{"',
    '"a","a"',
    '"a","b"',
    '","b"',
    ',"a"',
    "},{",
    '",["',
]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("item", "values"), DISTINCT)
def test_tokens_that_join_distinct_items(item: object, values: list[object], seed: int) -> None:
    rng = random.Random(f"{item} {seed}")
    taken = json.dumps(rng.sample(values, rng.randint(0, 2)), separators=(",", ":"))[:-1]
    start = taken + "," if len(taken) > 1 else taken
    language = JsonSchema({"type": "array", "items": item, "uniqueItems": True}, max_whitespace=0)
    walk(language, JOINS, start, rng)
