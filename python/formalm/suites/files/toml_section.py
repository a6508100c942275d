"""A TOML table with source positions, read key by key with located errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

from formalm.errors import ArgumentError, LanguageError, LimitError, SuiteError
from formalm.languages.data_reader import DataReader
from formalm.suites.files.toml_locations import Path, TomlLocations

__all__ = ["Source", "TomlSection"]

T = TypeVar("T")


@dataclass(frozen=True)
class Source:
    """The text of a suite file with its positions; both are absent for data of other origin."""

    text: str | None = None
    places: TomlLocations | None = None

    def refuse(
        self, message: str, path: Path, *, key: bool = False, hint: str | None = None
    ) -> NoReturn:
        """Raises an error about the value under a path, or about the key itself."""
        span = None
        if self.places is not None:
            span = self.places.key(path) if key else self.places.value(path)
        raise SuiteError(message, source=self.text, span=span, hint=hint) from None


class TomlSection(DataReader):
    """A table that is read key by key; errors show its place.

    Parameters
    ----------
    data
        The parsed table.
    path
        Its path.
    source
        The file.
    """

    def __init__(self, data: object, path: Path, source: Source) -> None:
        self.path = path
        self.source = source
        super().__init__(data, spelled(path))

    def refuse(self, message: str, key: str | None = None, *, hint: str | None = None) -> NoReturn:
        """Raises an error about the section, or about the value of one of its keys."""
        path = self.path if key is None else (*self.path, key)
        # An unexpected key is located at the key, everything else at its value.
        surplus = key is not None and key in self.left
        self.source.refuse(message, path, key=surplus, hint=hint)

    def section(self, key: str, default: Any = ...) -> TomlSection:
        """Returns the section under a key."""
        return TomlSection(self.take(key, dict, default), (*self.path, key), self.source)

    def sections(self, key: str) -> Iterator[tuple[str, TomlSection]]:
        """Returns the sections under a key, by name; none if the key is absent."""
        table = self.section(key, {})
        for name in table.left:
            yield name, table.section(name)

    def texts(self, key: str, default: Any = ...) -> tuple[str, ...]:
        """Reads a list of strings without duplicates."""
        return self.checked_texts(key, self.take(key, list, default))

    def checked_texts(self, key: str, found: list[Any]) -> tuple[str, ...]:
        """Returns the items of a list, checked to be strings without duplicates."""
        for number, text in enumerate(found):
            if not isinstance(text, str):
                self.wrong(key, number, f"must be a string, got {text!r:.60}")
            if text in found[:number]:
                self.wrong(key, number, f"repeats {text!r:.60}")
        return tuple(found)

    def one_of(self, key: str, choices: Any, default: Any = ...) -> Any:
        """Reads one of some words."""
        value = self.take(key, str, default)
        if value not in choices:
            known = ", ".join(map(repr, choices)) or "the declared names (there are none)"
            self.refuse(f"{self.where}.{key} must be one of {known}, got {value!r:.60}", key)
        return value

    def wrong(self, key: str, number: int, message: str) -> NoReturn:
        """Raises an error about one item of a list."""
        self.source.refuse(f"{self.where}.{key}[{number}] {message}", (*self.path, key, number))

    def built(self, key: str | None, build: Callable[[], T]) -> T:
        """Returns the result of a function; its errors are located at this section."""
        try:
            return build()
        except (ArgumentError, LanguageError, LimitError) as error:
            message = error.message if isinstance(error, LimitError) else str(error)
            self.refuse(f"{self.where}: {message}", key, hint=error.hint)


def spelled(path: Path) -> str:
    """Formats a path for a message."""
    text = "suite"
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    return text
