"""Schemas made to be large or ambiguous are exact.

How long they take is measured by ``benches.schema_worst``.
"""

import json
from random import Random
from time import process_time

import pytest

from formalm import Constraint, JsonSchema, LanguageError, LimitError, Vocabulary


def walked(schema: object, text: str, tokens: int = 3) -> bool:
    """Whether a text is accepted when it is read in pieces that masks allow."""
    pieces = [text[at : at + tokens] for at in range(0, len(text), tokens)]
    words: list[bytes | None] = [piece.encode() for piece in sorted(set(pieces))]
    vocabulary = Vocabulary.from_tokens([*words, None], end_token_ids=[len(words)])
    language = JsonSchema(json.dumps(schema), property_order="any", max_whitespace=0)
    matcher = Constraint(language, vocabulary).matcher()
    for piece in pieces:
        token = words.index(piece.encode())
        if not matcher.mask()[token]:
            return False
        matcher.advance(token)
    return matcher.is_accepting


def compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def branch(number: int) -> dict[str, object]:
    """One of many objects that only its last member tells apart."""
    value = "string" if number % 2 else "integer"
    return {
        "type": "object",
        "properties": {"value": {"type": value}, "kind": {"const": f"k{number}"}},
        "required": ["kind"],
        "additionalProperties": False,
    }


def tool(number: int) -> dict[str, object]:
    arguments = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    properties = {"name": {"const": f"tool_{number}"}, "arguments": arguments}
    return {"type": "object", "properties": properties, "required": ["name", "arguments"]}


WIDE = {"oneOf": [branch(number) for number in range(50)]}
TOOLS = {"anyOf": [tool(number) for number in range(400)]}
RANGES = {"oneOf": [{"minimum": at * 10, "maximum": at * 10 + 12} for at in range(12)]}
LONG = {"type": "string", "minLength": 90_000, "maxLength": 100_000}
ENUM = {"enum": [f"value-{number}" for number in range(10_000)]}
UNIQUE = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        (ENUM, "value-9999", "value-10000"),
        (WIDE, {"value": "x", "kind": "k33"}, {"value": "x", "kind": "k32"}),
        (WIDE, {"kind": "k32", "value": 1}, {"kind": "k50"}),
        (RANGES, 17, 11),
        (TOOLS, {"name": "tool_399", "arguments": {"a": "x"}}, {"name": "tool_400"}),
        (UNIQUE, [f"item {at}" for at in range(60)], [*map(str, range(30)), "7"]),
    ],
)
def test_large_schemas_are_exact(schema: object, good: object, bad: object) -> None:
    assert walked(schema, compact(good))
    assert not walked(schema, compact(bad))


def test_long_counts_are_not_counted_ahead() -> None:
    language = JsonSchema(LONG, max_whitespace=0)
    assert language.matches(compact("x" * 90_000))
    assert not language.matches(compact("x" * 89_999))
    assert not language.is_viable('"' + "x" * 100_001)
    tokens: list[bytes | None] = [b'"', b"xx", b'x"', None]
    matcher = Constraint(language, Vocabulary.from_tokens(tokens, end_token_ids=[3])).matcher()
    matcher.advance(0)
    assert matcher.allowed_token_ids().tolist() == [1]
    matcher.advance_bytes(b"x" * 89_999)
    assert matcher.allowed_token_ids().tolist() == [1, 2]
    matcher.advance_bytes(b"x" * 10_000)
    assert matcher.allowed_token_ids().tolist() == [0, 2]


