"""Token cursor of the TypeScript parser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from formalm.errors import LimitError
from formalm.languages.typescript.lexer import Word, refuse, words

__all__ = ["MAX_DEPTH", "Cursor"]

#: Types within types. The parser recurses, and Python's stack is not ours to exhaust.
MAX_DEPTH = 50


class Cursor:
    """A cursor over the tokens of a text.

    Parameters
    ----------
    source
        The text.
    start, end
        The part of it to read.
    depth
        The nesting depth of this part.
    """

    def __init__(self, source: str, start: int = 0, end: int | None = None, depth: int = 0) -> None:
        self.source = source
        self.depth = depth
        self._words = words(source, start, end)
        self._at = 0

    def look(self, ahead: int = 0) -> Word:
        """Returns the next token, or a later one; at the end, the end token."""
        return self._words[min(self._at + ahead, len(self._words) - 1)]

    def sees(self, *texts: str, ahead: int = 0) -> bool:
        """Returns whether the next token is one of these names or signs."""
        word = self.look(ahead)
        return word.kind in ("name", "punctuation") and word.text in texts

    def take(self) -> Word:
        """Consumes and returns the next token."""
        word = self.look()
        self._at = min(self._at + 1, len(self._words) - 1)
        return word

    def took(self, text: str) -> Word | None:
        """Consumes and returns the next token if it is this name or sign."""
        return self.take() if self.sees(text) else None

    def expect(self, text: str, why: str) -> Word:
        """Consumes the next token, which must be this name or sign."""
        if not self.sees(text):
            self.expected(f"{text!r} {why}")
        return self.take()

    def name(self, what: str) -> Word:
        """Consumes the next token, which must be a name."""
        if self.look().kind != "name":
            self.expected(f"the name of {what}")
        return self.take()

    def expected(self, what: str) -> NoReturn:
        """Raises an error about the next token."""
        word = self.look()
        refuse(self.source, word.span, f"expected {what}, got {word}")

    def unsupported(self, word: Word, what: str, hint: str | None = None) -> NoReturn:
        """Raises an error about an unsupported construct."""
        refuse(self.source, word.span, f"{what} is not supported", hint=hint)

    def since(self, start: int) -> tuple[int, int]:
        """Returns the span from a position to the last token consumed."""
        return start, self._words[max(0, self._at - 1)].span[1]

    @contextmanager
    def deeper(self) -> Iterator[None]:
        """Enters a level of nesting.

        Raises
        ------
        LimitError
            Beyond ``MAX_DEPTH``.
        """
        self.depth += 1
        if self.depth > MAX_DEPTH:
            hint = "declare named types for the inner types"
            raise LimitError("levels of nested types", self.depth, MAX_DEPTH, hint=hint)
        try:
            yield
        finally:
            self.depth -= 1
