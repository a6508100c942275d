"""Source positions of keys and values in a TOML text, for error messages."""

from __future__ import annotations

import re

__all__ = ["Path", "TomlLocations", "toml_locations"]

Path = tuple[str | int, ...]
Span = tuple[int, int]

_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BARE_VALUE = re.compile(r"[^,\]}#\r\n]+")
_STRINGS = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r'"""(?:[^\\]|\\.)*?"{3,5}(?!")',
        r"'''.*?'{3,5}(?!')",
        r'"(?:[^"\\]|\\.)*"',
        r"'[^']*'",
    )
)
_ESCAPE = re.compile(r'\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}|[btnfre"\\])')
_PLAIN = dict(zip("btnfre", "\b\t\n\f\r\x1b", strict=True))


class TomlLocations:
    """Spans of a TOML text by path.

    Attributes
    ----------
    keys, values
        The span of each key where it is first written, and of each value; a table with a header has
        the span of its header.
    """

    def __init__(self) -> None:
        self.keys: dict[Path, Span] = {}
        self.values: dict[Path, Span] = {}

    def key(self, path: Path) -> Span | None:
        """Returns the span of a key, or of its nearest enclosing entry."""
        return self.keys.get(path) or self.value(path)

    def value(self, path: Path) -> Span | None:
        """Returns the span of a value, or of its nearest enclosing entry."""
        for size in range(len(path), 0, -1):
            if path[:size] in self.values:
                return self.values[path[:size]]
        return None


def toml_locations(text: str) -> TomlLocations:
    """Returns the positions in a text that is known to be valid TOML."""
    scanner = _Scanner(text)
    scanner.document()
    return scanner.places


class _Scanner:
    """Scans a valid text once; the parser that found it valid bounds its nesting."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places = TomlLocations()
        self.lengths: dict[Path, int] = {}  # of arrays of tables

    def document(self) -> None:
        prefix: Path = ()
        while self.skip() < len(self.text):
            if self.text[self.at] == "[":
                prefix = self.header()
            else:
                self.pair(prefix)

    def header(self) -> Path:
        start = self.at
        listed = self.text.startswith("[[", self.at)
        self.at += 2 if listed else 1
        names = self.dotted()
        self.skip()
        self.at += 2 if listed else 1
        path: Path = ()
        for number, (name, span) in enumerate(names):
            path = (*path, name)
            self.places.keys.setdefault(path, span)
            if number == len(names) - 1 and listed:
                self.lengths[path] = self.lengths.get(path, 0) + 1
            self.places.values.setdefault(path, (start, self.at))
            if path in self.lengths:
                path = (*path, self.lengths[path] - 1)
                self.places.values.setdefault(path, (start, self.at))
        return path

    def pair(self, prefix: Path) -> None:
        start = self.at
        path = prefix
        for name, span in self.dotted():
            path = (*path, name)
            self.places.keys.setdefault(path, span)
        self.skip()
        self.at += 1  # the equals sign
        self.skip()
        value = self.at
        self.value(path)
        for size in range(len(prefix) + 1, len(path)):
            self.places.values.setdefault(path[:size], (start, self.at))
        self.places.values[path] = (value, self.at)

    def dotted(self) -> list[tuple[str, Span]]:
        names = []
        while True:
            self.skip()
            start = self.at
            if self.text[start] in "\"'":
                self.string()
                name = _unquoted(self.text[start : self.at])
            else:
                found = _BARE_KEY.match(self.text, start)
                assert found is not None
                name, self.at = found[0], found.end()
            names.append((name, (start, self.at)))
            self.skip()
            if self.text[self.at] != ".":
                return names
            self.at += 1

    def value(self, path: Path) -> None:
        first = self.text[self.at]
        if first in "\"'":
            self.string()
        elif first == "[":
            self.array(path)
        elif first == "{":
            self.table(path)
        else:
            found = _BARE_VALUE.match(self.text, self.at)
            assert found is not None
            self.at += len(found[0].rstrip())

    def array(self, path: Path) -> None:
        self.at += 1
        number = 0
        while self.text[self.skip()] != "]":
            start = self.at
            item = (*path, number)
            self.value(item)
            self.places.values[item] = (start, self.at)
            number += 1
            if self.text[self.skip()] == ",":
                self.at += 1
        self.at += 1

    def table(self, path: Path) -> None:
        self.at += 1
        while self.text[self.skip()] != "}":
            self.pair(path)
            if self.text[self.skip()] == ",":
                self.at += 1
        self.at += 1

    def string(self) -> None:
        for pattern in _STRINGS:
            found = pattern.match(self.text, self.at)
            if found is not None:
                self.at = found.end()
                return
        raise AssertionError("unterminated string")  # the reader would have said so

    def skip(self) -> int:
        """Skips whitespace and comments; returns the position after them."""
        found = _SPACE.match(self.text, self.at)
        self.at = self.at if found is None else found.end()
        return self.at


def _unquoted(quoted: str) -> str:
    """Returns the name of a quoted key."""
    if quoted[0] == "'":
        return quoted[1:-1]

    def meant(found: re.Match[str]) -> str:
        code = found[1]
        return chr(int(code[1:], 16)) if code[0] in "uUx" else _PLAIN.get(code, code)

    return _ESCAPE.sub(meant, quoted[1:-1])
