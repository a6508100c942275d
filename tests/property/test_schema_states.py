"""Equal states of a schema's machine have equal masks."""

from __future__ import annotations

import json
import sys
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formalm import Constraint, JsonSchema, LimitError, Vocabulary
from formalm.reference.naive_mask import naive_mask

sys.path.append(str(Path(__file__).parent))
from test_schema_laws import SCHEMAS, VALUES, compiled, judge

TOKENS = ['{"', '"', '":', "a", "b", "ab", '":"', '","', '"}', "[", "]", "{", "}", ",", ":"]
TOKENS += ["0", "1", "12", ".5", "-", "e1", "null", "true", "é", "\\n", " ", "],[", "}}", "[]"]
VOCABULARY = Vocabulary.from_tokens([one.encode() for one in TOKENS])


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS, st.sampled_from(["schema", "any"]), st.integers(0, 10**6))
def test_equal_states_have_equal_masks(schema: Any, order: str, seed: int) -> None:
    """By the definition of a mask, asked of each text by itself."""
    language = compiled(schema, order)
    if language is None or language.is_empty():
        return
    constraint, random = Constraint(language, VOCABULARY), Random(seed)
    texts: dict[int, bytes] = {}
    compared = 0
    try:
        for _ in range(6):
            matcher, text = constraint.matcher(), b""
            for _ in range(12):
                allowed = matcher.allowed_token_ids().tolist()
                if not allowed:
                    break
                token = random.choice(allowed)
                matcher.advance(token)
                text += TOKENS[token].encode()
                other = texts.setdefault(matcher.state_key, text)
                if other != text and compared < 20:
                    compared += 1
                    masks = [naive_mask(language, VOCABULARY, one) for one in (text, other)]
                    assert np.array_equal(*masks), (schema, text, other)
                    assert np.array_equal(matcher.mask(), masks[0]), (schema, text)
    except LimitError:
        return


@settings(max_examples=80, deadline=None, suppress_health_check=list(HealthCheck))
@given(SCHEMAS, st.dictionaries(st.sampled_from("abc"), VALUES, min_size=2, max_size=3))
def test_members_in_any_order_come_to_one_state(schema: Any, value: dict[str, Any]) -> None:
    language = compiled(schema, "any")
    if language is None or language.is_empty():
        return
    states = set()
    constraint = Constraint(language, Vocabulary.from_tokens([bytes([one]) for one in range(256)]))
    try:
        for members in permutations(value.items()):
            text = json.dumps(dict(members), ensure_ascii=False, separators=(",", ":"))
            matcher = constraint.matcher()
            data = text[:-1].encode()
            if not language.is_viable(data):
                # What one order can be read as, the others can.
                states.add(None)
                continue
            matcher.advance_many(list(data))
            valid = judge(schema, value)
            if valid is not None:
                assert language.matches(text) == valid
            states.add(matcher.state_key)
    except LimitError:
        return
    # Which of several keys was read last is part of a state only while a number may go on.
    last = {type(value[name]) for name in value}
    if None in states or not last & {int, float}:
        assert len(states) == 1, (schema, value)


def test_states_do_not_know_how_members_were_spelled() -> None:
    language = JsonSchema(
        {"properties": {"a": {}, "b": {}}, "minProperties": 3}, property_order="any"
    )
    vocabulary = Vocabulary.from_tokens([bytes([one]) for one in range(256)])
    constraint = Constraint(language, vocabulary)
    keys = set()
    for text in ('{"a":[1],"b":"x"', '{"b":"yy" ,"a":{}', '{ "a": null, "b": []'):
        matcher = constraint.matcher()
        matcher.advance_many(list(text.encode()))
        keys.add(matcher.state_key)
    assert len(keys) == 1
