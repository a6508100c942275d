"""Masks of concatenations, unions and repetitions of machines equal their definition."""

from random import Random

import pytest

from formalm import Constraint, Grammar, JsonSchema, Regex, StringLiteral, Vocabulary
from formalm.grammars import JSON
from formalm.languages import Language, free_text, until
from tests.support.mask_walks import compare_masks

OPEN = {"type": "object", "properties": {"ab": {"type": "integer"}}}
CLOSED = {**OPEN, "required": ["ab"], "additionalProperties": False}
PARTS: list[Language] = [
    JsonSchema(OPEN),
    JsonSchema(CLOSED, max_whitespace=0),
    JsonSchema({"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
    JsonSchema(
        {"type": "array", "items": {"maxLength": 2, "type": "string"}}, property_order="any"
    ),
    JsonSchema({"type": ["integer", "string"], "minimum": 5}),
    JSON,
    Grammar('start: "<" start ">" | "a"*', lexing="any"),
    Grammar("start: NAME+\nNAME: /[a-z]+/\n%ignore /[ ]+/"),
    until("<a>"),
    free_text("<a>"),
    Regex("[a1]*"),
    StringLiteral("<a>"),
    StringLiteral(""),
]
PIECES = ["{", "}", "[", "]", '"', "ab", "a", "1", ",", ":", " ", "<", ">", "<a>", "\\", "x", "é"]


def tokens_of(random: Random) -> list[bytes]:
    """Every piece and every byte of it, and tokens that go over many ends."""
    made = {piece.encode() for piece in PIECES}
    made |= {bytes([byte]) for piece in made for byte in piece}
    while len(made) < 120:
        made.add("".join(random.choices(PIECES, k=random.randint(2, 6))).encode())
    return sorted(made)


def row_of(random: Random, depth: int) -> Language:
    kind = random.randrange(5) if depth else 4
    if kind <= 1:
        return row_of(random, depth - 1) + row_of(random, depth - 1)
    if kind == 2:
        return row_of(random, depth - 1) | row_of(random, depth - 1)
    if kind == 3:
        least = random.randrange(3)
        part = row_of(random, depth - 1)
        return part.star() if least == 0 else part.repeat(least, least + 1)
    return random.choice(PARTS)


@pytest.mark.parametrize("seed", range(60))
def test_masks_are_the_definition_where_parts_end_within_tokens(seed: int) -> None:
    random = Random(seed)
    language, tokens = row_of(random, 3), tokens_of(random)
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    constraint = Constraint(language, vocabulary)
    for _ in range(3):
        walked = compare_masks(constraint.matcher(), 7, random.choice)
        assert len(walked.token_ids) == 7 or walked.is_accepting, walked.text
