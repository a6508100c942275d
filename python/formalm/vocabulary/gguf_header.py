"""Parser of GGUF metadata, the header of a model file, without its tensors.

A header is ``GGUF``, a version, the numbers of tensors and of keys, and then every key with a typed
value; numbers are little-endian. Counts and lengths are checked against the size of the file before
anything is read or allocated.
"""

from __future__ import annotations

import struct
from io import SEEK_CUR, SEEK_END
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from formalm.errors import LimitError, VocabularyError

__all__ = ["read_metadata"]

MAX_METADATA_BYTES = 1 << 28
MAX_KEY_BYTES = 1 << 16
VERSIONS = (2, 3)

STRING, ARRAY = 8, 9
# Type codes of the format and their number types; 7 is a Boolean in one byte.
NUMBERS = {
    0: "<u1", 1: "<i1", 2: "<u2", 3: "<i2", 4: "<u4", 5: "<i4", 6: "<f4", 7: "<u1",
    10: "<u8", 11: "<i8", 12: "<f8",
}  # fmt: skip
BOOL = 7


def read_metadata(path: Path, prefix: str) -> dict[str, Any]:
    """Returns the keys that begin with ``prefix``, with their values; others are skipped.

    Raises
    ------
    VocabularyError
        If the file is not GGUF, has another version, is truncated, or contradicts itself.
    LimitError
        If the metadata exceed 256 MiB.
    """
    try:
        with path.open("rb") as file:
            return _Reader(file, str(path)).metadata(prefix)
    except (OSError, ValueError) as error:
        if isinstance(error, VocabularyError):
            raise
        reason = getattr(error, "strerror", None) or error
        raise VocabularyError(f"cannot read {path}: {reason}") from None


class _Reader:
    def __init__(self, file: BinaryIO, name: str) -> None:
        self.file = file
        self.name = name
        self.left = file.seek(0, SEEK_END)
        self.used = 0
        file.seek(0)

    def metadata(self, prefix: str) -> dict[str, Any]:
        if self.take(4) != b"GGUF":
            raise self.broken("is not a GGUF file")
        version = self.number("<I")
        if version not in VERSIONS:
            swapped = int.from_bytes(version.to_bytes(4, "little"), "big")
            kind = "big-endian" if swapped in VERSIONS else f"version {version}"
            raise self.broken(f"is a {kind} GGUF file, readable are little-endian 2 and 3")
        self.number("<Q")  # tensors
        count = self.number("<Q")
        self.expect(count, 8 + 4 + 1)
        seen: set[str] = set()
        found = {}
        for _ in range(count):
            key = self.text(MAX_KEY_BYTES)
            if key in seen:
                raise self.broken(f"has the key {key!r} twice")
            seen.add(key)
            value = self.value(self.number("<I"), keep=key.startswith(prefix))
            if key.startswith(prefix):
                found[key] = value
        return found

    def value(self, kind: int, keep: bool) -> Any:
        if kind == ARRAY:
            return self.array(keep)
        if kind != STRING:
            values = self.numbers(kind, 1, keep)
            return values[0] if values else None
        if keep:
            return self.text()
        self.skip(self.number("<Q"))
        return None

    def array(self, keep: bool) -> list[Any]:
        kind, count = self.number("<I"), self.number("<Q")
        if kind == ARRAY:
            raise self.broken("has an array of arrays, which is not read")
        if kind != STRING:
            return self.numbers(kind, count, keep)
        self.expect(count, 8)
        if keep:
            return [self.text() for _ in range(count)]
        for _ in range(count):
            self.skip(self.number("<Q"))
        return []

    def numbers(self, kind: int, count: int, keep: bool) -> list[Any]:
        if kind not in NUMBERS:
            raise self.broken(f"has a value of type {kind}, which the format does not know")
        layout = np.dtype(NUMBERS[kind])
        self.expect(count, layout.itemsize)
        if not keep:
            self.skip(count * layout.itemsize)
            return []
        values = np.frombuffer(self.take(count * layout.itemsize), layout)
        found: list[Any] = (values != 0 if kind == BOOL else values).tolist()
        return found

    def text(self, most: int = MAX_METADATA_BYTES) -> str:
        length = self.number("<Q")
        if length > most:
            raise self.broken(f"has a text of {length:,} bytes where at most {most:,} make sense")
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise self.broken("has a text that is not UTF-8") from None

    def number(self, layout: str) -> int:
        value: int = struct.unpack(layout, self.take(struct.calcsize(layout)))[0]
        return value

    def take(self, length: int) -> bytes:
        self.expect(length, 1)
        self.left -= length
        self.used += length
        data = self.file.read(length)
        if len(data) != length:
            raise self.broken("became shorter while it was read")
        return data

    def skip(self, length: int) -> None:
        self.expect(length, 1)
        self.left -= length
        self.used += length
        self.file.seek(length, SEEK_CUR)

    def expect(self, count: int, size: int) -> None:
        """Checks that ``count`` values of at least ``size`` bytes can follow."""
        if count * size > self.left:
            raise self.broken("is cut off, or states sizes that it does not have")
        if self.used + count * size > MAX_METADATA_BYTES:
            raise LimitError("bytes of metadata", self.used + count * size, MAX_METADATA_BYTES)

    def broken(self, what: str) -> VocabularyError:
        return VocabularyError(f"{self.name} {what}, near byte {self.used}")
