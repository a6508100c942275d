"""Edge labels of automata for drawings: merged byte ranges and token lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from formalm.vocabulary import Vocabulary

__all__ = ["Ranges", "byte_labels", "edges_for_people", "token_labels"]

_NAMED_TOKENS = 3
_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\", " ": "⎵"}

Ranges = Sequence[tuple[int, int]]


def edges_for_people(
    ranges: npt.NDArray[np.uint32], label: Callable[[Ranges], str]
) -> Iterator[tuple[int, str, int]]:
    """Returns one edge per pair of states, with all its labels, sorted by source, then by target.

    ``ranges`` has rows of source, first label, last label, target.
    """
    order = np.lexsort((ranges[:, 1], ranges[:, 3], ranges[:, 0]))
    rows = ranges[order].tolist()
    at = 0
    while at < len(rows):
        source, _, _, target = rows[at]
        end = at
        while end < len(rows) and rows[end][0] == source and rows[end][3] == target:
            end += 1
        yield source, label([(low, high) for _, low, high, _ in rows[at:end]]), target
        at = end


def byte_labels(ranges: Ranges) -> str:
    r"""Formats bytes and ranges of bytes, such as ``0-9``, ``a b x-z``, ``⎵`` or ``\x80-\xBF``."""
    parts = []
    for low, high in ranges:
        first, last = _byte(low), _byte(high)
        if high == low:
            parts.append(first)
        else:
            parts.append(f"{first} {last}" if high == low + 1 else f"{first}-{last}")
    return " ".join(parts)


def token_labels(ranges: Ranges, vocabulary: Vocabulary) -> str:
    """Formats the first few tokens, and the number of the others."""
    count = sum(high - low + 1 for low, high in ranges)
    ids = (token_id for low, high in ranges for token_id in range(low, high + 1))
    named = [_token(vocabulary.token_bytes(next(ids))) for _ in range(min(count, _NAMED_TOKENS))]
    more = count - len(named)
    return " ".join(named) + (f" … {more} more" if more else "")


def _byte(byte: int) -> str:
    character = chr(byte)
    if character in _ESCAPES:
        return _ESCAPES[character]
    return character if 0x20 < byte < 0x7F else f"\\x{byte:02X}"


def _token(token: bytes | None) -> str:
    text = (token or b"").decode(errors="backslashreplace")
    return "".join(
        _ESCAPES.get(c, c if c.isprintable() else c.encode("unicode_escape").decode()) for c in text
    )
