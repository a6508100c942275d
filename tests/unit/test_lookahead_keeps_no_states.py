"""A look-ahead keeps no states: the states kept are those of the input read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from formalm import Constraint, Grammar, JsonSchema, Language, Matcher, Regex, Vocabulary
from formalm.languages import Section, Structure
from formalm.models.canary import WEIGHTS

OPEN = {"type": "object"}
INTEGERS = {"type": "object", "additionalProperties": {"type": "integer"}}
NAMES = '{"ab":1,"cd":[2,"x"],"e f":3}'

#: Every kind of language whose states tell texts apart, with a text of it. Those of regular
#: languages are finite.
KINDS: dict[str, tuple[Callable[[], Language], str]] = {
    "open object": (lambda: JsonSchema(OPEN, max_whitespace=0), NAMES),
    "additionalProperties": (
        lambda: JsonSchema(INTEGERS, max_whitespace=0),
        '{"ab":1,"cd":22,"e":3}',
    ),
    "patternProperties": (
        lambda: JsonSchema(
            {
                "type": "object",
                "patternProperties": {"^a": {"type": "integer"}},
                "additionalProperties": False,
            },
            max_whitespace=0,
        ),
        '{"ab":1,"ac":22,"a":3}',
    ),
    "any order": (
        lambda: JsonSchema({**OPEN, "minProperties": 2}, property_order="any", max_whitespace=0),
        '{"b":1,"a":{"c":2}}',
    ),
    "uniqueItems": (
        lambda: JsonSchema(
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True}, max_whitespace=0
        ),
        '["ab","cd","e"]',
    ),
    "unique numbers": (
        lambda: JsonSchema(
            {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}, max_whitespace=0
        ),
        "[12,3,45]",
    ),
    "number bounds": (lambda: JsonSchema({"type": "number", "maximum": 12.5}), "11.25"),
    "grammar": (
        lambda: Grammar('start: sum\nsum: NUM | "(" sum "+" sum ")"\nNUM: /[0-9]+/\n'),
        "((1+22)+3)",
    ),
    "lexemes with priorities": (
        lambda: Grammar('start: (NAME | "if") ("," start)?\nNAME: /[a-z]+/\n%ignore / +/\n'),
        "if, iff,a",
    ),
    "schema in a grammar": (
        lambda: Grammar('start: "x" obj ("," obj)?\nobj: %json {"type":"object"}\n'),
        'x{"ab":1},{"c":[]}',
    ),
    "schema behind lexemes that forbid": (
        lambda: Grammar('start: NAME obj\nNAME: /[a-z]+/\nobj: %json {"type":"object"}\n'),
        'name{"ab":1}',
    ),
    "language in a grammar": (
        lambda: Grammar(
            '%declare inner\nstart: "<" inner ">"\n',
            languages={"inner": JsonSchema(OPEN, max_whitespace=0)},
        ),
        '<{"ab":1,"c":2}>',
    ),
    "row": (
        lambda: Regex("call: ") + JsonSchema(OPEN, max_whitespace=0) + Regex(";?"),
        f"call: {NAMES};",
    ),
    "choice": (lambda: JsonSchema(OPEN, max_whitespace=0) | Grammar('start: "{" "}"'), NAMES),
    "repetition": (
        lambda: (JsonSchema(INTEGERS, max_whitespace=0) + Regex("\n")).repeat(1, 3),
        '{"a":1}\n{"bc":2}\n',
    ),
    "beside a regular language": (
        lambda: Grammar('start: NUM | "(" start "+" start ")"\nNUM: /[0-9]+/') & Regex("[(0-3+)]*"),
        "((1+22)+3)",
    ),
    "structure": (
        lambda: Structure([Section("<n>", JsonSchema(OPEN, max_whitespace=0), "</n>")], maximum=2),
        'text <n>{"ab":1}</n> more',
    ),
}


#: Whose masks take a second each, as names in schemas within grammars are read byte by byte.
SLOW = {"schema in a grammar", "schema behind lexemes that forbid", "language in a grammar"}

CASES = [
    pytest.param(
        kind,
        tokenization,
        marks=[pytest.mark.slow] if kind in SLOW and tokenization == "canonical" else [],
    )
    for kind in KINDS
    for tokenization in ("all", "canonical")
]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.from_tokenizer_json(WEIGHTS / "tokenizer.json")


def states(constraint: Constraint) -> int:
    """The number of states that the machine of a constraint keeps."""
    return constraint._automaton(None).state_count


def look(matcher: Matcher, draw: list[int], *, completes: bool) -> None:
    """Ask all that can be asked of what may follow."""
    matcher.bitmask()
    for token in draw:
        matcher.allows(token)
    matcher.forced_bytes()
    if completes:
        for token in draw:
            matcher.core.explain(token)
        core, inner = matcher.constraint.core, matcher.core
        core.completion_mask(inner, 40)
        core.shortest_token_ids(inner, 60)


@pytest.mark.parametrize(("kind", "tokenization"), CASES)
def test_states_are_those_of_the_text_that_was_read(
    kind: str, tokenization: str, vocabulary: Vocabulary
) -> None:
    make, text = KINDS[kind]
    ids = vocabulary.encode(text)
    reading, looking = (Constraint(make(), vocabulary, tokenization=tokenization) for _ in range(2))
    reader, looker = reading.matcher(), looking.matcher()
    draw = [ids[-1], *range(7, len(vocabulary), len(vocabulary) // 9)]
    for token in ids:
        look(looker, draw, completes=tokenization == "all")
        reader.advance(token)
        looker.advance(token)
    look(looker, draw, completes=tokenization == "all")
    assert looker.is_accepting
    assert states(looking) == states(reading)


@pytest.mark.parametrize(("kind", "tokenization"), CASES)
def test_reading_the_same_input_again_takes_no_memory(
    kind: str, tokenization: str, vocabulary: Vocabulary
) -> None:
    make, text = KINDS[kind]
    ids = vocabulary.encode(text)
    constraint = Constraint(make(), vocabulary, tokenization=tokenization)
    sizes = []
    for _ in range(4):
        matcher = constraint.matcher()
        for token in ids:
            matcher.bitmask()
            matcher.advance(token)
        matcher.bitmask()
        sizes.append((states(constraint), constraint.memory_bytes))
    assert sizes[1] == sizes[2] == sizes[3]
    assert sizes[0][0] == sizes[1][0]
