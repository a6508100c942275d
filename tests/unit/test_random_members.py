"""Members drawn by random walks: of every kind of language, by seed, bounded, varied."""

import json

import pytest

from formalm import (
    ArgumentError,
    CallFormat,
    Choice,
    Grammar,
    JsonSchema,
    Language,
    LanguageError,
    Regex,
    StringLiteral,
    ToolCalls,
)
from tests.support.parsers import Reading

NESTED = 'start: "(" start ")" | start start | "x" |'
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "born": {"type": "string", "format": "date"}},
    "required": ["name"],
}
LANGUAGES = [
    Regex("[a-z]+@[a-z]+[.](com|org)"),
    Regex("(é|€|😀)*x"),
    Choice(["yes", "no"]),
    Grammar(NESTED),
    Grammar('start: NAME ("=" NAME)*\nNAME: /[a-z]+/\n%ignore " "'),
    JsonSchema(PERSON),
    JsonSchema(PERSON, property_order="any", max_whitespace=0),
    JsonSchema(True, escapes="any"),
    StringLiteral("<") + JsonSchema(PERSON) + StringLiteral(">"),
    Grammar(NESTED) & Regex("[(x)]{2,9}"),
    ToolCalls({"find": JsonSchema(PERSON)}, CallFormat("{name}({arguments})", "<call>", "</call>")),
]


@pytest.mark.parametrize("language", LANGUAGES, ids=lambda one: repr(one)[:40])
@pytest.mark.parametrize("random_bytes", [0, 7, 60])
def test_what_is_drawn_is_a_member(language: Language, random_bytes: int) -> None:
    drawn = language.sample(12, seed=3, random_bytes=random_bytes)
    assert all(language.matches(text) for text in drawn)
    assert language.sample(5, seed=3, random_bytes=random_bytes) == drawn[:5]
    if random_bytes == 0:
        shortest = language.shortest()
        assert {text.encode() if isinstance(text, str) else text for text in drawn} == {shortest}
    if random_bytes == 60:
        assert len(set(drawn)) > 1
        assert language.sample(12, seed=4, random_bytes=60) != drawn or len(set(drawn)) < 3


def test_random_walks_that_do_not_end_are_completed() -> None:
    deep = Grammar('start: "(" start start ")" | "x" start')
    with pytest.raises(LanguageError):
        deep.sample(1)
    twice = Grammar('start: "(" start start start ")" | "x"')
    lengths = [len(text) for text in twice.sample(30, seed=1, random_bytes=50)]
    assert max(lengths) > 50
    assert max(lengths) < 50 + 3 * 50 + 1
    tree = {"anyOf": [{"type": "null"}, {"type": "array", "minItems": 3, "items": {"$ref": "#"}}]}
    for text in JsonSchema(tree).sample(20, seed=2, random_bytes=80):
        json.loads(text)


def test_draws_are_varied() -> None:
    people = JsonSchema(PERSON).sample(200, seed=1)
    values = [json.loads(text) for text in people]
    assert len({value["name"] for value in values}) > 100
    assert any("born" in value for value in values)
    assert any(len(value["name"]) > 5 for value in values)
    assert any(not value["name"].isascii() for value in values)
    kinds = {type(json.loads(text)) for text in JsonSchema(True).sample(100, seed=1)}
    assert kinds == {dict, list, str, int, float, bool, type(None)}


def test_every_short_member_is_drawn_sooner_or_later() -> None:
    language = Regex("a{0,2}|[b-d]x?")
    assert set(language.sample(500, seed=5)) == set(language.to_automaton())


def test_a_member_that_is_not_utf8_is_bytes() -> None:
    assert StringLiteral(b"\xff").sample(2, seed=0) == [b"\xff", b"\xff"]


def test_languages_that_cannot_be_sampled_are_errors() -> None:
    with pytest.raises(LanguageError):
        Choice([]).sample(1)
    with pytest.raises(LanguageError, match="parser"):
        Reading().sample(1)
    for wrong in ({"n": -1}, {"n": 1.5}, {"n": 1, "seed": -1}, {"n": 1, "random_bytes": -1}):
        with pytest.raises(ArgumentError):
            Regex("a").sample(**wrong)
    with pytest.raises(ArgumentError):
        Regex("a").sample(1, seed="x")
    assert Regex("a").sample(0) == []


def test_numbers_are_seldom_beyond_a_double() -> None:
    texts = [
        str(text) for text in JsonSchema({"type": "number"}, max_whitespace=0).sample(400, seed=1)
    ]
    exponents = [text.lower().partition("e")[2] for text in texts]
    assert sum(bool(exponent) for exponent in exponents) > 40
    assert sum(len(exponent.strip("+-")) > 2 for exponent in exponents) < 20
    assert sum(json.loads(text) in (float("inf"), float("-inf")) for text in texts) < 10
    # Every member can be drawn, and what asks for more digits gets them.
    assert all(len(str(text)) > 6 for text in Regex("1e[0-9]{5,}").sample(50, seed=2))
