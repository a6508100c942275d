"""Schemas over all keywords: acceptance, draws and walks, judged by two other libraries."""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import Any

import jsonschema
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from formalm import Constraint, JsonSchema, LanguageError, LimitError, Vocabulary
from tests.canonical.tokenizer_files import FILES, NAMES, needs_files

KEYS = ["a", "b", "ab", "é"]
NUMBERS = [0, 1, 2, 3, -1, 0.5, 2.5, 10**20, -0.25]
STRINGS = ["", "a", "b", "ab", "aé", "2024-02-29", "x@y.z", "a/b", "🙂"]
PATTERNS = ["^a", "b$", "^[a-z]*$", "é|b", "^.{2}$"]
COUNTS = st.integers(0, 3)
# Not drawn: unevaluated… beside `not` and the like is where the libraries themselves disagree; the
# official suite has it.
SCALARS = st.one_of(
    st.sampled_from([True, False, {}]),
    st.fixed_dictionaries(
        {"type": st.sampled_from(["null", "boolean", "integer", "number", "string"])},
        optional={
            "minimum": st.sampled_from(NUMBERS),
            "maximum": st.sampled_from(NUMBERS),
            "exclusiveMinimum": st.sampled_from(NUMBERS),
            "exclusiveMaximum": st.sampled_from(NUMBERS),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": COUNTS,
            "maxLength": COUNTS,
            "pattern": st.sampled_from(PATTERNS),
        },
    ),
    st.sampled_from(
        [{"enum": [0, "a", None, [1], {"a": 1}]}, {"const": 2.5}, {"const": {"a": []}}]
    ),
)


def larger(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    named = st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    names = st.lists(st.sampled_from(KEYS), max_size=2, unique=True)
    objects = st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": named,
            "required": names,
            "additionalProperties": inner,
            "patternProperties": st.dictionaries(st.sampled_from(PATTERNS), inner, max_size=2),
            "propertyNames": st.sampled_from([{"maxLength": 1}, {"pattern": "^a"}]),
            "minProperties": COUNTS,
            "maxProperties": COUNTS,
            "dependentRequired": st.dictionaries(st.sampled_from(KEYS), names, max_size=2),
            "dependentSchemas": st.dictionaries(st.sampled_from(KEYS), inner, max_size=1),
            "unevaluatedProperties": inner,
        },
    )
    arrays = st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("array"),
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "items": inner,
            "contains": inner,
            "minContains": COUNTS,
            "maxContains": COUNTS,
            "minItems": COUNTS,
            "maxItems": COUNTS,
            "uniqueItems": st.booleans(),
            "unevaluatedItems": inner,
        },
    )
    lists = st.lists(inner, min_size=1, max_size=3)
    joined = st.one_of(
        *(st.fixed_dictionaries({key: lists}) for key in ("allOf", "anyOf", "oneOf")),
        st.fixed_dictionaries({"not": inner}),
        st.fixed_dictionaries({"if": inner}, optional={"then": inner, "else": inner}),
        st.just({"$ref": "#"}),
    )
    return st.one_of(objects, objects, arrays, joined)


SCHEMAS = st.recursive(SCALARS, larger, max_leaves=6)
VALUES = st.recursive(
    st.sampled_from([*NUMBERS, *STRINGS, None, True, False]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=3)
    ),
    max_leaves=5,
)
LAWS = settings(max_examples=120, suppress_health_check=list(HealthCheck), deadline=None)


def judge(schema: object, value: object) -> bool | None:
    """What both libraries say; None where they disagree or give up (`$ref` without an end)."""
    try:
        one = jsonschema_rs.validator_for(schema).is_valid(value)
        other = jsonschema.Draft202012Validator(schema).is_valid(value)
    except (RecursionError, ValueError):
        return None
    return one if one == other else None


def compiled(schema: object, order: str = "schema", escapes: str = "minimal") -> JsonSchema | None:
    """The language; None if it is too large. What is not exact is taken, for members are exact."""
    language = JsonSchema(
        json.dumps(schema), property_order=order, escapes=escapes, approximate=True
    )
    try:
        language.is_empty()
    except LimitError:
        return None
    except LanguageError as error:
        # A reference that leads to itself only, by its place.
        if "#" not in error.message:
            raise
        return None
    return language


def near(value: Any, random: Random) -> Any:
    """A value that differs from another one in one place."""
    if isinstance(value, dict) and value and random.random() < 0.8:
        key = random.choice(list(value))
        if random.random() < 0.3:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: near(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.8:
        at = random.randrange(len(value))
        return [*value[:at], near(value[at], random), *value[at + 1 :]]
    return random.choice([*NUMBERS, *STRINGS, None, True, [], {}, [value], {"a": value}])


@LAWS
@given(SCHEMAS, st.lists(VALUES, min_size=1, max_size=6), st.integers(0, 10**6))
def test_acceptance_is_that_of_other_libraries(schema: Any, values: Any, seed: int) -> None:
    language, random = compiled(schema), Random(seed)
    if language is None:
        return
    drawn = [] if language.is_empty() else language.sample(3, seed=seed, random_bytes=60)
    drawn = [json.loads(text) for text in drawn]
    for value in [*values, *drawn, *(near(one, random) for one in [*values, *drawn])]:
        expected = judge(schema, value) if is_safe(value) else None
        if expected is not None:
            assert language.accepts(json.dumps(value)) == expected, (schema, value)


def is_safe(value: Any) -> bool:
    """Whether doubles have the value exactly: beyond, the libraries compute something else."""
    if isinstance(value, dict | list):
        return all(map(is_safe, value.values() if isinstance(value, dict) else value))
    if isinstance(value, float):
        return abs(value) < 1e15 and Decimal(repr(value)) == Decimal(value)
    return True


@LAWS
@given(SCHEMAS, st.sampled_from(["schema", "any"]), st.integers(0, 10**6))
def test_random_members_are_instances(schema: Any, order: str, seed: int) -> None:
    language = compiled(schema, order)
    if language is None or language.is_empty():
        return
    for text in language.sample(4, seed=seed, random_bytes=80):
        assert language.matches(text)
        value = json.loads(text)
        if is_safe(value):
            assert judge(schema, value) in (True, None), (schema, text)


@pytest.fixture(scope="module")
def small() -> Vocabulary:
    """All bytes of JSON, and some tokens that join its parts."""
    joined = [
        '{"',
        '":',
        '",',
        '"]',
        '"}',
        "],[",
        '":"',
        "},{",
        "ab",
        '"a',
        'a"',
        "true",
        "10",
        "é",
    ]
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    tokens += [text.encode() for text in joined]
    return Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])


