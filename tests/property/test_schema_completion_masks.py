"""Masks of tokens after which a text can be completed in time, against their definition."""

from __future__ import annotations

import sys
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formalm import Constraint, LimitError, Vocabulary

sys.path.append(str(Path(__file__).parent))
from test_schema_laws import SCHEMAS, compiled

PIECES = [b'{"', b'"', b'":', b'":0', b',"', b'","', b'":0,"', b'"],["', b"[]", b'a":1}', b'"a"',
          b'["', b'{"a":', b"ab", b"aa", b"ba", b"bb", b"aab", b"\\u00", b"\\u0001", b"\\n", b"00",
          b"0,", b"1,1", b"10", b"},{", b'"}', b'":"', "é".encode(), "aé".encode(), b"a,", b',"a',
          b'"":0,"', b'"",""']  # fmt: skip
VOCABULARY = Vocabulary.from_tokens([bytes([byte]) for byte in range(256)] + PIECES)
SHAPES = {b"{", b"}", b"[", b"]", b",", b":", b'"', b"a", b"b", b"0", b"1", b"\\", b"u", b"n"}
ASKED = [one for one in range(len(VOCABULARY)) if one >= 256 or bytes([one]) in SHAPES]

PATTERNS = ["^a", "b$", "^[ab]*$", "é|b", "^.{2}$", "^[ab]{1,2}$", "^a?$"]
VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [{}, {"type": "integer"}, {"type": "string"}, {"type": "boolean"}, {"enum": ["a", "b", "aa"]}]
)
NAMED = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), VALUES, max_size=2),
        "additionalProperties": st.just(False) | VALUES,
        "propertyNames": st.sampled_from(PATTERNS).map(lambda one: {"pattern": one}),
        "properties": st.dictionaries(st.sampled_from(["a", "ab", "ba", ""]), VALUES, max_size=2),
        "required": st.lists(st.sampled_from(["a", "b", "ab", ""]), max_size=2, unique=True),
        "minProperties": st.integers(1, 4),
        "not": st.sampled_from([{"patternProperties": {"^a": {"type": "string"}}}, {"const": {}}]),
    },
)
DISTINCT = st.fixed_dictionaries(
    {"type": st.just("array"), "uniqueItems": st.just(True), "items": VALUES | NAMED},
    optional={"minItems": st.integers(1, 3)},
)
REPEATED = DISTINCT.map(lambda one: {"not": one, "type": "array"})
ALL = (
    NAMED
    | DISTINCT
    | REPEATED
    | DISTINCT.map(lambda one: {**one, "items": one})
    | NAMED.map(lambda one: {"type": "object", "additionalProperties": one})
    | SCHEMAS
)


def fewest(text: bytes) -> int:
    """Tokens that spell a text."""
    best = [0] + [len(text)] * len(text)
    for end in range(1, len(text) + 1):
        best[end] = best[end - 1] + 1
        for piece in PIECES:
            if text.endswith(piece, 0, end):
                best[end] = min(best[end], best[end - len(piece)] + 1)
    return best[len(text)]


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(ALL, st.sampled_from(["any", "schema"]), st.integers(0, 9999), st.integers(0, 9))
def test_masks_are_those_of_the_shortest_texts(
    schema: Any, order: Any, seed: int, budget: int
) -> None:
    language = compiled(schema, order=order)
    if language is None or language.is_empty():
        return
    machine, random = language.automaton(), Random(seed)
    constraint = Constraint(language, VOCABULARY)
    matcher, text = constraint.matcher(), b""
    try:
        for _ in range(random.randrange(9)):
            seen = matcher.mask()
            allowed = [one for one in ASKED if seen[one]]
            if not allowed:
                break
            token = random.choice(allowed)
            matcher.advance(token)
            text += VOCABULARY.token_bytes(token) or b""
        seen, mask = matcher.mask(), constraint.core.completion_mask(matcher.core, budget)
        for token in ASKED:
            after = text + (VOCABULARY.token_bytes(token) or b"")
            if not seen[token]:
                assert not mask[token]
                continue
            shortest = machine.shortest(after)
            count = fewest(shortest[len(after) :])
            if 1 + count <= budget:
                assert mask[token], (schema, text, after, shortest, budget)
            elif mask[token]:
                # A longer text of fewer tokens.
                further = matcher.fork()
                further.advance(token)
                assert budget
                enough = constraint.core.completes_within(further.core, budget - 1)
                assert enough, (schema, text, after, shortest, budget)
    except LimitError:
        return
