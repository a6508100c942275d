"""Replacing the interned state at any time changes no answer."""

from __future__ import annotations

import gc
import pickle
import random
import threading
from functools import cache
from itertools import islice

import numpy as np
import pytest
from tokenizers import pre_tokenizers

from formalm import (
    Constraint,
    JsonSchema,
    LimitError,
    Matcher,
    Regex,
    TokenError,
    Vocabulary,
    _core,
)
from tests.canonical.small_tokenizers import trained
from tests.support.languages_of_every_kind import BY_NAME, CASES, KINDS, Kind

STEPS = 40
#: Fragments that join values and names, as tokens of real vocabularies do.
FRAGMENTS = [
    '"',
    '",',
    '","',
    '":',
    '{"',
    '"}',
    "},",
    "[",
    "]",
    '["',
    '"]',
    ",",
    ":",
    "a",
    "ab",
    "abc",
]
FRAGMENTS += [
    "x",
    "123",
    "45",
    "-",
    "9",
    "h",
    "gh",
    " ",
    "\n",
    "\n ",
    "<a>",
    "</a>",
    "<call>",
    "find(",
]


@cache
def plain() -> Vocabulary:
    tokens: list[bytes | None] = [bytes([byte]) for byte in range(256)]
    return Vocabulary.from_tokens([*tokens, *(one.encode() for one in FRAGMENTS[1:]), None], [285])


@cache
def merging() -> Vocabulary:
    tokenizer = trained(pre_tokenizers.ByteLevel(add_prefix_space=False))
    tokenizer.add_special_tokens(["<|end|>"])
    return Vocabulary.from_tokenizer_json(tokenizer.to_str())


def replaced(constraint: Constraint, every: int) -> Constraint:
    """A constraint like another one, which replaces its state each so many steps of a matcher."""
    fresh = Constraint(
        constraint.language, constraint.vocabulary, tokenization=constraint.tokenization
    )
    canonical = constraint.tokenization == "canonical"
    fresh.core = _core.Constraint(
        constraint.language.automaton(),
        fresh.spelled.core,
        encoder=constraint.vocabulary.encoder() if canonical else None,
        replace_every=every,
    )
    return fresh


def pair_of(kind: Kind, tokenization: str, every: int) -> tuple[Constraint, Constraint]:
    vocabulary = merging() if tokenization == "canonical" else plain()
    usual = Constraint(kind.make(), vocabulary, tokenization=tokenization)
    return usual, replaced(usual, every)


def read_alike(one: Matcher, other: Matcher, token: int) -> None:
    outcomes = []
    for matcher in (one, other):
        try:
            matcher.advance(token)
            outcomes.append("")
        except TokenError as error:
            outcomes.append(str(error))
    assert outcomes[0] == outcomes[1]


def copied(matcher: Matcher) -> Matcher:
    again = pickle.loads(pickle.dumps(matcher))  # noqa: S301
    assert isinstance(again, Matcher)
    return again


def compare(one: Matcher, other: Matcher, draw: random.Random) -> list[int]:
    mask = one.mask()
    assert np.array_equal(mask, other.mask())
    assert np.array_equal(one.bitmask(), other.bitmask())
    assert (one.text, one.token_ids) == (other.text, other.token_ids)
    assert one.is_accepting == other.is_accepting
    token = draw.randrange(len(mask))
    assert one.explain(token).text == other.explain(token).text
    assert one.allows(token) == other.allows(token) == bool(mask[token])
    if one.constraint.core.is_exact and one.constraint.tokenization == "all":
        assert one.forced_bytes() == other.forced_bytes()
        left = one.constraint.core.completes_within(one.core, 30)
        assert left == other.constraint.core.completes_within(other.core, 30)
    return np.flatnonzero(mask).tolist()


