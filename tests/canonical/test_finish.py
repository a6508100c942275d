"""``finish=True`` with canonical tokens: the fewest tokens of the library's encodings decide."""

from __future__ import annotations

import random
from functools import cache

import pytest
from tokenizers import Tokenizer, normalizers

from formalm import (
    Constraint,
    Grammar,
    JsonSchema,
    Language,
    LimitError,
    Matcher,
    Regex,
    Vocabulary,
)
from formalm.generation.finish_steering import FinishSteering
from tests.canonical.small_tokenizers import PIECES, encode_raw, members, trained, with_fallback

LANGUAGES = [
    "[ab]{0,5}",
    "[ab]{3,6}x",
    "( |\n|a){1,5}",
    "(the|The| the|'s| |'){1,3}",
    "[0-9]{1,3}",
    "\\[\n {0,4}1,\n {1,4}2\n\\]",
    "(é|e\u0301|日|\n){1,3}",
    "(e\u0301|o|é)x{2,5}",
    '\\{"[a-c]{1,2}": ?(1|"x")\\}',
    "( |\n){0,7}x",
    " William| Theodore|(?:the|th)en?",
    "(ab|abab|cd| ){1,4}",
    "(they|then|therefore|these|there){1,2}\\.",
]
KINDS = ("gpt2", "cl100k", "NFC", "NFKD", "whole", "fallback", "metaspace")


@cache
def made(kind: str) -> tuple[Tokenizer, Vocabulary]:
    tokenizer = {
        "gpt2": lambda: trained(PIECES["gpt2"]),
        "whole": lambda: trained(PIECES["gpt2"], ignore_merges=True),
        "fallback": with_fallback,
        "metaspace": lambda: with_fallback(scheme="never", split=True),
    }.get(kind, lambda: trained(PIECES["cl100k isolated False"]))()
    if kind.startswith("NF"):
        tokenizer.normalizer = getattr(normalizers, kind)()
    return tokenizer, Vocabulary.from_tokenizer_json(tokenizer.to_str())


def expected_sequences(kind: str, language: Regex) -> set[tuple[int, ...]]:
    tokenizer, vocabulary = made(kind)
    found = set()
    for member in members(language):
        text = member.decode()
        ids = encode_raw(tokenizer, vocabulary, text)
        kept = not kind.startswith("NF") or tokenizer.normalizer.normalize_str(text) == text
        if ids is not None and kept:
            found.add(tuple(ids))
    return found


def within(constraint: Constraint, budget: int) -> set[tuple[int, ...]]:
    """Every sequence that the masks for a budget allow; all of them end in members."""
    matcher, steering, found = constraint.matcher(), FinishSteering(constraint), set()

    def follow(left: int) -> None:
        mask = steering.kept(matcher.core, left)
        if matcher.is_accepting:
            found.add(tuple(matcher.token_ids))
        ids = [int(each) for each in mask.nonzero()[0]]
        ids = [each for each in ids if each not in constraint.vocabulary.end_token_ids]
        assert ids or matcher.is_accepting, f"a dead end: {matcher.token_ids}"
        for token_id in ids:
            matcher.advance(token_id)
            follow(left - 1)
            matcher.rollback()

    follow(budget)
    return found


def check_fewest(matcher: Matcher, fewest: int) -> None:
    """So many tokens are enough, and less are refused."""
    steering = FinishSteering(matcher.constraint)
    steering.check(matcher, fewest)
    if fewest:
        with pytest.raises(LimitError) as error:
            steering.check(matcher, fewest - 1)
        assert error.value.needed == fewest


def check_budgets(
    constraint: Constraint, expected: set[tuple[int, ...]], *, longest: bool = True
) -> None:
    """Budgets allow exactly the sequences of so many tokens."""
    fewest = min(map(len, expected))
    check_fewest(constraint.matcher(), fewest)
    assert len(constraint.core.shortest_token_ids(constraint.matcher().core, 1 << 20)) == fewest
    budgets = {fewest, fewest + 1} | ({fewest + 2, max(map(len, expected))} if longest else set())
    for budget in sorted(budgets):
        assert within(constraint, budget) == {ids for ids in expected if len(ids) <= budget}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pattern", LANGUAGES)
def test_budgets_allow_exactly_the_members_of_so_many_tokens(kind: str, pattern: str) -> None:
    language = Regex(pattern)
    constraint = Constraint(language, made(kind)[1], tokenization="canonical")
    check_budgets(constraint, expected_sequences(kind, language))


