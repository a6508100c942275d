"""A deadline ends compiling and masks in time, changes no answer, and costs nothing where unset."""

from __future__ import annotations

import pickle
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Choice,
    Constraint,
    DeadlineError,
    Grammar,
    JsonSchema,
    Language,
    Matcher,
    Regex,
    Vocabulary,
    fill_bitmasks,
    grammars,
    new_bitmask,
)
from formalm.models.canary import canary
from tests.support.parsers import Slow

VOCABULARY = canary().vocabulary
DRAWN = random.Random(0)

# Enough tokens that a new mask takes some tenths of a millisecond.
MANY = Vocabulary.from_tokens(
    [
        *(bytes([byte]) for byte in range(256)),
        *{
            "".join(DRAWN.choices(' abckfopxyz0123,:{}[]"', k=DRAWN.randint(2, 9))).encode()
            for _ in range(6_000)
        },
        None,
    ]
)

# What a loaded machine may add to a deadline, in seconds.
LATE = 2.0


# Each compiles for seconds, or for ever, or ends in a limit.
LONG_COMPILE: dict[str, Callable[[], Language]] = {
    "a far length": lambda: JsonSchema(
        {"type": "string", "minLength": 10**9, "pattern": "^(ab)*c$"}, approximate=True
    ),
    "many of few names": lambda: JsonSchema(
        {"type": "object", "propertyNames": {"pattern": "^[ab]{1,9}$"}, "minProperties": 10**5},
        approximate=True,
    ),
    "a large constant": lambda: JsonSchema({"const": {f"n{at}": [at] for at in range(5_000)}}),
    "strings": lambda: Choice(["".join(DRAWN.choices("abcdefgh", k=20)) for _ in range(60_000)]),
    "items": lambda: JsonSchema(
        {"type": "array", "contains": {"type": "integer"}, "minContains": 10**9}
    ),
}

# Each has a mask that takes long.
LONG_MASK: dict[str, Callable[[], tuple[Language, dict[str, Any]]]] = {
    "a search for a live state": lambda: (
        Regex(".*a.{200}b.*") & Regex(".*b.{201}a.*") & ~Regex(".*a.{199}c.*"),
        {},
    ),
    "a slow parser": lambda: (Slow(), {}),
    "canonical tokens of a grammar": lambda: (grammars.PYTHON, {"tokenization": "canonical"}),
}

# Kinds of machines, with what was read before the mask.
KINDS: dict[str, tuple[Callable[[], Language], str]] = {
    "look-around": (lambda: Regex(r"(?!.*foo.*bar)[a-z ]*(?<=xyz)[a-z]{3,40}"), "abc"),
    "edits": (lambda: Regex("hello world this is").edits(2), "hel"),
    "patterns": (
        lambda: JsonSchema(
            {"properties": {f"p{i}": {"pattern": f"^a{i}[a-z]{{3,{i}}}$"} for i in range(3, 40)}}
        ),
        '{"p1',
    ),
    "an open object": (lambda: JsonSchema({"type": "object"}), '{"a'),
    "distinct items": (
        lambda: JsonSchema({"type": "array", "uniqueItems": True, "items": {"type": "string"}}),
        '["ab", "ac",',
    ),
    "alternatives": (
        lambda: JsonSchema(
            {"oneOf": [{"required": [f"k{i}"], "minProperties": i} for i in range(1, 9)]},
            approximate=True,
        ),
        '{"k3',
    ),
    "numbers": (lambda: JsonSchema({"multipleOf": 0.017, "minimum": 3.3}), ""),
    "any order": (
        lambda: JsonSchema(
            {"properties": {name: {"type": "integer"} for name in "abcdef"}, "minProperties": 4},
            property_order="any",
        ),
        '{"b',
    ),
    "formats": (
        lambda: JsonSchema(
            {
                "anyOf": [
                    {"format": name, "type": "string"} for name in ("date-time", "email", "uri")
                ]
            }
        ),
        '"a',
    ),
    "a document in a string": (
        lambda: JsonSchema(
            {
                "type": "string",
                "contentMediaType": "application/json",
                "contentSchema": {"type": "object", "required": ["q"]},
            },
            approximate=True,
        ),
        '"{',
    ),
    "a grammar": (lambda: grammars.JSON, '{"a": ['),
    "a schema in a grammar": (
        lambda: Grammar(
            'start: "x" j "y" j?\nj: %json {"items": {"type": "boolean"}, "type": "array"}'
        ),
        "x[true",
    ),
    "joined": (lambda: Regex("[a-z]{2,5}: ") + JsonSchema({"type": "object"}), 'ab: {"'),
    "an indented grammar": (lambda: grammars.PYTHON, "def f(x):\n  "),
}


