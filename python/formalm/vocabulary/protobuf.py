"""Minimal reader of the Protocol Buffers wire format, sufficient for SentencePiece models.

A message is a list of fields, each a key (number and wire type) and a value. Fields are found, not
interpreted; the meaning of the numbers is up to the caller. No allocation exceeds the length of the
data.
"""

from __future__ import annotations

from collections.abc import Iterator

from formalm.errors import VocabularyError

__all__ = ["fields"]

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
Value = int | bytes


def fields(data: bytes) -> Iterator[tuple[int, int, Value]]:
    """Yields number, wire type and value of every field; numbers as integers, others as bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if number == 0:
            raise _broken(at)
        if wire == VARINT:
            value, at = _varint(data, at)
            yield number, wire, value
            continue
        if wire == BYTES:
            length, at = _varint(data, at)
        elif wire in (FIXED32, FIXED64):
            length = 4 if wire == FIXED32 else 8
        else:  # groups, long deprecated, and wire types that do not exist
            raise _broken(at)
        if length > len(data) - at:
            raise _broken(at)
        yield number, wire, data[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """Reads an integer of seven bits per byte, the lowest first, of at most 64 bits."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= 1 << 64:
                break
            return value, at
    raise _broken(at)


def _broken(at: int) -> VocabularyError:
    return VocabularyError(f"the model is no readable protocol buffer, near byte {at}")
