"""``IncrementalParser`` and ``TokenGroup`` as the readme of SCS describes them.

The readme does not say how a text ends. Here it ends where the parser says so, or where nothing can
follow: see :attr:`IncrementalParser.is_accepting`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from formalm.languages.parser import ParseFailure, Parser
from formalm.languages.parser import TokenGroup as AnyTokenGroup

__all__ = ["IncrementalParser", "ParseFailure", "TokenGroup"]


class TokenGroup:
    """A set of tokens, by a static method ``filter``."""

    @staticmethod
    def filter(token: str) -> bool:
        """Returns whether the token is a member of this group."""
        raise NotImplementedError


class IncrementalParser(Parser):
    """A parser that reads text piece by piece and raises :class:`ParseFailure` to reject it.

    A subclass defines ``append`` and ``copy``, and may define the other three methods. An instance
    is a :class:`~formalm.Parser`, and works wherever a language does: ``generate(model, prompt,
    parser)``, ``pipe(prompt, enforce=parser)``.

    Examples
    --------
    >>> from formalm.compat.scs import IncrementalParser, ParseFailure
    >>> class OneOf(IncrementalParser):
    ...     def __init__(self, options, text=""):
    ...         self.options, self.text = options, text
    ...
    ...     def append(self, chars):
    ...         self.text += chars
    ...         if not any(option.startswith(self.text) for option in self.options):
    ...             raise ParseFailure
    ...
    ...     def copy(self):
    ...         return OneOf(self.options, self.text)
    >>> language = OneOf(["Option A", "Option B"])
    >>> language.matches("Option A"), language.matches("Option"), language.is_viable("Option C")
    (True, False, False)
    """

    def valid_token_group(self) -> type[TokenGroup] | None:
        """Returns a group of tokens that may come next, so that ``append`` is not called."""
        return None

    def invalid_token_group(self) -> type[TokenGroup] | None:
        """Returns a group of tokens that may not come next; it takes precedence."""
        return None

    def get_next(self) -> list[str]:
        """Returns all strings of which one must come next; empty if ``append`` decides."""
        return []

    @property
    def is_accepting(self) -> bool:
        """True if the text may end here; a subclass may define it.

        By default, a text ends where ``get_next`` lists the empty string, or where ``append``
        rejects every character of the Basic Multilingual Plane. That takes a fraction of a second
        for each finished text. A parser whose text may end *or* continue must define this property.
        """
        strings = self.get_next()
        if strings:
            return "" in strings
        return not any(self._accepts(character) for character in _characters())

    def _accepts(self, character: str) -> bool:
        parser = self.copy()
        try:
            parser.append(character)
        except Exception:  # a character that no token need have; it does not follow
            return False
        return True

    def next_strings(self) -> Iterable[str | bytes]:
        """Returns what ``get_next`` does; nothing if the text may also end here."""
        strings = self.get_next() or []
        return [] if "" in strings else strings

    def allowed_groups(self) -> Iterable[AnyTokenGroup]:
        """Returns the valid group's filter."""
        group = self.valid_token_group()
        return [] if group is None else [group.filter]

    def forbidden_groups(self) -> Iterable[AnyTokenGroup]:
        """Returns the invalid group's filter."""
        group = self.invalid_token_group()
        return [] if group is None else [group.filter]


@cache
def _characters() -> str:
    """The Basic Multilingual Plane without surrogates; most parsers accept one of the first."""
    return "".join(chr(code) for code in range(0x10000) if not 0xD800 <= code < 0xE000)