def walked(constraint: Constraint, random: Random, steps: int) -> bytes:
    """A member: random tokens for some steps, then along the shortest; never a dead end."""
    matcher, vocabulary = constraint.matcher(), constraint.vocabulary
    ends = set(vocabulary.end_token_ids)
    for number in range(steps + 500):
        if matcher.is_finished:
            return matcher.text
        allowed = matcher.allowed_token_ids().tolist()
        assert allowed, f"a dead end behind {matcher.text!r}"
        if number >= steps:
            if matcher.is_accepting:
                return matcher.text
            shortest = constraint.language.shortest(matcher.text)
            assert shortest is not None, matcher.text
            rest = shortest[len(matcher.text) :]
            along = [one for one in allowed if rest.startswith(vocabulary.token_bytes(one))]
            if constraint.tokenization == "canonical":
                # The longest token may be one behind which the rest is spelled otherwise.
                read, whole = list(matcher.token_ids), vocabulary.encode(shortest.decode())
                along = whole[len(read) :][:1] if whole[: len(read)] == read else along
            if along:
                allowed = [max(along, key=lambda one: len(vocabulary.token_bytes(one)))]
        token = random.choice(allowed)
        if token in ends:
            return matcher.text
        matcher.advance(token)
    raise AssertionError(f"no end behind {matcher.text!r}")


@LAWS
@given(SCHEMAS, st.sampled_from(["schema", "any"]), st.integers(0, 10**6))
def test_walks_of_allowed_tokens_end_in_instances(
    small: Vocabulary, schema: Any, order: str, seed: int
) -> None:
    language = compiled(schema, order)
    if language is None or language.is_empty():
        return
    if any(note.effect != "exact" for note in language.notes):
        return
    constraint = Constraint(language, small)
    for number in range(2):
        text = walked(constraint, Random(seed + number), 25)
        value = json.loads(text)
        if is_safe(value):
            assert judge(schema, value) in (True, None), (schema, text)


#: As found in the wild: nested, listed, bounded, of formats, alternative, recursive.
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "mail": {"type": "string", "format": "email"},
        "tags": {"type": "array", "items": {"enum": ["new", "old", "é"]}, "uniqueItems": True},
        "child": {"$ref": "#"},
        "either": {"oneOf": [{"type": "null"}, {"type": "number", "multipleOf": 0.5}]},
    },
    "required": ["name", "age"],
    "additionalProperties": False,
}


@needs_files
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("tokenization", ["all", "canonical"])
def test_walks_with_real_tokenizers(name: str, order: str, tokenization: str) -> None:
    import gzip

    file = gzip.decompress((FILES / f"{name}.json.gz").read_bytes())
    vocabulary = Vocabulary.from_tokenizer_json(file)
    language = JsonSchema(PERSON, property_order=order)
    constraint = Constraint(language, vocabulary, tokenization=tokenization)
    for seed in range(5):
        text = walked(constraint, Random(seed), 20)
        value = json.loads(text)
        assert judge(PERSON, value) is True or not is_safe(value), text


DEVELOPMENT = FILES.parent / "maskbench" / "dev.jsonl.xz"


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not DEVELOPMENT.exists(), reason="no ../shared/maskbench/dev.jsonl.xz")
@needs_files
@pytest.mark.parametrize("order", ["schema", "any"])
def test_schemas_from_the_wild_have_no_dead_ends_in_canonical_tokens(order: str) -> None:
    """Every 40th schema of the development part; FORMALM_CASES says how many to take of 40."""
    import gzip
    import lzma
    import os

    taken = int(os.environ.get("FORMALM_CASES", "1"))
    file = gzip.decompress((FILES / "gpt2-50k.json.gz").read_bytes())
    vocabulary = Vocabulary.from_tokenizer_json(file)
    walks, refused, limits = 0, [], []
    with lzma.open(DEVELOPMENT, "rt", encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % 40 >= taken:
                continue
            entry = json.loads(line)
            language = JsonSchema(entry["schema"], property_order=order)
            try:
                constraint = Constraint(language, vocabulary, tokenization="canonical")
                for seed in range(2):
                    text = walked(constraint, Random(seed), 30)
                    walks += 1
                    assert language.matches(text), entry["name"]
                    value = json.loads(text)
                    # Formats are judged elsewhere: this library counts the bytes of an address too.
                    judged = jsonschema_rs.validator_for(entry["schema"], validate_formats=False)
                    valid = judged.is_valid(value)
                    assert valid or not is_safe(value), (entry["name"], text)
            except LanguageError as error:
                refused.append((entry["name"], error.message))
            except LimitError as error:
                limits.append((entry["name"], error.message))
    print(f"{walks} walks, {len(refused)} refused, {len(limits)} limits: {refused} {limits}")
    assert walks > 100
    assert len(refused) <= 3 * taken
    assert len(limits) <= taken