@pytest.mark.parametrize(("kind", "tokenization"), CASES)
@pytest.mark.parametrize("every", [1, 3])
def test_a_matcher_that_moves_answers_as_one_that_stays(
    kind: Kind, tokenization: str, every: int
) -> None:
    usual, moving = pair_of(kind, tokenization, every)
    draw = random.Random(kind.name)
    for _ in range(2):
        one, other = usual.matcher(), moving.matcher()
        forks: list[tuple[Matcher, Matcher]] = []
        for _ in range(STEPS):
            allowed = compare(one, other, draw)
            if not allowed:
                break
            step = draw.random()
            if step < 0.1 and one.token_ids:
                back = draw.randint(1, min(3, len(one.token_ids)))
                one.rollback(back)
                other.rollback(back)
            elif step < 0.2:
                forks.append((one.fork(), other.fork()))
            elif step < 0.3:
                read_alike(one, other, draw.randrange(len(plain())))
            else:
                read_alike(one, other, draw.choice(allowed))
        for first, second in forks:
            compare(first, second, draw)
        if kind.is_exact:
            compare(one, copied(other), draw)
    assert moving.stats().replacements > 0


@pytest.mark.parametrize(
    "kind", [kind for kind in KINDS if kind.is_exact], ids=lambda kind: kind.name
)
def test_bytes_that_were_read_without_tokens_move_along(kind: Kind) -> None:
    usual, moving = pair_of(kind, "all", 1)
    draw = random.Random(7)
    text = kind.draw(draw).encode()
    one, other = usual.matcher(), moving.matcher()
    for piece in (text[:3], text[3:5], text[5:]):
        one.advance_bytes(piece)
        other.advance_bytes(piece)
        compare(one, other, draw)
    other.rollback(2)
    assert other.text == text[:3]
    one.timeout_seconds = 60.0
    again = copied(one)
    assert again.timeout_seconds == 60.0
    again.rollback(1)
    assert again.text == text[:5]


SMALL = [1, 1000, 65_536]


@pytest.mark.parametrize("limit", SMALL)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_small_limit_changes_no_mask(kind: Kind, limit: int) -> None:
    usual = Constraint(kind.make(), plain())
    small = Constraint(kind.make(), plain(), memory_limit_bytes=limit)
    draw = random.Random(limit)
    for _ in range(6):
        text = kind.draw(draw)
        one, other = usual.matcher(), small.matcher()
        for token in plain_tokens(text):
            one.advance(token)
            other.advance(token)
            assert np.array_equal(one.mask(), other.mask())


def plain_tokens(text: str) -> list[int]:
    """Greedy tokens of a text."""
    data, tokens = text.encode(), []
    longest = sorted(FRAGMENTS[1:], key=len, reverse=True)
    at = 0
    while at < len(data):
        found = next((one for one in longest if data.startswith(one.encode(), at)), None)
        tokens.append(data[at] if found is None else 255 + FRAGMENTS.index(found))
        at += 1 if found is None else len(found)
    return tokens


GROWING = ["an open object", "distinct strings", "a dictionary", "a Python parser"]


@pytest.mark.parametrize("name", [*GROWING, "a schema in a grammar", "tool calls"])
def test_state_is_replaced_and_memory_stays_within_the_limit(name: str) -> None:
    kind, limit = BY_NAME[name], 1 << 19
    constraint = Constraint(kind.make(), plain(), memory_limit_bytes=limit)
    draw = random.Random(3)
    most = 0
    for _ in range(300):
        matcher = constraint.matcher()
        for token in plain_tokens(kind.draw(draw)):
            matcher.advance(token)
        matcher.mask()
        most = max(most, constraint.stats().total_bytes)
    assert constraint.stats().replacements > 0
    assert most <= 2 * limit


def test_a_matcher_keeps_the_state_it_needs_and_frees_it() -> None:
    kind = BY_NAME["an open object"]
    constraint = Constraint(kind.make(), plain(), memory_limit_bytes=1 << 18)
    held = constraint.matcher()
    held.advance_bytes(b'{"abc":')
    mask = held.mask()
    draw = random.Random(5)
    while constraint.stats().replacements < 3:
        matcher = constraint.matcher()
        matcher.advance_bytes(kind.draw(draw).encode())
    del matcher
    assert constraint.stats().pinned_bytes > 0
    assert np.array_equal(held.mask(), mask)
    del held
    gc.collect()
    assert constraint.stats().pinned_epochs == 0


def test_long_texts_that_are_read_at_once_count_as_what_they_are() -> None:
    constraint = Constraint(JsonSchema({"type": "object"}), plain(), memory_limit_bytes=1 << 20)
    for number in range(30):
        constraint.matcher().advance_bytes(b'{"%d' % number + b"n" * 20_000)
        assert constraint.stats().total_bytes < 8 << 20
    assert constraint.stats().replacements > 5


