"""Parsers that tests share."""

from __future__ import annotations

import time

from formalm import (
    Constraint,
    Matcher,
    ParseFailure,
    Parser,
    TableModel,
    Vocabulary,
)

VOCABULARY = Vocabulary.from_tokens(
    [b"a", b"b", b"ab", b"aba", b"\xe2", b"\x82\xac", b"\xe2\x82\xac", b"c", None],
    end_token_ids=[8],
)
MODEL = TableModel(VOCABULARY, {}, default=[0.2, 0.1, 0.2, 0.1, 0.1, 0.05, 0.05, 0.1, 0.1])


class Reading(Parser):
    """Any text of ``letters`` whose length is a multiple of ``step``, at most ``most`` long."""

    def __init__(
        self, letters: str = "ab", step: int = 1, most: int = 10**9, read: str = ""
    ) -> None:
        self.letters, self.step, self.most, self.read = letters, step, most, read

    def append(self, text: str) -> None:
        self.read += text
        if not set(text) <= set(self.letters) or len(self.read) > self.most:
            raise ParseFailure

    def copy(self) -> Reading:
        return type(self)(self.letters, self.step, self.most, self.read)

    @property
    def is_accepting(self) -> bool:
        return len(self.read) % self.step == 0


class Counting(Reading):
    """Counts what it is asked."""

    calls = 0

    def append(self, text: str) -> None:
        Counting.calls += 1
        super().append(text)


class Slow(Reading):
    """Any text of the letter a, which it reads in some milliseconds for each."""

    def __init__(self, seconds: float = 0.002) -> None:
        super().__init__("a")
        self.seconds = seconds

    def append(self, text: str) -> None:
        time.sleep(self.seconds * len(text))
        super().append(text)

    def copy(self) -> Slow:
        return Slow(self.seconds)


def go(matcher: Matcher, count: int = 1) -> None:
    """Find masks and read the first token, so many times; the last mask is found again."""
    for _ in range(count):
        matcher.mask()
        matcher.advance(0)
    matcher.mask()


def allowed(language: Parser) -> list[int]:
    return Constraint(language, VOCABULARY).matcher().allowed_token_ids().tolist()


class Nested(Parser):
    """As many b as a, the a first; ``least`` of them."""

    def __init__(self, least: int = 1, opened: int = 0, closed: int = 0) -> None:
        self.least, self.opened, self.closed = least, opened, closed

    def append(self, text: str) -> None:
        for letter in text:
            self.opened += letter == "a"
            self.closed += letter == "b"
            if letter not in "ab" or self.closed > self.opened or (letter == "a" and self.closed):
                raise ParseFailure
        if self.closed and self.opened < self.least:
            raise ParseFailure

    def copy(self) -> Nested:
        return type(self)(self.least, self.opened, self.closed)

    @property
    def is_accepting(self) -> bool:
        return self.opened == self.closed >= self.least


class Equal(Nested):
    """The same, with states that are found again."""

    def _state(self) -> tuple[int, int, int]:
        return self.least, self.opened, self.closed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equal) and self._state() == other._state()

    def __hash__(self) -> int:
        return hash(self._state())


class Bytes(Nested):
    """The same over bytes."""

    def append_bytes(self, data: bytes) -> None:
        self.append(data.decode("latin-1"))


class Letters(Parser):
    """Any text of some letters with at least so many of them, or refused beyond ``most``."""

    def __init__(self, letters: str, least: int, most: int, read: int = 0) -> None:
        self.letters, self.least, self.most, self.read = letters, least, most, read

    def append(self, text: str) -> None:
        self.read += len(text)
        if self.read > self.most or not set(text) <= set(self.letters):
            raise ParseFailure

    def copy(self) -> Letters:
        return type(self)(self.letters, self.least, self.most, self.read)

    @property
    def is_accepting(self) -> bool:
        return self.read >= self.least
