"""Masks inside strings with patterns, cached with the vocabulary."""

import json
from random import Random

import numpy as np
import pytest

from formalm import Constraint, JsonSchema, Vocabulary
from formalm.reference.naive_mask import naive_mask
from tests.support.mask_walks import compare_masks

PATTERNS = [
    "^[0-9a-f]{4}-[0-9a-f]{2}$",
    "^https://.+$",
    "^[^:\\s]+:[^:\\s]+$",
    "^[\\w\\s-]+$",
    "^(/[^/]+)+$",
    "^[a-z]{1,3}$|^é+\\n?$",
    'a"b\\\\|^\\u0001$',
    "^(?!ab)[a-c]*$",
    "^[à-ü€😀]{2,}$",
    "^\\S{3,30}$",
    "^([!-~]+|\\S+@.*|é)$",
]
TEXTS = ["0f3a-b1", "https://a.b/é\u2028", "a:b", "a b-é_€", "/a/b//", "abc", "é\n", 'xa"b\\']
TEXTS += ["\u0001", "abca", "éè€😀", "ab\tc\u0000"]


def vocabulary(ascii_only: bool = False) -> Vocabulary:
    """Every slice of some texts with what stands around them, and every byte."""
    tokens: dict[bytes, None] = {bytes([byte]): None for byte in range(256)}
    for text in TEXTS:
        written = json.dumps(text, ensure_ascii=ascii_only)
        data = f'{{"k":{written},"l":{written}}}'.encode()
        for start in range(0, len(data), 2):
            for length in (2, 3, 5, 9):
                tokens[data[start : start + length]] = None
    ids: list[bytes | None] = [*tokens, None]
    return Vocabulary.from_tokens(ids, end_token_ids=[len(ids) - 1])


VOCABULARY = vocabulary()
SPELLED = vocabulary(ascii_only=True)


def walk(constraint: Constraint, seed: int) -> None:
    """Compare the masks along a random walk that likes long tokens."""
    random = Random(seed)

    def choose(steps: list[int]) -> int:
        longest = max(steps, key=lambda i: len(constraint.vocabulary.token_bytes(i) or b""))
        return random.choice([longest, *random.choices(steps, k=2)])

    compare_masks(constraint.matcher(), 14, choose)


def places(pattern: str) -> list[dict[str, object]]:
    """A pattern as a value, beside a length, of items that differ, of names."""
    text = {"type": "string", "pattern": pattern}
    return [
        {"type": "object", "properties": {"k": text}, "required": ["k"]},
        {"type": "array", "items": {**text, "minLength": 2, "maxLength": 40}, "minItems": 2},
        {"type": "array", "items": text, "uniqueItems": True},
        {"type": "object", "patternProperties": {pattern: {}}, "additionalProperties": False},
        {"type": "object", "patternProperties": {pattern: text}},
        {"oneOf": [text, {"type": "string", "maxLength": 3}]},
    ]


@pytest.mark.parametrize("escapes", ["minimal", "ascii", "any"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_masks_in_texts_of_patterns(pattern: str, escapes: str) -> None:
    tokens = VOCABULARY if escapes == "minimal" else SPELLED
    for seed, schema in enumerate(places(pattern)):
        language = JsonSchema(
            json.dumps(schema),
            property_order="any",
            max_whitespace=0,
            escapes=escapes,
            approximate=True,
        )
        # The second constraint finds what the first has made.
        for constraint in (Constraint(language, tokens), Constraint(language, tokens)):
            for again in range(2):
                walk(constraint, 10 * seed + again)


def test_names_of_one_class_among_others() -> None:
    """Behind a name's first slash the pattern takes no second one, wherever most letters lead."""
    schema = {"patternProperties": {"^(/[^/]+)+$": {}}, "additionalProperties": False}
    language = JsonSchema({"type": "object", **schema}, property_order="any", max_whitespace=0)
    matcher = Constraint(language, VOCABULARY).matcher()
    for text in (b'{"', b"/", b"a", b"/", b"b"):
        matcher.advance_bytes(text)
        mask = matcher.mask()
        assert np.array_equal(mask, naive_mask(language, VOCABULARY, matcher.text)), matcher.text


COUNTED = [
    {"pattern": "^[a-z]{0,40}$"},
    {"pattern": "^[a-z]+$", "maxLength": 30},
    {"pattern": "^\\w[\\w-]{0,20}(/[a-z]{1,35})?$", "maxLength": 50},
    {"pattern": "^(ab?){1,25}$"},
    {"pattern": "b$", "maxLength": 33, "minLength": 20},
    {"anyOf": [{"pattern": "^a{3,30}$"}, {"pattern": "^[ab]+é$", "maxLength": 45}]},
    {"format": "email", "maxLength": 40},
    {"format": "hostname", "maxLength": 9},
    {"format": "idn-hostname", "maxLength": 14, "minLength": 5},
]


@pytest.mark.parametrize("schema", COUNTED)
def test_counts_that_long_tokens_reach(schema: dict[str, object]) -> None:
    """Tokens that cannot come to the end of a count are those of a text without it."""
    tokens = [bytes([byte]) for byte in {*b'"abz/-_@.', *"é".encode()}]
    for part in (b"a", b"ab", "é".encode(), b"b/a"):
        for count in (*range(2, 50, 5), 40, 41):
            tokens += [part * count, part * count + b'"', b'"' + part * count]
    ids: list[bytes | None] = [*dict.fromkeys(tokens), None]
    vocabulary = Vocabulary.from_tokens(ids, end_token_ids=[len(ids) - 1])
    language = JsonSchema({"type": "string", **schema}, max_whitespace=0, approximate=True)
    constraint = Constraint(language, vocabulary)
    for seed in range(6):
        walk(constraint, seed)


def test_strings_similar_to_forbidden_ones() -> None:
    """That all texts are asked for keeps a part of a character from being one, alone."""
    for schema in (
        {"allOf": [{"pattern": ""}, {"not": {"pattern": "^a+$"}}]},
        {"anyOf": [{"pattern": ""}, {"pattern": "^é"}], "not": {"enum": ["", "é", "ab"]}},
        {"pattern": "^(?!a)", "not": {"pattern": "é$"}},
    ):
        language = JsonSchema({"type": "string", **schema})
        assert not any(language.accepts(b'"%c"' % byte) for byte in range(0x80, 0x100))
        for seed in range(4):
            walk(Constraint(language, VOCABULARY), seed)


def test_more_machines_than_are_kept() -> None:
    """What is kept beside a vocabulary is bounded, and masks are the same when it is made again."""
    texts = [{"type": "string", "pattern": f"^[a-f]{{1,{most}}}:$"} for most in range(1, 200)]
    kept = []
    for _ in range(2):
        for most, text in list(enumerate(texts, 1))[:: 199 // 2]:
            language = JsonSchema(text)
            walk(Constraint(language, VOCABULARY), most)
        for text in texts:
            matcher = Constraint(JsonSchema(text), VOCABULARY).matcher()
            matcher.advance_bytes(b'"a')
            kept.append(matcher.mask())
    half = len(kept) // 2
    assert all(np.array_equal(one, other) for one, other in zip(kept, kept[half:], strict=False))
