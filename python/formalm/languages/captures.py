"""Groups of a language, and what they capture in a member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from formalm import _core
from formalm.errors import ArgumentError

__all__ = ["STEP_LIMIT", "Captures", "Group", "captures_of"]

STEP_LIMIT = 100_000_000
"""Steps that :meth:`Language.captures` may take unless told otherwise: about a second."""

Span = tuple[int, int]
T = TypeVar("T")


class Group(NamedTuple):
    """A capture group of a pattern.

    Attributes
    ----------
    number
        Counted from 1, by opening parenthesis.
    name
        The name, or None.
    start, end
        Where it stands in the pattern, in characters.
    """

    number: int
    name: str | None
    start: int
    end: int


@dataclass(frozen=True, repr=False)
class Captures:
    """What the groups of a language captured in a member.

    A group is asked for by number, from 1, or by name; 0 is the whole text. A name that several
    groups have, as in ``date + date``, stands for the last of them that took part.

    Attributes
    ----------
    text
        The member, as it was handed in.
    names
        The name of each group, or None.
    spans
        Where each group begins and ends, in characters of a ``str`` and in bytes of ``bytes``;
        None for a group that took no part.

    Examples
    --------
    >>> from formalm import Regex
    >>> found = Regex(r"(?P<year>[0-9]{4})(-(?P<month>[0-9]{2}))?").captures("1984")
    >>> found["year"], found.span("year"), found["month"], found.groups()
    ('1984', (0, 4), None, ('1984', None, None))
    """

    text: str | bytes
    names: tuple[str | None, ...]
    spans: tuple[Span | None, ...]

    def groups(self, default: T | None = None) -> tuple[str | T | None, ...]:
        """The texts of all groups, ``default`` for those that took no part."""
        return tuple(default if span is None else self._slice(span) for span in self.spans)

    def groupdict(self, default: T | None = None) -> dict[str, str | T | None]:
        """The texts of all groups with a name, ``default`` for those that took no part."""
        named: dict[str, str | T | None] = {}
        for name, span in zip(self.names, self.spans, strict=True):
            if name is not None and span is not None:
                named[name] = self._slice(span)
            elif name is not None:
                named.setdefault(name, default)
        return named

    def span(self, group: int | str = 0) -> Span | None:
        """Where a group begins and ends, or None if it took no part.

        Raises
        ------
        ArgumentError
            If there is no such group.
        """
        if group == 0 and type(group) is int:
            return 0, len(self.text)
        if type(group) is int and 0 < group <= len(self.spans):
            return self.spans[group - 1]
        if not isinstance(group, str) or group not in self.names:
            names = ", ".join(dict.fromkeys(name for name in self.names if name is not None))
            raise ArgumentError(
                f"there is no group {group!r}",
                hint=f"numbers go up to {len(self.spans)}, names are {names or 'none'}",
            )
        numbered = zip(self.names, self.spans, strict=True)
        spans = [span for name, span in numbered if name == group and span is not None]
        return spans[-1] if spans else None

    def __getitem__(self, group: int | str) -> str | None:
        """The text of a group, or None if it took no part; errors are those of :meth:`span`."""
        span = self.span(group)
        return None if span is None else self._slice(span)

    def _slice(self, span: Span) -> str:
        piece = self.text[span[0] : span[1]]
        return piece if isinstance(piece, str) else piece.decode(errors="replace")

    def __repr__(self) -> str:
        return f"<Captures of {self.text!r}: {self.groups()!r}>"


def captures_of(
    text: str | bytes, data: bytes, names: list[str | None], grouping: _core.Grouping, limit: int
) -> Captures | None:
    """What the groups capture in ``text``, whose UTF-8 bytes are ``data``; None if not a member."""
    spans = grouping.spans(data, limit)
    if spans is None:
        return None
    if isinstance(text, str) and len(text) != len(data):
        spans = [
            None if span is None else (_characters(data, span[0]), _characters(data, span[1]))
            for span in spans
        ]
    return Captures(text, tuple(names), tuple(spans))


def _characters(data: bytes, end: int) -> int:
    return len(data[:end].decode())
