"""Captures of grammars: the strings of rules and terminals with a ``capture`` attribute."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from formalm.errors import LanguageError
from formalm.languages.captures.groups import CaptureSpans, Group
from formalm.languages.grammar.parse_trees import Tree

if TYPE_CHECKING:
    from formalm.languages.grammar.queries import GrammarQueries

__all__ = ["GrammarCaptures"]


class GrammarCaptures:
    """The captures that the text of a grammar declares.

    Parameters
    ----------
    written
        The captures as the core reports them: name, rule or terminal, number of trailing bytes to
        drop, span.
    """

    __slots__ = ("_numbers", "groups")

    def __init__(self, written: Sequence[tuple[str, str, int, tuple[int, int]]]) -> None:
        self.groups = tuple(
            Group(number, name, *span) for number, (name, _, _, span) in enumerate(written, start=1)
        )
        self._numbers = {of: (number, stop) for number, (_, of, stop, _) in enumerate(written)}

    def of(self, grammar: GrammarQueries, data: bytes, step_limit: int) -> CaptureSpans | None:
        """Returns the captures in a string; None if it is not a member."""
        if not self.groups:
            raise LanguageError(
                "captures need a grammar with capture names, and this one has none",
                hint="write name[capture]: ... in Lark notation; matches(text) only tests"
                " membership",
            )
        if not grammar.matches(data):
            return None
        spans: list[tuple[int, int] | None] = [None] * len(self.groups)
        # Names that did not participate are reported as well, as for patterns.
        latest = {str(group.name): group.number - 1 for group in reversed(self.groups)}
        tree = grammar.parse(data, whole=True, step_limit=step_limit)
        for one in tree.walk():
            found = self._numbers.get(one.rule if isinstance(one, Tree) else one.terminal)
            if found is None:
                continue
            number, stop = found
            start, end = one.span
            last = spans[number]
            if last is None or last[0] <= start:
                spans[number] = (start, end - stop)
                latest[str(self.groups[number].name)] = number
        return CaptureSpans(spans, latest)
