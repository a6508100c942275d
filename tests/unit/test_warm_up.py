"""``Constraint.warm_up``: the same masks, earlier."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pytest

from formalm import Choice, Constraint, Grammar, JsonSchema, Regex, Vocabulary
from formalm.constraint_cache import ConstraintCache
from formalm.errors import ArgumentError
from formalm.models.canary import canary

USER = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "email": {"type": "string", "format": "email"},
        "age": {"type": "integer", "minimum": 0, "maximum": 150},
        "role": {"enum": ["admin", "user", 3.5, None, ["a"], {"k": True}]},
        "code": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"},
        "tags": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
        "at": {"anyOf": [{"type": "null"}, {"type": "string", "format": "date-time"}]},
        "next": {"$ref": "#"},
    },
    "required": ["name", "code"],
    "additionalProperties": False,
}

VALUES: list[Any] = [
    {"name": "Ann", "email": "a@b.org", "age": 7, "role": "user", "code": "ABC-0123"},
    {"name": "Bo", "code": "XYZ-9999", "tags": ["a", "b"], "at": None, "next": {"name": ""}},
    {"name": "", "role": {"k": True}, "code": "AAA-0000", "at": "2024-01-02T03:04:05Z"},
]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    pieces = ['{"', '"}', '": ', '":', ', "', '", "', "name", "code", "age", "ad", "min", "202"]
    tokens = [bytes([byte]) for byte in range(256)] + [piece.encode() for piece in pieces]
    return Vocabulary.from_tokens([*tokens, None], end_token_ids=[len(tokens)])


def longest_tokens(vocabulary: Vocabulary, text: bytes) -> Iterator[int]:
    """Yields the longest token at each place of a text."""
    tokens = {vocabulary.token_bytes(token): token for token in range(len(vocabulary))}
    while text:
        longest = max(size for size in range(1, 9) if text[:size] in tokens)
        yield tokens[text[:longest]]
        text = text[longest:]


def bitmasks(constraint: Constraint, token_ids: Iterable[int]) -> Iterator[bytes]:
    """Yields the masks before each token, up to the first that is refused."""
    matcher = constraint.matcher()
    for token_id in token_ids:
        mask = matcher.mask()
        yield np.packbits(mask).tobytes()
        if not mask[token_id]:
            return
        matcher.advance(token_id)
    yield np.packbits(matcher.mask()).tobytes()


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")], ids=["compact", "spaced"])
def test_masks_are_those_of_a_constraint_that_was_not_warmed_up(
    vocabulary: Vocabulary, separators: tuple[str, str]
) -> None:
    language = JsonSchema(USER, separators=separators)
    warm, cold = Constraint(language, vocabulary), Constraint(language, vocabulary)
    assert warm.warm_up(1.0) > 25
    for value in VALUES:
        text = json.dumps(value, separators=separators).encode()
        assert list(bitmasks(warm, text)) == list(bitmasks(cold, text))


def test_a_warmed_up_constraint_computes_few_masks_of_a_member(vocabulary: Vocabulary) -> None:
    language = JsonSchema(USER, separators=(", ", ": "))
    new = []
    for seconds in (0, 1.0):
        constraint = Constraint(language, vocabulary)
        before = constraint.warm_up(seconds)
        assert constraint.mask_count == before
        for value in VALUES:
            tokens = longest_tokens(vocabulary, json.dumps(value).encode())
            assert len(list(bitmasks(constraint, tokens))) > 8
        new.append(constraint.mask_count - before)
    assert new[1] < 0.75 * new[0], new


@pytest.mark.parametrize(
    "language",
    [
        Regex(r"[0-9]{4}-[0-9]{2}(-[0-9]{2})?"),
        Choice(["yes", "no"]),
        Grammar('start: "a" start "b" | WORD\nWORD: /[c-z]+/'),
        JsonSchema(True),
        Regex("a+") + JsonSchema({"properties": {"name": {"type": "string"}}}),
        JsonSchema({"enum": [1]}) | JsonSchema({"type": "array"}),
    ],
    ids=["regex", "choice", "grammar", "any value", "concatenation", "union"],
)
def test_every_kind_of_language_warms_up_until_nothing_is_new(
    vocabulary: Vocabulary, language: Any
) -> None:
    constraint = Constraint(language, vocabulary)
    assert constraint.warm_up(2.0) > 0
    matcher = constraint.matcher()
    assert matcher.mask().any()
    assert constraint.warm_up(0) == 0


def test_the_budget_is_kept(vocabulary: Vocabulary) -> None:
    properties = {f"p{number}": USER for number in range(50)}
    constraint = Constraint(JsonSchema({"properties": properties}), vocabulary)
    start = time.thread_time()
    assert constraint.warm_up(0.02) > 0
    assert time.thread_time() - start < 1.0


def test_half_of_the_memory_limit_is_left(vocabulary: Vocabulary) -> None:
    properties = {f"p{n}": {"pattern": f"^[a-z]{{{n},}}[{n % 10}x]$"} for n in range(1, 100)}
    schema = {"properties": properties, "additionalProperties": False}
    limit = 4 << 20
    small = Constraint(JsonSchema(schema), vocabulary, memory_limit_bytes=limit)
    made = small.warm_up(5.0)
    assert small.memory_bytes < limit
    large = Constraint(JsonSchema(schema), vocabulary)
    assert 0 < made < large.warm_up(5.0)
    assert large.memory_bytes > limit


def test_canonical_masks_leave_half_of_the_memory_limit() -> None:
    properties = {f"p{n}": {"type": "string", "maxLength": 40 + n} for n in range(10)}
    vocabulary, limit = canary().vocabulary, 1 << 20
    schema = JsonSchema({"properties": properties})
    small = Constraint(schema, vocabulary, tokenization="canonical", memory_limit_bytes=limit)
    made = small.warm_up(5.0)
    # One mask may exceed it.
    assert small.memory_bytes < 0.6 * limit
    large = Constraint(schema, vocabulary, tokenization="canonical")
    assert 0 < made < large.warm_up(5.0)
    assert large.memory_bytes > limit


def test_a_matcher_that_reads_ends_a_warm_up(vocabulary: Vocabulary) -> None:
    words = Grammar("start: (WORD NUMBER)+\nWORD: /[a-z]+(?= )/\nNUMBER: / [0-9]+/")
    constraint = Constraint(words, vocabulary)
    matcher = constraint.matcher()
    ended = threading.Event()

    def warm_up() -> None:
        constraint.warm_up(20.0)
        ended.set()

    thread = threading.Thread(target=warm_up)
    thread.start()
    while thread.is_alive():
        matcher.advance(ord("a"))
        matcher.rollback(1)
        time.sleep(0.001)
    assert ended.wait(5)
    thread.join()


@pytest.mark.skipif(
    not hasattr(time, "pthread_getcpuclockid"), reason="needs the CPU clocks of other threads"
)
def test_a_matcher_waits_for_little_work_of_a_warm_up() -> None:
    """After a matcher asks, the warming thread uses no less CPU time than it holds locks."""
    formats = ("hostname", "email", "uri", "date-time", "ipv6")
    texts = {f"p{n}": {"type": "string", "format": name} for n, name in enumerate(formats)}
    schema = {"properties": {**texts, "next": {"$ref": "#"}}, "patternProperties": {"^p": {}}}
    vocabulary = canary().vocabulary
    [quote] = vocabulary.encode("{")
    held = []
    for trial in range(60):
        constraint = Constraint(JsonSchema(schema), vocabulary)
        matcher = constraint.matcher()
        begun, ended = threading.Event(), [0]

        def warm_up(
            constraint: Constraint = constraint,
            begun: threading.Event = begun,
            ended: list[int] = ended,
        ) -> None:
            begun.set()
            constraint.warm_up(20.0)
            ended[0] = time.thread_time_ns()

        thread = threading.Thread(target=warm_up)
        thread.start()
        assert begun.wait(5)
        assert thread.ident is not None
        time.sleep(0.0002 * (trial % 10))
        if not thread.is_alive():
            continue
        asked = time.clock_gettime_ns(time.pthread_getcpuclockid(thread.ident))
        matcher.advance(quote)
        thread.join()
        held.append(ended[0] - asked)
    assert len(held) > 20
    # The clock also runs while the asking thread waits for a processor, so the middle counts.
    assert np.median(held) < 100_000, sorted(held)


@pytest.mark.parametrize("seconds", [-1, "1", float("nan")], ids=["negative", "text", "nan"])
def test_a_budget_is_a_number_of_seconds(vocabulary: Vocabulary, seconds: Any) -> None:
    with pytest.raises(ArgumentError, match="seconds must be a positive number"):
        Constraint(Choice(["a"]), vocabulary).warm_up(seconds)


def test_a_cache_warms_up_what_it_compiles(vocabulary: Vocabulary) -> None:
    caches = [ConstraintCache(vocabulary, warm_up_seconds=seconds) for seconds in (0.0, 0.5)]
    cold, warm = (cache.constraint(USER) for cache in caches)
    assert cold.mask_count == 0 < warm.mask_count
    with pytest.raises(ArgumentError, match="warm_up_seconds"):
        ConstraintCache(vocabulary, warm_up_seconds=-1)
