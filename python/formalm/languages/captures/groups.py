"""Capture groups of a language, and the spans that they capture in a member."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from formalm import _core
from formalm.automata.text_of_bytes import shown_text
from formalm.errors import ArgumentError

__all__ = ["STEP_LIMIT", "CaptureSpans", "Captures", "Group", "captures_at", "found_by"]

STEP_LIMIT = 100_000_000
"""Steps that :meth:`Language.captures` may take by default: about a second."""

Span = tuple[int, int]
T = TypeVar("T")


class Group(NamedTuple):
    """A capture group of a pattern.

    Attributes
    ----------
    number
        Its number, counted from 1 by opening parentheses.
    name
        Its name, or None.
    start, end
        Its position in the pattern, in characters.
    """

    number: int
    name: str | None
    start: int
    end: int


@dataclass(frozen=True, repr=False)
class Captures:
    """The spans that the groups of a language captured in a member.

    Look up a group by its number, from 1, or by its name; 0 is the whole string. If several parts
    of a language use one name, as in ``date + date``, it refers to the group of the last part that
    matched.

    Attributes
    ----------
    text
        The member, as passed in.
    spans
        Start and end of each group, in characters of a ``str`` and in bytes of ``bytes``; None for
        a group that did not participate.
    numbers
        The names in the order written, each with the number of the group it refers to.

    Examples
    --------
    >>> from formalm import Regex
    >>> found = Regex(r"(?P<year>[0-9]{4})(-(?P<month>[0-9]{2}))?").captures("1984")
    >>> found["year"], found.span("year"), found["month"], found.groups()
    ('1984', (0, 4), None, ('1984', None, None))
    """

    text: str | bytes
    spans: tuple[Span | None, ...]
    numbers: tuple[tuple[str, int], ...]

    def groups(self, default: T | None = None) -> tuple[str | T | None, ...]:
        """Returns the strings of all groups; ``default`` for those that did not participate."""
        return tuple(self._slice(span, default) for span in self.spans)

    def groupdict(self, default: T | None = None) -> dict[str, str | T | None]:
        """Returns the strings of named groups; ``default`` for those that did not participate."""
        return {name: self._slice(self.spans[number - 1], default) for name, number in self.numbers}

    def span(self, group: int | str = 0) -> Span | None:
        """Returns start and end of a group, or None if it did not participate.

        Raises
        ------
        ArgumentError
            If there is no such group.
        """
        number = dict(self.numbers).get(group) if isinstance(group, str) else group
        if type(number) is not int or not 0 <= number <= len(self.spans):
            names = ", ".join(name for name, _ in self.numbers)
            raise ArgumentError(
                f"group must be the number or name of a group, got {group!r}",
                hint=f"numbers go up to {len(self.spans)}, names are {names or 'none'}",
            )
        return self.spans[number - 1] if number else (0, len(self.text))

    def __getitem__(self, group: int | str) -> str | None:
        """Returns the string of a group; None if it did not participate. See :meth:`span`."""
        return self._slice(self.span(group), None)

    def _slice(self, span: Span | None, default: T | None) -> str | T | None:
        if span is None:
            return default
        piece = self.text[span[0] : span[1]]
        return piece if isinstance(piece, str) else shown_text(piece)

    def __repr__(self) -> str:
        return f"<Captures of {self.text!r}: {self.groups()!r}>"


class CaptureSpans(NamedTuple):
    """Captures as byte spans, before they are converted to the caller's string type.

    Attributes
    ----------
    spans
        Start and end of each group, in bytes; None for a group that did not participate.
    latest
        The names of groups whose part of the language matched, each with the index of its last
        span.
    """

    spans: list[Span | None]
    latest: dict[str, int]


def found_by(
    grouping: _core.Grouping, groups: Sequence[Group], data: bytes, step_limit: int
) -> CaptureSpans | None:
    """Returns the captures of a regular language; None if ``data`` is not a member."""
    captured = grouping.captured(data, step_limit)
    if captured is None:
        return None
    spans, asked = captured
    latest = {
        group.name: group.number - 1
        for group in groups
        if group.name is not None and asked[group.number - 1]
    }
    return CaptureSpans(spans, latest)


def captures_at(
    text: str | bytes, data: bytes, groups: Sequence[Group], found: CaptureSpans
) -> Captures:
    """Returns captures for a string whose UTF-8 bytes are ``data``."""
    spans = found.spans
    if isinstance(text, str) and len(text) != len(data):
        spans = [
            None if span is None else (_characters(data, span[0]), _characters(data, span[1]))
            for span in spans
        ]
    numbers: dict[str, int] = {}
    for group in groups:
        if group.name is not None and group.name not in numbers:
            numbers[group.name] = found.latest.get(group.name, group.number - 1) + 1
    return Captures(text, tuple(spans), tuple(numbers.items()))


def _characters(data: bytes, end: int) -> int:
    return len(data[:end].decode())