@pytest.mark.parametrize(
    ("pattern", "begun", "goes_on"),
    [
        (r"(?<!\\)\$\{(.*?)\}", "${a}", False),
        (r"(?<!\\)\$\{(.*?)\}", "${a", True),
        (r"(?<!\\)\$\{(.*?)\}", r"\\${a}", True),
        (r".*(?<!x)a|(?<!y)b.*", "xa", True),
        (r".*(?<!x)a|(?<!y)b.*", "a", False),
        (r".*(?<!x)a|(?<!y)b.*", "yb", True),
    ],
)
def test_excluded_substrings_are_not_enumerated(pattern: str, begun: str, goes_on: bool) -> None:
    schema = {"type": "string", "not": {"pattern": pattern}, "maxLength": 65_536}
    assert JsonSchema(schema).is_viable(f'"{begun}') == goes_on
    either = {"oneOf": [{"maxLength": 65_536, "pattern": pattern}, {"maxLength": 65_536}]}
    assert JsonSchema({"type": "string", **either}).is_viable(f'"{begun}') == goes_on


#: A clause's literals: a name and whether it must be there.
Clauses = list[list[tuple[int, bool]]]


def clauses(names: int, seed: int) -> Clauses:
    """Random clauses of three literals, as many as make the hardest formulas."""
    draw = Random(seed)
    count = names * 43 // 10
    return [
        [(name, draw.random() < 0.5) for name in draw.sample(range(names), 3)] for _ in range(count)
    ]


def formula(of: Clauses) -> dict[str, object]:
    """The objects that have the names that make all clauses true."""

    def literal(name: int, must: bool) -> object:
        has = {"required": [f"x{name}"]}
        return has if must else {"not": has}

    every = [{"anyOf": [literal(*one) for one in clause]} for clause in of]
    return {"type": "object", "allOf": every}


@pytest.mark.parametrize("names", [120, 200])
def test_bombs_end_in_a_limit_soon(names: int) -> None:
    """Steps are counted by what they cost, so that their limit is one of time as well."""
    start = process_time()
    with pytest.raises(LimitError):
        JsonSchema(formula(clauses(names, 1))).is_viable("{")
    assert process_time() - start < 10


def test_clauses_are_decided() -> None:
    """Brute force over all sets of six names."""
    kinds = set()
    for seed in range(20):
        of = clauses(6, seed)
        schema = formula(of)
        good = [
            chosen
            for chosen in range(64)
            if all(any(chosen >> name & 1 == must for name, must in one) for one in of)
        ]
        kinds.add(bool(good))
        language = JsonSchema(schema, property_order="any", max_whitespace=0)
        if not good:
            with pytest.raises(LanguageError):
                language.is_viable("{")
            continue
        for chosen in range(64):
            text = compact({f"x{at}": 1 for at in range(6) if chosen >> at & 1})
            assert language.matches(text) == (chosen in good), (seed, chosen)
    assert len(kinds) == 2


def patterns(names: list[str]) -> JsonSchema:
    """Members whose names match patterns."""
    rules = {name: {"minLength": at, "minimum": at} for at, name in enumerate(names)}
    return JsonSchema(
        {"type": "object", "patternProperties": rules}, property_order="any", max_whitespace=0
    )


@pytest.mark.parametrize("letters", ["abcdefg", "abcdefghijklmnop"])
def test_patterns_of_names_that_all_overlap_have_no_limit(letters: str) -> None:
    language = patterns(list(letters))
    assert language.matches('{"bad":"xyz"}')
    assert not language.matches('{"bad":"xy"}')
    assert language.is_viable('{"a')


def test_patterns_that_overlap_and_are_negated_have_a_limit() -> None:
    rules = {name: {"minLength": at} for at, name in enumerate("abcdefghijklmnop")}
    schema = {"type": "object", "not": {"patternProperties": rules}}
    with pytest.raises(LimitError, match="terms"):
        JsonSchema(schema, property_order="any", max_whitespace=0).is_viable('{"a')


def test_many_patterns_of_names_that_do_not_overlap_have_none() -> None:
    language = patterns([f"^{name}_" for name in "abcdefghijklmnopqrst"])
    assert language.matches('{"t_1":"nineteen characters"}')
    assert not language.matches('{"t_1":"fewer"}')
