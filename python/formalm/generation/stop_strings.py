"""Stop strings: detection of the first stop in a growing text."""

from __future__ import annotations

from copy import copy
from typing import Any

from formalm.automata.text_of_bytes import SPECIAL
from formalm.errors import ArgumentError
from formalm.languages import Choice, Language, StringLiteral, as_language

__all__ = ["StopScanner", "stop_language"]


def stop_language(stop: Any) -> Language | None:
    """Returns the language of a stop: a string, several strings, or a language.

    Raises
    ------
    ArgumentError
        If it contains the empty string, which every text starts with.
    """
    if stop is None:
        return None
    if isinstance(stop, str):
        language: Language = StringLiteral(stop)
    elif isinstance(stop, (list, tuple)) and all(isinstance(text, str) for text in stop) and stop:
        language = Choice(stop)
    elif isinstance(stop, Language):
        language = as_language(stop)
    else:
        raise ArgumentError(f"stop must be a string, strings or a Language, got {stop!r:.80}")
    if language.matches(b""):
        raise ArgumentError(
            "stop must not match the empty string, which would end every generation at once"
        )
    return language


class StopScanner:
    """Finds the first stop in a growing text.

    The first stop is the one that *ends* first, and the longest of several that end there. The
    decision is therefore final as soon as it can be made, and streaming never has to retract text.

    Parameters
    ----------
    language
        The stops.
    special
        If True, the text may contain special tokens, and a stop neither starts nor ends inside one.
    """

    def __init__(self, language: Language, *, special: bool = False) -> None:
        self._machine = language.automaton()
        self._special = special
        self._inside = False
        self._starts: list[int] = []
        self._read = 0

    def fork(self) -> StopScanner:
        """Returns an independent copy."""
        twin = copy(self)
        twin._starts = list(self._starts)
        return twin

    def feed(self, data: bytes | bytearray) -> tuple[int, int] | None:
        """Reads what was appended to ``data``; returns the first stop's start and end, or None."""
        for end in range(self._read + 1, len(data) + 1):
            was_inside = self._inside
            self._inside ^= self._special and data[end - 1] == SPECIAL[0]
            if not was_inside:
                self._starts.append(end - 1)
            pieces = [(start, bytes(data[start:end])) for start in self._starts]
            for start, piece in pieces:
                if not self._inside and self._machine.matches(piece):
                    return start, end
            self._starts = [start for start, piece in pieces if self._machine.is_viable(piece)]
        self._read = len(data)
        return None

    @property
    def safe_length(self) -> int:
        """Number of bytes that can be shown: no stop can start before this offset."""
        return self._starts[0] if self._starts else self._read
