"""The fewest tokens that complete a text of a schema, and walks within a budget."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formalm import CallFormat, Constraint, JsonSchema, LimitError, ToolCalls, Vocabulary
from formalm.generation.finish_steering import FinishSteering

sys.path.append(str(Path(__file__).parent))
from test_schema_laws import SCHEMAS, compiled

TEXTS = [
    '{"',
    '"',
    '":',
    "a",
    "b",
    '":"',
    '"}',
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "0",
    '","',
    "[]",
    "]]",
    "0,",
]
VOCABULARY = Vocabulary.from_tokens([one.encode() for one in TEXTS])
SINGLE = Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(256)] + [one.encode() for one in TEXTS]
)


WRAPPED = (
    SCHEMAS
    | SCHEMAS.map(lambda inner: {"type": "object", "required": ["a"], "properties": {"a": inner}})
    | SCHEMAS.map(lambda inner: {"type": "array", "minItems": 2, "items": inner})
)


def fewest(language: JsonSchema, most: int) -> int | None:
    """Tokens of a shortest member, by reading all sequences of so many; -1 if that is too much."""
    machine = language.automaton()
    layer = [b""]
    for count in range(most + 1):
        if any(machine.matches(text) for text in layer):
            return count
        longer = {text + token.encode() for text in layer for token in TEXTS}
        layer = [text for text in longer if machine.is_viable(text)]
        if len(layer) > 20_000:
            return -1
    return None


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(WRAPPED)
def test_completions_have_the_fewest_tokens(schema: Any) -> None:
    language = compiled(schema)
    if language is None or language.is_empty():
        return
    constraint = Constraint(language, VOCABULARY)
    most = 5
    try:
        expected = fewest(language, most)
        found = constraint.core.shortest_token_ids(constraint.matcher().core, most)
    except LimitError:
        return
    if expected == -1:
        return
    assert (None if found is None else len(found)) == expected, schema
    if found is not None:
        assert language.matches(b"".join(VOCABULARY.token_bytes(one) or b"" for one in found))
        assert constraint.core.completes_within(constraint.matcher().core, len(found))
    else:
        assert not constraint.core.completes_within(constraint.matcher().core, most)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(WRAPPED, st.integers(0, 4), st.integers(0, 99))
def test_walks_within_a_budget_end_in_members(schema: Any, more: int, seed: int) -> None:
    language = compiled(schema)
    if language is None or language.is_empty():
        return
    if any(note.effect != "exact" for note in language.notes):
        return
    constraint, random = Constraint(language, SINGLE), Random(seed)
    matcher, finish = constraint.matcher(), FinishSteering(constraint)
    try:
        enough = constraint.core.shortest_token_ids(matcher.core, 40)
        if enough is None:
            return
        budget = len(enough) + more
        finish.check(matcher, budget)
        while budget:
            mask = np.array(matcher.mask())
            finish.restrict(matcher, mask, budget)
            allowed = np.flatnonzero(mask).tolist()
            if not allowed:
                break
            matcher.advance(random.choice(allowed))
            budget -= 1
    except LimitError:
        return
    assert matcher.is_accepting, (schema, seed)


BYTES = [bytes([one]) for one in b'\x80\xa9\xc3"\\\\/bnu012dD0{}[]:,a']


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    WRAPPED
    | st.sampled_from(["b$", "^[a-b]*$", "n", "^\\u0001|b"]).map(lambda one: {"pattern": one}),
    st.sampled_from(["minimal", "ascii", "any"]),
    st.integers(0, 99),
)
def test_the_shortest_completion_is_shortest_after_any_prefix(
    schema: Any, escapes: Any, seed: int
) -> None:
    language = compiled(schema, escapes=escapes)
    if language is None or language.is_empty():
        return
    machine, random, text = language.automaton(), Random(seed), b""
    for _ in range(random.randrange(9)):
        viable = [one for one in BYTES if machine.is_viable(text + one)]
        if not viable:
            break
        text += random.choice(viable)
    try:
        found = machine.shortest(text)
    except LimitError:
        return
    assert machine.matches(found), (schema, text, found)
    layer = {text}
    for _ in range(len(found) - len(text)):
        assert not any(machine.matches(one) for one in layer), (schema, text, found)
        longer = (one + byte for one in layer for byte in BYTES)
        layer = {one for one in longer if machine.is_viable(one)}
        if len(layer) > 500:
            break


WIDE: list[Any] = [
    {"type": "object", "required": ["a"]},
    {"type": "string", "minLength": 40},
    {
        "type": "object",
        "properties": {
            "n": {
                "type": "array",
                "minItems": 2,
                "items": {"required": ["x", "yy"], "type": "object"},
            }
        },
        "required": ["n", "other"],
    },
]


@pytest.mark.parametrize("schema", WIDE, ids=json.dumps)
def test_names_and_counts_do_not_make_states_without_end(schema: Any) -> None:
    """Names are told apart by nothing that matters to how a text is completed."""
    language = JsonSchema(schema)
    names = [f'{{"{one}' for one in ("k", "kk", "key", "k-1")]
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [f"{left}{right}".encode() for left in "abcdefghijk" for right in "lmnopqrstuv"]
    vocabulary = Vocabulary.from_tokens(tokens + [one.encode() for one in names])
    constraint = Constraint(language, vocabulary)
    matcher, before = constraint.matcher(), language.automaton().state_count
    for step in range(30):
        mask = np.array(matcher.mask())
        FinishSteering(constraint).restrict(matcher, mask, 400)
        matcher.advance(int(np.flatnonzero(mask)[(step * 7919) % int(mask.sum())]))
    assert language.automaton().state_count - before < 60_000


TOLD_APART: list[Any] = [
    {"type": "object", "patternProperties": {"^x-": {"type": "string"}, "^[a-z]+$": {}}},
    {"type": "object", "patternProperties": {"^[a-z]{3}$": {}}, "minProperties": 3},
    {"type": "object", "propertyNames": {"pattern": "^[a-z0-9]*$"}, "required": ["abc"]},
    {"type": "array", "uniqueItems": True, "items": {"type": "string"}, "minItems": 2},
    {"type": "array", "uniqueItems": True, "items": {"type": "object"}},
]
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = [f"{one}{two}{three}" for one in LETTERS for two in LETTERS for three in LETTERS]
LARGE = Vocabulary.from_tokens(
    [bytes([byte]) for byte in range(256)] + [one.encode() for one in TEXTS + WORDS]
)


@pytest.mark.parametrize("schema", TOLD_APART, ids=json.dumps)
def test_names_and_items_take_no_search_each(schema: Any) -> None:
    """Seventeen thousand tokens within a name or an item lead to a few states."""
    language = JsonSchema(schema, property_order="any")
    constraint = Constraint(language, LARGE)
    matcher, random = constraint.matcher(), Random(5)
    before = language.automaton().state_count
    for _ in range(30):
        mask = np.array(matcher.mask())
        FinishSteering(constraint).restrict(matcher, mask, 400)
        allowed = np.flatnonzero(mask).tolist()
        if not allowed:
            break
        matcher.advance(random.choice(allowed))
    assert language.automaton().state_count - before < 6_000


def test_names_within_calls_take_no_search_each() -> None:
    """The same where the schema is a part of another language."""
    calls = CallFormat('{"name":"{name}","arguments":{arguments}}', begin="<call>", end="</call>")
    language = ToolCalls(
        {"look": JsonSchema(TOLD_APART[0], property_order="any")}, calls, minimum=1
    )
    constraint = Constraint(language, LARGE)
    matcher = constraint.matcher()
    matcher.advance_bytes(b'<call>{"name":"look","arguments":{"ab')
    mask = np.array(matcher.mask())
    FinishSteering(constraint).restrict(matcher, mask, 400)
    assert mask[256 + len(TEXTS) :].all()


def test_completions_that_differ_by_token_are_refused() -> None:
    """That some item is there twice is no mere ban: each text of an item has its own completion."""
    language = JsonSchema({"type": "array", "not": {"uniqueItems": True}}, approximate=True)
    constraint = Constraint(language, LARGE)
    matcher = constraint.matcher()
    matcher.advance_bytes(b'["')
    with pytest.raises(LimitError) as raised:
        FinishSteering(constraint).restrict(matcher, np.array(matcher.mask()), 400)
    assert raised.value.what == "states"
    assert "max_tokens" in str(raised.value)
