"""Masks of grammars with languages of other kinds in their rules equal their definition."""

from random import Random

import pytest

from formalm import Constraint, Grammar, JsonSchema, LanguageError, Regex, Vocabulary
from formalm.languages import Language, Section, Structure
from tests.property.test_composed_masks import PARTS, PIECES
from tests.support.mask_walks import compare_masks

#: Rules around two sublanguages: side by side, in a row, in lists, in recursion, after lexemes that
#: forbid, between names that may be longer, and where several may begin.
GRAMMARS = [
    'start: "x" one "a"',
    'start: one ("," one)*',
    "start: one two?",
    "start: (one | two) TAIL?\nTAIL: /[^{}]+/",
    'start: NAME (one | two) NAME?\nNAME: /[a-z]+/\n%ignore " "',
    'start: "[" (start | one) "]" | two',
    'start: NAME "<" one ">" ("," two)*\nNAME: /[a-z]+/\n%ignore / +/',
    'start: TEXT? one? ("1" two | TEXT)\nTEXT: /[a-z1 ]+/',
    'start: (one | two | NUMBER)+\nNUMBER: /[0-9]+/\n%ignore "-"',
    'start: one "x"? | "x"? one NAME | two\nNAME: /x[a-z]*/',
]
OTHERS: list[Language] = [
    JsonSchema({"type": "number"}),
    JsonSchema({"enum": ["a", "ab", 1, 12, None]}),
    JsonSchema({"type": "array", "items": {"enum": ["a", "ab", 1]}, "uniqueItems": True}),
    JsonSchema({"type": "object"}, max_whitespace=0),
    Regex("[a1]+") | JsonSchema({"type": "string", "maxLength": 3}),
    Structure([Section("<a>", JsonSchema({"type": "integer", "minimum": 5}), "</a>")]),
    Grammar('start: NAME "(" start? ")"\nNAME: /[a-x]+/\n%ignore " "'),
    Regex("[a1]+").edits(1),
]


def tokens_of(random: Random) -> list[bytes]:
    """Every piece and every byte of it, and tokens that go over many ends."""
    pieces = [*PIECES, "-", "(", ")", "</a>", '"a"', "null", "1e5"]
    made = {piece.encode() for piece in pieces}
    made |= {bytes([byte]) for piece in made for byte in piece}
    while len(made) < 150:
        made.add("".join(random.choices(pieces, k=random.randint(2, 6))).encode())
    return sorted(made)


def grammar_of(random: Random) -> Grammar | None:
    """A grammar around two languages; None if it is refused or empty."""
    parts = {name: random.choice([*PARTS, *OTHERS]) for name in ("one", "two")}
    text, lexing = random.choice(GRAMMARS), random.choice(["longest", "first", "any"])
    used = {name: part for name, part in parts.items() if name in text}
    try:
        return Grammar(f"%declare {' '.join(used)}\n{text}", languages=used, lexing=lexing)
    except LanguageError:
        return None


@pytest.mark.parametrize("seed", range(80))
def test_masks_are_the_definition_where_sublanguages_begin_and_end(seed: int) -> None:
    random = Random(seed)
    language = None
    while language is None:
        language = grammar_of(random)
    tokens = tokens_of(random)
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    constraint = Constraint(language, vocabulary)
    for _ in range(4):
        compare_masks(constraint.matcher(), 8, random.choice)


def test_fresh_names_in_a_sublanguage_share_their_masks() -> None:
    schema = JsonSchema({"type": "object"}, max_whitespace=0)
    language = Grammar('%declare one\nstart: "x" one "y"', languages={"one": schema})
    tokens = [bytes([byte]) for byte in range(256)] + [b'":', b"}y", b'"}y', b"x{"]
    vocabulary = Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])
    constraint, alone = Constraint(language, vocabulary), Constraint(schema, vocabulary)
    counts = []
    for number in range(20):
        text = f'{{"name{number}":{number},"b{number}":[]}}'.encode()
        for one, read in ((constraint, b"x" + text + b"y"), (alone, text)):
            matcher = one.matcher()
            for byte in read:
                matcher.mask()
                matcher.advance(byte)
        counts.append((constraint.mask_count, alone.mask_count))
    # One before the value and one after it, on top of those of the schema.
    assert all(inside <= outside + 2 for inside, outside in counts), counts
