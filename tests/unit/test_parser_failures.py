"""Parsers that fail, break promises, call back or are used by many threads."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from formalm import (
    Constraint,
    LimitError,
    Parser,
    ParserError,
    Regex,
    fill_bitmasks,
    new_bitmask,
)
from tests.support.parsers import VOCABULARY, Reading, go


class Failing(Reading):
    """Does something else than it should, where ``what`` says so."""

    what: Callable[[Reading], Any]
    where = ""

    def append(self, text: str) -> None:
        super().append(text)
        return self.what() if self.where == "append" else None

    def copy(self) -> Reading:
        return self.what() if self.where == "copy" and self.read else super().copy()

    @property
    def is_accepting(self) -> bool:
        return self.what() if self.where == "is_accepting" and self.read else super().is_accepting

    def next_strings(self) -> Any:
        return self.what() if self.where == "next_strings" else ()

    def allowed_groups(self) -> Any:
        return self.what() if self.where == "allowed_groups" else ()


def failing(where: str, what: Callable[[Reading], Any]) -> Parser:
    return type("Failing", (Failing,), {"where": where, "what": what})()


def divide(_: object) -> float:
    return 1 / 0


@pytest.mark.parametrize(
    "where", ["append", "copy", "is_accepting", "next_strings", "allowed_groups"]
)
def test_other_exceptions_surface_with_their_cause(where: str) -> None:
    matcher = Constraint(failing(where, divide), VOCABULARY).matcher()
    with pytest.raises(ParserError, match="ZeroDivisionError") as caught:
        go(matcher)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)
    hint = "a bug in append()" if where == "append" else "only append() may reject"
    assert hint in str(caught.value)
    if where != "is_accepting":
        # In another thread, without a token.
        with pytest.raises(ParserError):
            fill_bitmasks([matcher], new_bitmask(1, len(VOCABULARY)))


@pytest.mark.parametrize(
    ("where", "what", "message"),
    [
        ("append", lambda _: False, "returned bool"),
        ("copy", lambda self: self, "the parser itself"),
        ("copy", lambda _: "a", "returned str"),
        ("is_accepting", lambda _: lambda: True, "returned function"),
        ("next_strings", lambda _: "ab", "returned str"),
        ("next_strings", lambda _: None, "returned NoneType"),
        ("next_strings", lambda _: [""], "empty string"),
        ("next_strings", lambda _: [b"a"], "contains bytes"),
        ("next_strings", lambda _: ["\ud800"], "raised UnicodeEncodeError"),
        ("allowed_groups", lambda _: str.isalpha, "returned method_descriptor"),
        ("allowed_groups", lambda _: ["ab"], "a function of a token's string"),
        ("allowed_groups", lambda _: [len], "must return True or False"),
        ("allowed_groups", lambda _: [[]], "unhashable"),
    ],
)
def test_parsers_that_violate_the_protocol_are_reported(
    where: str, what: Callable[[Reading], Any], message: str
) -> None:
    matcher = Constraint(failing(where, what), VOCABULARY).matcher()
    with pytest.raises(ParserError, match=message):
        go(matcher)


def test_promises_that_are_broken() -> None:
    with pytest.raises(ParserError, match="next_strings"):
        Constraint(failing("next_strings", lambda _: ["c"]), VOCABULARY).matcher().advance(7)
    everything = Regex(".*")
    matcher = Constraint(failing("allowed_groups", lambda _: [everything]), VOCABULARY).matcher()
    assert 7 in matcher.allowed_token_ids()
    with pytest.raises(ParserError, match="allowed_groups"):
        matcher.advance(7)


def test_groups_made_anew_are_limited() -> None:
    matcher = Constraint(
        failing("allowed_groups", lambda _: [lambda text: text == "a"]), VOCABULARY
    ).matcher()
    with pytest.raises(LimitError, match="token groups"):
        go(matcher, 300)


def test_interrupts_and_exits_are_themselves() -> None:
    def leave(_: object) -> None:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        Constraint(failing("append", leave), VOCABULARY).matcher().mask()

    def interrupt(_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    # In the background a shell may have it ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            Constraint(failing("append", interrupt), VOCABULARY).matcher().mask()
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_parser_may_call_back() -> None:
    inner = Constraint(Regex("[ab]*"), VOCABULARY)

    def ask(self: Reading) -> None:
        matchers = [inner.matcher() for _ in range(4)]
        fill_bitmasks(matchers, new_bitmask(4, len(VOCABULARY)))
        assert Reading().matches(self.read)

    language = failing("append", ask)
    matchers = [Constraint(language, VOCABULARY).matcher() for _ in range(8)]
    out = new_bitmask(8, len(VOCABULARY))
    fill_bitmasks(matchers, out)
    assert out[:, 0].tolist() == [0b100001111] * 8

    itself: list[Parser] = []
    itself.append(failing("append", lambda self: itself[0].matches(self.read) and None))
    with pytest.raises(ParserError):
        itself[0].matches("ab")


def test_one_language_in_many_threads() -> None:
    for kind in (Reading, type("Equal", (Reading,), {"__eq__": equal, "__hash__": hashed})):
        constraint = Constraint(kind("ab", 2), VOCABULARY)
        masks: list[list[list[bool]]] = []

        def walk(constraint: Constraint = constraint, masks: Any = masks) -> None:
            matcher = constraint.matcher()
            seen = []
            for token in [0, 1, 2, 3, 1] * 40:
                seen.append(matcher.mask().tolist())
                matcher.advance(token)
            masks.append(seen)

        threads = [threading.Thread(target=walk) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=60)
        assert len(masks) == 6
        assert all(mask == masks[0] for mask in masks)


def equal(self: Reading, other: object) -> bool:
    return isinstance(other, Reading) and self.read == other.read


def hashed(self: Reading) -> int:
    return hash(self.read)
