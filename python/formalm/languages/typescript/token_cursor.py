"""Token cursor of the TypeScript parser."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from formalm.errors import LimitError
from formalm.languages.typescript.lexer import Token, refuse, tokenize

__all__ = ["MAX_DEPTH", "TokenCursor"]

#: Maximum nesting of types. The parser recurses, and Python's stack is not ours to exhaust.
MAX_DEPTH = 50


class TokenCursor:
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
        self._tokens = tokenize(source, start, end)
        self._at = 0

    def peek(self, ahead: int = 0) -> Token:
        """Returns the next token, or a later one; at the end, the end token."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def is_next(self, *texts: str, ahead: int = 0) -> bool:
        """Returns whether the next token is one of these names or signs."""
        token = self.peek(ahead)
        return token.kind in ("name", "punctuation") and token.text in texts

    def advance(self) -> Token:
        """Consumes and returns the next token."""
        token = self.peek()
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def accept(self, text: str) -> Token | None:
        """Consumes and returns the next token if it is this name or sign."""
        return self.advance() if self.is_next(text) else None

    def expect(self, text: str, why: str) -> Token:
        """Consumes the next token, which must be this name or sign."""
        if not self.is_next(text):
            self.expected(f"{text!r} {why}")
        return self.advance()

    def name(self, what: str) -> Token:
        """Consumes the next token, which must be a name."""
        if self.peek().kind != "name":
            self.expected(f"the name of {what}")
        return self.advance()

    def expected(self, what: str) -> NoReturn:
        """Raises an error about the next token."""
        token = self.peek()
        refuse(self.source, token.span, f"expected {what}, got {token}")

    def unsupported(self, token: Token, what: str, hint: str | None = None) -> NoReturn:
        """Raises an error about an unsupported construct."""
        refuse(self.source, token.span, f"{what} is not supported", hint=hint)

    def span_since(self, start: int) -> tuple[int, int]:
        """Returns the span from a position to the last token consumed."""
        return start, self._tokens[max(0, self._at - 1)].span[1]

    @contextmanager
    def nested(self) -> Iterator[None]:
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
