"""Writes the character tables for checking host names (IDNA).

The characters of IDNA 2008 are derived from Unicode's data as RFC 5892 says, from Python's
``unicodedata``. Those of UTS #46, which URLs have, are what ``pydantic-core`` accepts. Properties of
both come from ``unicodedata2``, of the version of Unicode that ``pydantic-core`` has; joining types,
which it lacks, come from the ``idna`` package.
Run as ``python host_names.py > ../src/formats/idna/tables.txt``, with Python 3.11 (Unicode 14),
``unicodedata2`` 15.1 and Pydantic 2.14. It takes two minutes.
"""

from __future__ import annotations

import sys
import unicodedata
from collections import defaultdict

import unicodedata2
from idna import idnadata
from pydantic_core import Url

VALID = {0xDF, 0x3C2, 0x6FD, 0x6FE, 0xF0B, 0x3007}
CONTEXT = {
    0xB7,
    0x375,
    0x5F3,
    0x5F4,
    0x30FB,
    0x200C,
    0x200D,
    *range(0x660, 0x66A),
    *range(0x6F0, 0x6FA),
}
NEVER = {0x640, 0x7FA, 0x302E, 0x302F, *range(0x3031, 0x3036), 0x303B}
LETTERS = {"Ll", "Lu", "Lo", "Nd", "Lm", "Mn", "Mc"}
HIGH_MARKS = 0x20D0, 0x20FF


def is_stable(text: str) -> bool:
    """Return whether case folding leaves the character unchanged."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFKC", folded) == text


def is_ignorable(code: int) -> bool:
    """Return whether a letter or mark is a Default_Ignorable_Code_Point."""
    ranges = [
        (0x34F, 0x34F),
        (0x115F, 0x1160),
        (0x17B4, 0x17B5),
        (0x180B, 0x180F),
        (0x3164, 0x3164),
    ]
    ranges += [(0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF)]
    return any(first <= code <= last for first, last in ranges)


def is_old_jamo(code: int) -> bool:
    """Return whether the character is a conjoining Hangul jamo."""
    return 0x1100 <= code <= 0x11FF or 0xA960 <= code <= 0xA97C or 0xD7B0 <= code <= 0xD7FB


def is_valid(code: int) -> bool:
    """Return whether the character is PVALID (RFC 5892)."""
    if code in VALID:
        return True
    if code in NEVER or code in CONTEXT or 0xD800 <= code < 0xE000:
        return False
    if code < 0x80:
        return chr(code) in "abcdefghijklmnopqrstuvwxyz0123456789-"
    if HIGH_MARKS[0] <= code <= HIGH_MARKS[1] or 0x1D100 <= code <= 0x1D24F:
        return False
    if is_ignorable(code) or is_old_jamo(code) or not is_stable(chr(code)):
        return False
    return unicodedata.category(chr(code)) in LETTERS


def is_url_label(label: str) -> bool:
    """Whether URLs have a label of these characters, in its encoded form."""
    host = f"xn--{label.encode('punycode').decode()}"
    try:
        return Url(f"http://{host}/").host == host
    except ValueError:
        return False


def url_codes() -> set[int]:
    """The characters of labels that URLs have, by UTS #46."""
    codes = {0x200C, 0x200D}
    for code in [*range(0xD800), *range(0xE000, 0x110000)]:
        # Marks are not first; digits are behind a letter of their direction.
        labels = (chr(code) + "\xfc", "\u4e08" + chr(code), "\u05d0" + chr(code))
        if chr(code) != "." and any(map(is_url_label, labels[: 3 if code >= 0x80 else 1])):
            codes.add(code)
    return codes


def write(name: str, codes: set[int]) -> None:
    """Write a line of ranges."""
    ranges: list[list[int]] = []
    for code in sorted(codes):
        if ranges and ranges[-1][1] == code - 1:
            ranges[-1][1] = code
        else:
            ranges.append([code, code])
    words = (f"{a:x}" if a == b else f"{a:x}-{b:x}" for a, b in ranges)
    sys.stdout.write(f"{name} {' '.join(words)}\n")


def write_compositions(codes: set[int]) -> None:
    """Write for each mark the characters it cannot follow in normal form C."""
    # A mark may also compose with a part of the preceding character, after reordering.
    seconds, firsts = set(), set()
    for code in range(0x110000):
        parts = unicodedata2.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            firsts |= {int(parts[0], 16), code}
            seconds.add(int(parts[1], 16))
    starters: dict[int, set[int]] = defaultdict(set)
    for second in seconds & codes:
        for first in firsts & codes:
            pair = chr(first) + chr(second)
            if (
                not unicodedata2.combining(chr(first))
                and unicodedata2.normalize("NFC", pair) != pair
            ):
                starters[second].add(first)
    for second, found in sorted(starters.items()):
        write(f"compose:{second:x}", found)


def main() -> None:
    """Write all classes."""
    codes = {code for code in range(0x110000) if is_valid(code)} | CONTEXT
    write("valid", codes)
    url = url_codes()
    write("url", url)
    codes |= url
    write("mark", {code for code in codes if unicodedata2.category(chr(code))[0] == "M"})
    virama = {code for code in codes if unicodedata2.combining(chr(code)) == 9}
    write("virama", virama)
    joining: dict[str, set[int]] = defaultdict(set)
    for kind, packed in idnadata.joining_types.items():
        for one in packed:
            joining[kind].update(range(one >> 32, one & 0xFFFFFFFF))
    joining = {kind: found & codes for kind, found in joining.items()}
    write("left", joining["L"] | joining["D"])
    write("right", joining["R"] | joining["D"])
    write("transparent", joining["T"])
    directions: dict[str, set[int]] = defaultdict(set)
    for code in codes:
        kind = unicodedata2.bidirectional(chr(code))
        directions["R" if kind == "AL" else kind].add(code)
    assert directions.keys() <= {*"L R AN EN NSM ES CS ET ON BN".split()}, directions.keys()
    for name in ("L", "R", "AN", "EN", "NSM"):
        write(name, directions[name])
    orders: dict[int, set[int]] = defaultdict(set)
    for code in codes:
        orders[unicodedata2.combining(chr(code))].add(code)
    for order, found in sorted(orders.items()):
        if order:
            write(f"order:{order}", found)
    write_compositions(codes)


main()
