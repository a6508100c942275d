"""Reader for tables of plain data, key by key, with located errors."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from formalm.errors import ArgumentError

__all__ = ["DataReader"]

KIND_NAMES: dict[type, str] = {
    str: "a string",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
    type(None): "null",
}


class DataReader:
    """A table that is read key by key; unread keys are refused.

    Parameters
    ----------
    data
        The parsed table.
    where
        Its place, for messages.
    """

    def __init__(self, data: object, where: str) -> None:
        self.where = where
        if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
            self.refuse(f"{where} must be a table, got {type(data).__name__}")
        self._rest: dict[str, object] = dict(data)

    def refuse(self, message: str, key: str | None = None, *, hint: str | None = None) -> NoReturn:
        """Raises an error about the table, or about the value of one of its keys."""
        raise ArgumentError(message, hint=hint)

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """Returns the value of a key, checked by type; the default if the key is absent."""
        if key not in self._rest:
            if default is ...:
                self.refuse(f"{self.where} must have the key {key!r}")
            return default
        value = self._rest.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            wanted = [one for one in kinds if one is not int or float not in kinds]
            names = " or ".join(KIND_NAMES.get(one, one.__name__) for one in wanted)
            self.refuse(f"{self.where}.{key} must be {names}, got {_shown(value)}", key)
        return value

    def language(self, key: str, *, optional: bool = False) -> Any:
        """Returns the language under a key."""
        if optional and key not in self._rest:
            return None
        from formalm.languages.serialization import from_data

        return from_data(self.take(key, dict), f"{self.where}.{key}")

    def items(self, key: str, *, optional: bool = False) -> Iterator[tuple[str, object]]:
        """Yields place and value of each item in the list under a key."""
        for number, value in enumerate(self.take(key, list, [] if optional else ...)):
            yield f"{self.where}.{key}[{number}]", value

    @property
    def left(self) -> tuple[str, ...]:
        """The keys that were not read yet."""
        return tuple(self._rest)

    def close(self) -> None:
        """Refuses unread keys."""
        if self._rest:
            names = ", ".join(repr(key) for key in self._rest)
            self.refuse(f"{self.where} has unknown keys: {names}", next(iter(self._rest)))


def _shown(value: object) -> str:
    """Formats a value for a message; a deeply nested one cannot be printed."""
    try:
        return f"{value!r:.60}"
    except RecursionError:
        return f"a {type(value).__name__} nested too deeply"
