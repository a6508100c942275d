"""Real text of many kinds, found on the machine that runs the tests.

What is there differs from one machine to the next, so every part has several sources, and the test
says how much it found.
"""

from __future__ import annotations

import gettext
import json
import lzma
import sysconfig
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

LIBRARY = Path(sysconfig.get_path("stdlib"))
PACKAGES = Path(sysconfig.get_path("purelib"))
OWN = Path(__file__).parents[2]
SHARED = OWN.parent / "shared"
MOST_BYTES = 400_000


def _read(paths: Iterator[Path]) -> Iterator[str]:
    for path in paths:
        try:
            data = path.read_bytes()
            if 0 < len(data) <= MOST_BYTES:
                yield data.decode()
        except (OSError, UnicodeDecodeError):
            continue


def _files(root: Path, *patterns: str) -> Iterator[Path]:
    for pattern in patterns:
        yield from sorted(root.rglob(pattern))


def code() -> Iterator[str]:
    """Python of the standard library, Rust and Python of our own."""
    yield from _read(_files(OWN / "crates", "*.rs"))
    yield from _read(iter(sorted(LIBRARY.glob("*.py"))))
    for folder in ("asyncio", "json", "email", "tkinter", "multiprocessing", "xml", "unittest"):
        yield from _read(_files(LIBRARY / folder, "*.py"))
    yield from _read(_files(LIBRARY / "test", "test_[a-e]*.py"))


def prose() -> Iterator[str]:
    """Markdown and the like: our pages, what packages say of themselves, Python's own help."""
    yield from _read(_files(OWN / "docs", "*.md"))
    yield from _read(iter(sorted(OWN.glob("*.md"))))
    yield from _read(_files(PACKAGES, "METADATA", "*.md", "*.rst"))
    yield from _read(_files(LIBRARY / "pydoc_data", "*.py"))


def objects() -> Iterator[object]:
    """Schemas and their instances, and JSON that packages carry."""
    suite = _files(SHARED / "json-schema-test-suite", "*.json")
    for text in _read(suite):
        yield json.loads(text)
    path = SHARED / "maskbench" / "dev.jsonl.xz"
    if path.exists():
        with lzma.open(path, "rt", encoding="utf-8") as lines:
            yield from map(json.loads, lines)
    for text in _read(_files(PACKAGES, "*.json")):
        try:
            yield json.loads(text)
        except ValueError:
            continue


def compact_json() -> Iterator[str]:
    for value in objects():
        yield json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def pretty_json() -> Iterator[str]:
    for at, value in enumerate(objects()):
        indent = (2, 4, "\t", None)[at % 4]
        yield json.dumps(value, indent=indent, ensure_ascii=at % 3 == 0)


def yaml() -> Iterator[str]:
    yield from _read(_files(PACKAGES, "*.yaml", "*.yml"))
    for value in islice(objects(), 300):
        yield as_yaml(value)


def as_yaml(value: object, indent: int = 0) -> str:
    """Blocks for lists and objects, JSON for the rest."""
    front = "\n" + "  " * indent
    if isinstance(value, dict) and value:
        lines = (f"{front}{key}: {as_yaml(each, indent + 1)}" for key, each in value.items())
        return "".join(lines)
    if isinstance(value, list) and value:
        return "".join(f"{front}- {as_yaml(each, indent + 1)}" for each in value)
    return json.dumps(value, ensure_ascii=False)


def languages() -> Iterator[str]:
    """Translations in the catalogues of this machine, one text a catalogue; Python's own texts in
    other scripts; every assigned character between others.
    """
    yield from _read(_files(LIBRARY / "test" / "cjkencodings", "*utf-8.txt", "*utf8.txt"))
    yield from _read(_files(PACKAGES, "*.po"))
    # One catalogue of each language in turn, so that a part of them has all languages.
    root = Path("/usr/share/locale")
    for name in ("glib20.mo", "libc.mo", "coreutils.mo", "git.mo", "iso_3166-1.mo", "gtk30.mo"):
        for path in sorted(root.glob(f"*/LC_MESSAGES/{name}")):
            yield from _catalogue(path)
    yield from characters()


def _catalogue(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            entries = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
    except (OSError, ValueError, IndexError):
        # Not all catalogues are as the module has them.
        return
    texts = [text for text in entries.values() if isinstance(text, str)]
    yield "\n".join(texts)[:MOST_BYTES]


def characters() -> Iterator[str]:
    assigned = [chr(at) for at in range(0x20, 0x30000) if unicodedata.category(chr(at))[0] != "C"]
    for start in range(0, len(assigned), 500):
        part = assigned[start : start + 500]
        yield " ".join(part) + "\n" + "".join(part) + "1".join(part[::7]) + "'s".join(part[::5])


# What is wanted of each: together more than ten million bytes.
KINDS: dict[str, tuple[Callable[[], Iterator[str]], int]] = {
    "code": (code, 3_000_000),
    "prose": (prose, 1_500_000),
    "compact JSON": (compact_json, 1_500_000),
    "pretty JSON": (pretty_json, 2_000_000),
    "YAML": (yaml, 1_000_000),
    "languages": (languages, 3_000_000),
}


def at_least(kind: str, wanted_bytes: int) -> Iterator[str]:
    """Texts of a kind until there are so many bytes, or no more texts."""
    found = 0
    for text in KINDS[kind][0]():
        yield text
        found += len(text.encode())
        if found >= wanted_bytes:
            return