@pytest.mark.parametrize("kind", ["gpt2", "NFC"])
def test_after_prompts(kind: str) -> None:
    tokenizer, vocabulary = made(kind)
    language = Regex("(ing| the|er){1,3}")
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    for prompt in ("the", "a b", "line"):
        ids = tokenizer.encode(prompt, add_special_tokens=False).ids
        found = set()
        for member in members(language):
            whole = tokenizer.encode(prompt + member.decode(), add_special_tokens=False).ids
            if whole[: len(ids)] == ids:
                found.add(len(whole) - len(ids))
        check_fewest(constraint.matcher(after=ids), min(found))


SCHEMA = JsonSchema(
    {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "tags": {"type": "array", "items": {"enum": ["a", "the", "é"]}, "uniqueItems": True},
            "n": {"type": "integer", "minimum": 10},
        },
        "required": ["name", "n"],
        "additionalProperties": False,
    }
)
#: Schemas with finitely many members.
FINITE: list[dict[str, object]] = [
    {"enum": ["the", "therefore", "a b", None, True]},
    {
        "properties": {"the": {"type": "boolean"}, "n": {"enum": ["the", "is", "12"]}},
        "required": ["n"],
        "additionalProperties": False,
        "type": "object",
    },
    {"type": "array", "items": {"enum": ["a", "the", None]}, "minItems": 1, "maxItems": 3},
    {
        "type": "array",
        "items": {"enum": ["a", "the", True]},
        "minItems": 2,
        "maxItems": 3,
        "uniqueItems": True,
    },
    {
        "type": "object",
        "properties": {
            "therefore": {"type": "boolean"},
            "is": {"const": "line"},
            "other": {"enum": ["then", "theb"]},
        },
        "minProperties": 2,
        "additionalProperties": False,
    },
    {
        "type": "object",
        "properties": {
            "kind": {"enum": ["cat", "dog", "line", "the"]},
            "there": {"enum": ["is", "therefore", "a the"]},
            "tags": {
                "type": "array",
                "items": {"enum": ["the", "é", "then"]},
                "minItems": 1,
                "maxItems": 3,
            },
            "n": {"enum": ["the", False, None, [], {}]},
        },
        "required": ["kind", "tags", "n"],
        "additionalProperties": False,
    },
]


@pytest.mark.parametrize("kind", ["gpt2", "cl100k", "NFC", "whole"])
@pytest.mark.parametrize("schema", FINITE)
def test_budgets_of_finite_schemas_are_exact(kind: str, schema: dict[str, object]) -> None:
    language = JsonSchema(schema, max_whitespace=0)
    tokenizer, vocabulary = made(kind)
    expected = set()
    for member in members(language):
        ids = encode_raw(tokenizer, vocabulary, member.decode())
        if ids is not None:
            expected.add(tuple(ids))
    constraint = Constraint(language, vocabulary, tokenization="canonical")
    check_budgets(constraint, expected, longest=False)


EXPRESSION = Grammar('start: sum\nsum: term ("+" term)*\nterm: /[0-9]+/ | "(" sum ")"\n')


def ends_in_a_member(constraint: Constraint, budget: int, rng: random.Random) -> None:
    vocabulary, steering = constraint.vocabulary, FinishSteering(constraint)
    matcher = constraint.matcher()
    steering.check(matcher, budget)
    while not matcher.is_finished:
        mask = steering.kept(matcher.core, budget)
        ids = [int(each) for each in mask.nonzero()[0]]
        ids = [each for each in ids if each not in vocabulary.end_token_ids]
        assert ids or matcher.is_accepting, f"a dead end: {matcher.text!r}"
        if not ids or (matcher.is_accepting and rng.random() < 0.2):
            break
        matcher.advance(rng.choice(ids))
        budget -= 1
    assert constraint.language.matches(matcher.text)
    assert vocabulary.is_canonical(matcher.token_ids)


def end_in_members(constraint: Constraint, count: int) -> int:
    """Ends walks within budgets from the fewest tokens of a member on; returns that number."""
    shortest = constraint.core.shortest_token_ids(constraint.matcher().core, 1 << 20)
    assert shortest is not None
    rng = random.Random(0)
    for _ in range(count):
        ends_in_a_member(constraint, len(shortest) + rng.choice([0, 1, 2, 5, 20]), rng)
    return len(shortest)


@pytest.mark.parametrize("kind", ["gpt2", "cl100k", "NFC", "whole"])
@pytest.mark.parametrize("language", [SCHEMA, EXPRESSION], ids=["schema", "grammar"])
def test_stack_machines_end_in_members(kind: str, language: Language) -> None:
    end_in_members(Constraint(language, made(kind)[1], tokenization="canonical"), 25)