def ended_late(call: Callable[[], object], what: str) -> float:
    """How long after its deadline a call ended; it must not end well."""
    begun = time.perf_counter()
    with pytest.raises(DeadlineError) as caught:
        call()
    taken = time.perf_counter() - begun
    error = caught.value
    assert error.what == what
    assert error.needed >= error.allowed
    assert error.hint
    return taken - error.allowed


@pytest.mark.parametrize("kind", LONG_COMPILE)
def test_compiling_ends_at_its_deadline(kind: str) -> None:
    language = LONG_COMPILE[kind]()
    late = ended_late(lambda: Constraint(language, VOCABULARY, timeout_seconds=0.01), "compile")
    assert late < LATE


def ask(matcher: Matcher) -> dict[str, Callable[[], object]]:
    out = new_bitmask(2, matcher.constraint.width)
    other = matcher.fork()
    return {
        "mask": matcher.mask,
        "bitmask": matcher.bitmask,
        "fill_bitmask": lambda: matcher.fill_bitmask(out, 1),
        "allowed_token_ids": matcher.allowed_token_ids,
        "fill_bitmasks": lambda: fill_bitmasks([matcher, other], out),
    }


@pytest.mark.parametrize("kind", LONG_MASK)
def test_masks_end_at_their_deadline(kind: str) -> None:
    language, options = LONG_MASK[kind]()
    constraint = Constraint(language, VOCABULARY, **options)
    matcher = constraint.matcher(timeout_seconds=0.001)
    for name, call in ask(matcher).items():
        assert ended_late(call, "mask") < LATE, name
        assert matcher.token_ids == []


