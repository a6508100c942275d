"""Parsers that tests share."""

from __future__ import annotations

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


def go(matcher: Matcher, count: int = 1) -> None:
    """Find masks and read the first token, so many times; the last mask is found again."""
    for _ in range(count):
        matcher.mask()
        matcher.advance(0)
    matcher.mask()


def allowed(language: Parser) -> list[int]:
    return Constraint(language, VOCABULARY).matcher().allowed_token_ids().tolist()
