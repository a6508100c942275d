"""Schemas reported as exact have no dead ends."""

import json
from random import Random

import jsonschema_rs
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import JsonSchema, LanguageError, LimitError

BYTES = [bytes([byte]) for byte in b'[]{},:"ab01truefalsn']

scalars = st.sampled_from(
    [
        {"type": "boolean"},
        {"enum": [0, 1, "a"]},
        {"const": "ab"},
        {"type": "string", "maxLength": 1, "pattern": "^[ab]*$"},
        {"type": "integer", "minimum": 0},
        {"type": "integer", "minimum": 0, "maximum": 1},
    ]
)


def containers(inner: st.SearchStrategy[dict[str, object]]) -> st.SearchStrategy[dict[str, object]]:
    objects = st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
            "additionalProperties": st.booleans(),
        },
        optional={"required": st.just(["a"]), "maxProperties": st.integers(1, 2)},
    )
    arrays = st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"maxItems": st.integers(0, 2), "uniqueItems": st.just(True)},
    )
    return st.one_of(objects, arrays)


items = st.recursive(scalars, containers, max_leaves=3)


@st.composite
def distinct(draw: st.DrawFn) -> dict[str, object]:
    schema: dict[str, object] = {"type": "array", "uniqueItems": True, "items": draw(items)}
    if draw(st.booleans()):
        schema["prefixItems"] = draw(st.lists(items, min_size=1, max_size=2))
    if draw(st.booleans()):
        schema["minItems"] = draw(st.integers(1, 4))
    if draw(st.integers(0, 3)) == 0:
        other = draw(st.sampled_from([{"type": "null"}, {"items": {"type": "boolean"}}]))
        return {draw(st.sampled_from(["anyOf", "oneOf"])): [schema, other], "type": "array"}
    return schema


@settings(max_examples=150, deadline=None)
@given(distinct(), st.randoms(use_true_random=False))
def test_nothing_exact_comes_to_a_dead_end(schema: dict[str, object], random: Random) -> None:
    language = JsonSchema(schema, property_order="any", max_whitespace=0)
    try:
        language.automaton()
    except (LanguageError, LimitError):
        return
    text = b""
    for _ in range(24):
        going = [byte for byte in BYTES if language.is_viable(text + byte)]
        if not going:
            break
        text += random.choice(going)
    try:
        member = language.shortest(text)
    except LimitError:
        return
    assert member is not None, text
    assert jsonschema_rs.is_valid(schema, json.loads(member))
