"""The source files that a program executes, from an instrumented build; no LLVM tools are needed.

``-C instrument-coverage`` puts counters into every function, a map from functions to files into
the library, and writes the counters into a profile at exit. Both are read here:

::

    library   __llvm_covfun   function ──► its files, as numbers of a list
              __llvm_covmap   the lists of files
    profile   data, counters  function ──► how often it was called
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from hashlib import md5
from pathlib import Path
from typing import NamedTuple

RAW_VERSION = 10
"""The version of raw profiles that is read; the compiler's."""

HEADER_FIELDS = 16
BRANCHES = (4, 6)
"""The kinds of regions with two more counters."""

DATA = struct.Struct("<QQQQQQI6xxxI")


def calls_by_function(profile: Path) -> dict[int, int]:
    """Returns how often each function was called, by the hash of its name."""
    data = profile.read_bytes()
    header = struct.unpack_from(f"<{HEADER_FIELDS}Q", data)
    version, binary_ids, count, before, counters, after = header[1:7]
    if version & 0xFFFFFFFF != RAW_VERSION:
        raise ValueError(f"raw profile of version {version & 0xFFFFFFFF}, not {RAW_VERSION}")
    counters_delta = header[10]
    start = 8 * HEADER_FIELDS + binary_ids
    values = start + count * DATA.size + before
    calls: dict[int, int] = {}
    for index in range(count):
        name, _, pointer, _, _, _, length, _ = DATA.unpack_from(data, start + index * DATA.size)
        # Pointers are relative to their own record.
        offset = (pointer - counters_delta + index * DATA.size) & (1 << 64) - 1
        assert offset + 8 * length <= 8 * counters + after
        found = struct.unpack_from(f"<{length}Q", data, values + offset)
        calls[name] = calls.get(name, 0) + max(found, default=0)
    return calls


class Function(NamedTuple):
    """Where a function stands: its file, and its first and last line."""

    file: str
    first: int
    last: int


def functions(library: Path) -> dict[int, Function]:
    """Returns the place of each function, by the hash of its name."""
    sections = dict(_sections(library.read_bytes()))
    lists = dict(_file_lists(sections["__llvm_covmap"]))
    found: dict[int, Function] = {}
    data, at = sections["__llvm_covfun"], 0
    while at + 28 <= len(data):
        name, size, _, files = struct.unpack_from("<QIQQ", data, at)
        at += 28
        if files in lists:
            found[name] = _function(data, at, lists[files])
        at = at + size + 7 & ~7
    return found


def _function(data: bytes, at: int, names: list[str]) -> Function:
    count, at = _uleb(data, at)
    numbers = []
    for _ in range(count):
        number, at = _uleb(data, at)
        numbers.append(number)
    expressions, at = _uleb(data, at)
    for _ in range(2 * expressions):
        _, at = _uleb(data, at)
    regions, at = _uleb(data, at)
    line, last, starts = 0, 0, []
    for _ in range(regions):
        kind, at = _uleb(data, at)
        if kind & 3 == 0 and kind >> 3 in BRANCHES:
            _, at = _uleb(data, at)
            _, at = _uleb(data, at)
        delta, at = _uleb(data, at)
        _, at = _uleb(data, at)
        lines, at = _uleb(data, at)
        _, at = _uleb(data, at)
        line += delta
        starts.append(line)
        last = max(last, line + lines)
    # Regions of other files, which macros have, are not read.
    return Function(names[numbers[0]], min(starts, default=0), last)


def _file_lists(data: bytes) -> Iterator[tuple[int, list[str]]]:
    at = 0
    while at + 16 <= len(data):
        _, size, _, _ = struct.unpack_from("<IIII", data, at)
        encoded = data[at + 16 : at + 16 + size]
        count, place = _uleb(encoded, 0)
        _, place = _uleb(encoded, place)
        packed, place = _uleb(encoded, place)
        text = zlib.decompress(encoded[place:]) if packed else encoded[place:]
        names: list[str] = []
        place = 0
        for _ in range(count):
            length, place = _uleb(text, place)
            names.append(text[place : place + length].decode())
            place += length
        # The first is the folder that the others are relative to.
        yield int.from_bytes(md5(encoded, usedforsecurity=False).digest()[:8], "little"), names
        at = at + 16 + size + 7 & ~7


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value, at


def _sections(elf: bytes) -> Iterator[tuple[str, bytes]]:
    """Returns the sections of a 64-bit little-endian ELF file."""
    assert elf[:6] == b"\x7fELF\x02\x01", "the instrumented library must be a 64-bit ELF file"
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    width, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    entries = [struct.unpack_from("<IIQQQQ", elf, table + at * width) for at in range(count)]
    strings = entries[names][4]
    for name, _, _, _, offset, size in entries:
        end = elf.index(b"\0", strings + name)
        yield elf[strings + name : end].decode(), elf[offset : offset + size]