def test_keys_of_two_numberings_are_never_equal() -> None:
    constraint = replaced(Constraint(Regex("[ab]*"), plain()), 1)
    keys = set()
    for _ in range(50):
        matcher = constraint.matcher()
        matcher.advance(ord("a"))
        assert matcher.state_key not in keys
        keys.add(matcher.state_key)


def test_pinned_matchers_keep_one_numbering() -> None:
    constraint = replaced(Constraint(Regex("[ab]*"), plain()), 1)
    first = constraint.matcher()
    first.core.pin()
    for _ in range(10):
        other = constraint.matcher()
        other.advance(ord("b"))
        other.core.pin(first.core)
        first.advance(ord("a"))
        assert first.state_key == other.state_key


def limited() -> Constraint:
    return Constraint(JsonSchema({"type": "object"}), plain(), state_limit=200)


def failure(constraint: Constraint, text: str) -> str:
    matcher = constraint.matcher()
    with pytest.raises(LimitError) as raised:
        matcher.advance_bytes(text.encode())
    # The matcher is as it was.
    assert matcher.text == b""
    matcher.advance_bytes(b"{")
    return str(raised.value)


def test_a_limit_is_that_of_one_request_however_many_came_before() -> None:
    draw = random.Random(11)
    long = "{" + ",".join(f'"{index:03d}abcdef":1' for index in range(40)) + "}"
    alone = failure(limited(), long)
    shared = limited()
    assert failure(shared, long) == alone
    for _ in range(200):
        matcher = shared.matcher()
        matcher.advance_bytes(BY_NAME["an open object"].draw(draw).encode())
        assert matcher.is_accepting
    assert failure(shared, long) == alone


def test_threads_share_a_constraint_whose_state_is_replaced_all_the_time() -> None:
    kind = BY_NAME["an open object"]
    constraint = Constraint(kind.make(), plain(), memory_limit_bytes=1 << 16)
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        draw = random.Random(seed)
        try:
            for _ in range(40):
                matcher = constraint.matcher()
                for token in plain_tokens(kind.draw(draw)):
                    assert matcher.mask()[token]
                    matcher.advance(token)
                assert matcher.is_accepting
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    assert constraint.stats().replacements > 0


def test_one_language_serves_two_constraints_and_its_own_questions() -> None:
    kind = BY_NAME["distinct strings"]
    language = kind.make()
    small = [Constraint(language, plain(), memory_limit_bytes=size) for size in (1 << 16, 1 << 18)]
    draw = random.Random(13)
    for _ in range(100):
        text = kind.draw(draw)
        assert language.matches(text)
        for constraint in small:
            matcher = constraint.matcher()
            matcher.advance_bytes(text.encode())
            assert matcher.is_accepting


def test_a_language_answers_forever_within_its_limit() -> None:
    language = JsonSchema({"type": "object"})
    draw = random.Random(17)
    texts = (BY_NAME["an open object"].draw(draw) for _ in iter(int, 1))
    automaton = language.automaton(state_limit=2000)
    for text in islice(texts, 400):
        assert automaton.matches(text.encode())
    assert automaton.state_count <= 2000


def test_a_constraint_is_pickled_without_what_it_has_read() -> None:
    constraint = Constraint(BY_NAME["an open object"].make(), plain(), memory_limit_bytes=1 << 16)
    before = len(pickle.dumps(constraint))
    for _ in range(50):
        constraint.matcher().advance_bytes(BY_NAME["an open object"].draw(random.Random()).encode())
    assert len(pickle.dumps(constraint)) == before


def test_constraints_of_one_language_do_not_take_each_others_masks() -> None:
    """Any tokens first, canonical ones after: both look ahead on the language's one machine."""
    language = JsonSchema(
        {
            "type": "object",
            "required": ["name"],
            "propertyNames": {"maxLength": 6},
            "maxProperties": 3,
        },
        property_order="any",
    )
    text = '{"h":false,"h7Gab":"c","name":"xj h"}'
    for tokenization in ("all", "canonical", "all", "canonical"):
        matcher = Constraint(language, merging(), tokenization=tokenization).matcher()
        for token in merging().encode(text):
            assert matcher.mask()[token], (tokenization, matcher.text)
            matcher.advance(token)
        assert matcher.is_accepting