@pytest.mark.parametrize("tokenization", ["all", "canonical"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_constraint_that_was_cut_short_answers_as_another_one(
    kind: str, tokenization: str
) -> None:
    make, text = KINDS[kind]
    vocabulary = MANY if tokenization == "all" else VOCABULARY
    tokens = list(text.encode()) if vocabulary is MANY else VOCABULARY.encode(text)
    # A vocabulary hands masks from one constraint to another, so each has its own.
    copied = pickle.loads(pickle.dumps(vocabulary))  # noqa: S301

    def begun(vocabulary: Vocabulary, **options: Any) -> Matcher:
        made = Constraint(make(), vocabulary, tokenization=tokenization, **options).matcher()
        assert made.advance_many(tokens) == len(tokens)
        return made

    def patiently(call: Callable[[float], Any]) -> tuple[Any, int]:
        seconds, failures = 1e-5, 0
        while True:
            try:
                return call(seconds), failures
            except DeadlineError:
                seconds *= 1.6
                failures += 1

    def at(matcher: Matcher, name: str, *arguments: int) -> Any:
        def call(seconds: float) -> Any:
            matcher.timeout_seconds = seconds
            return getattr(matcher, name)(*arguments)

        return patiently(call)

    def compiled(seconds: float) -> Matcher:
        return begun(copied, timeout_seconds=seconds)

    expected = begun(vocabulary)
    found, cut = patiently(compiled)
    for step in range(6):
        want = expected.mask()
        mask, failures = at(found, "mask")
        cut += failures
        assert np.array_equal(mask, want), step
        assert expected.is_accepting == found.is_accepting
        bits, _ = at(found, "bitmask")
        assert np.array_equal(bits, expected.bitmask())
        allowed = np.flatnonzero(want)
        if not len(allowed):
            break
        token = int(allowed[DRAWN.randrange(len(allowed))])
        if token in vocabulary.end_token_ids:
            break
        expected.advance(token)
        _, failures = at(found, "advance", token)
        cut += failures
        assert found.token_ids == expected.token_ids
    assert cut > 0


def test_compiling_can_be_tried_again_with_more_time() -> None:
    language = LONG_COMPILE["strings"]()
    with pytest.raises(DeadlineError):
        Constraint(language, VOCABULARY, timeout_seconds=0.001)
    allowed = Constraint(language, VOCABULARY, timeout_seconds=600).matcher().mask()
    assert np.array_equal(allowed, Constraint(language, VOCABULARY).matcher().mask())


def test_a_deadline_belongs_to_a_matcher_and_its_forks() -> None:
    constraint = Constraint(Slow(), VOCABULARY)
    matcher = constraint.matcher(timeout_seconds=0.001)
    fork = matcher.fork()
    assert fork.timeout_seconds == pytest.approx(0.001)
    fork.timeout_seconds = None
    assert matcher.timeout_seconds == pytest.approx(0.001)
    assert constraint.matcher().timeout_seconds is None
    assert fork.mask().any()
    with pytest.raises(DeadlineError):
        Constraint(Slow(), VOCABULARY).matcher(timeout_seconds=0.001).mask()


def test_each_row_of_a_batch_has_its_own_deadline() -> None:
    out = new_bitmask(2, len(VOCABULARY))
    slow = Constraint(Slow(0.0005), VOCABULARY).matcher()
    quick = Constraint(Regex("[ab]+"), VOCABULARY).matcher(timeout_seconds=600)
    fill_bitmasks([slow, quick], out)
    assert np.array_equal(out[1], quick.bitmask())
    hurried = Constraint(Slow(), VOCABULARY).matcher(timeout_seconds=0.001)
    with pytest.raises(DeadlineError):
        fill_bitmasks([quick, hurried], out)


def test_a_deadline_binds_only_its_own_thread() -> None:
    answers: dict[float | None, object] = {}
    constraint = Constraint(Slow(0.001), VOCABULARY)

    def work(seconds: float | None) -> None:
        matcher = constraint.matcher(timeout_seconds=seconds)
        try:
            answers[seconds] = matcher.mask().any()
        except DeadlineError as error:
            answers[seconds] = error

    threads = [threading.Thread(target=work, args=(seconds,)) for seconds in (0.0001, None)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert isinstance(answers[0.0001], DeadlineError)
    assert answers[None] == np.True_


def test_equal_constraints_may_have_had_other_deadlines() -> None:
    one = Constraint(Regex("a+"), VOCABULARY, timeout_seconds=60)
    assert one == Constraint(Regex("a+"), VOCABULARY)
    assert hash(one) == hash(Constraint(Regex("a+"), VOCABULARY))


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), True, "1", [1]])
def test_a_deadline_is_a_positive_number(seconds: Any) -> None:
    match = "timeout_seconds must be a positive number of seconds or None, got"
    with pytest.raises(ArgumentError, match=match):
        Constraint(Regex("a"), VOCABULARY, timeout_seconds=seconds)
    constraint = Constraint(Regex("a"), VOCABULARY)
    with pytest.raises(ArgumentError, match=match):
        constraint.matcher(timeout_seconds=seconds)
    with pytest.raises(ArgumentError, match=match):
        constraint.matcher().timeout_seconds = seconds


def test_reading_and_explaining_end_at_their_deadline() -> None:
    slow = Constraint(Slow(0.05), VOCABULARY).matcher(timeout_seconds=0.01)
    token = VOCABULARY.encode("a")[0]
    calls: dict[str, Callable[[], object]] = {
        "advance": lambda: slow.advance_many([token] * 40),
        "explain": lambda: slow.explain(token),
    }
    for what, call in calls.items():
        assert ended_late(call, what) < LATE
        assert slow.token_ids == []
    slow.timeout_seconds = None
    slow.advance(token)
    assert slow.token_ids == [token]


def test_forced_bytes_end_at_their_deadline() -> None:
    matcher = Constraint(JsonSchema({"const": "ab" * 100_000}), VOCABULARY).matcher()
    matcher.timeout_seconds = 0.001
    assert ended_late(matcher.forced_bytes, "forced") < LATE
    matcher.timeout_seconds = None
    assert len(matcher.forced_bytes()) == 200_002


def test_a_long_text_is_read_up_to_its_deadline() -> None:
    matcher = Constraint(JsonSchema({"type": "object"}), VOCABULARY).matcher(timeout_seconds=0.01)
    text = b"{" + b",".join(b'"n%d":[[1]]' % at for at in range(200_000))
    assert ended_late(lambda: matcher.advance_bytes(text), "advance") < LATE
    assert matcher.text == b""
    matcher.advance_bytes(b'{"a":1')
    assert matcher.text == b'{"a":1'
