"""Captures of combinations with parts that are not regular: splits a member among the parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formalm import _core
from formalm.languages.captures import Found, Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from formalm.languages.language import Language

__all__ = ["captured_by_all", "captured_by_first", "captured_in_row", "groups_of"]


def groups_of(parts: Iterable[Language]) -> tuple[Group, ...]:
    """Returns the groups of several languages, numbered consecutively."""
    groups = [group for part in parts for group in part.groups]
    return tuple(group._replace(number=number) for number, group in enumerate(groups, start=1))


class Gathered:
    """Captures of several parts, in order."""

    def __init__(self, parts: Sequence[Language]) -> None:
        self._first = []
        count = 0
        for part in parts:
            self._first.append(count)
            count += len(part.groups)
        self._parts = parts
        self.found = Found([None] * count, {})

    def read(self, number: int, data: bytes, start: int, step_limit: int) -> bool:
        """Adds the captures of a part in its piece, which begins at ``start``.

        Returns whether the piece is a member of the part. This is not checked if the part captures
        nothing.
        """
        part, first = self._parts[number], self._first[number]
        if not part.groups:
            return True
        inner = part.captured_in(data, step_limit)
        if inner is None:
            return False
        for at, span in enumerate(inner.spans, start=first):
            self.found.spans[at] = None if span is None else (start + span[0], start + span[1])
        self.found.latest.update((name, first + at) for name, at in inner.latest.items())
        return True


def captured_by_all(parts: Sequence[Language], data: bytes, step_limit: int) -> Found | None:
    """Returns the captures of several languages, all of which are known to contain the string."""
    gathered = Gathered(parts)
    all_have = all(gathered.read(at, data, 0, step_limit) for at in range(len(parts)))
    return gathered.found if all_have else None


def captured_by_first(parts: Sequence[Language], data: bytes, step_limit: int) -> Found | None:
    """Returns the captures of the first language that contains the string."""
    gathered = Gathered(parts)
    any_has = any(
        gathered.read(at, data, 0, step_limit) if part.groups else part.matches(data)
        for at, part in enumerate(parts)
    )
    return gathered.found if any_has else None


def captured_in_row(
    parts: Sequence[Language],
    counts: tuple[int, int | None],
    data: bytes,
    step_limit: int,
) -> Found | None:
    """Returns the captures of a concatenation whose last language is repeated as ``counts`` allow.

    From left to right, each part takes as much as it can, and shows the captures of its last piece.
    """
    gathered = Gathered(parts)
    least, most = counts
    machines = [part.machine() for part in parts]
    ends = _core.Automaton.divided(machines, data, least=least, most=most, step_limit=step_limit)
    if ends is None:
        return None
    pieces = zip([0, *ends], ends, strict=False)
    shown = {min(number, len(parts) - 1): piece for number, piece in enumerate(pieces)}
    all_have = all(
        gathered.read(number, data[start:end], start, step_limit)
        for number, (start, end) in shown.items()
    )
    return gathered.found if all_have else None
