"""Plain data read key by key, with the place of whatever is wrong."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

from formalm.errors import ArgumentError

__all__ = ["Table"]


class Table:
    """A table that is read key by key, and refused if something is left.

    Parameters
    ----------
    data
        What was read.
    where
        Its place, for messages.
    """

    def __init__(self, data: object, where: str) -> None:
        self.where = where
        if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
            self.refuse(f"{where} must be a table, got {type(data).__name__}")
        self._rest: dict[str, object] = dict(data)

    def refuse(self, message: str, key: str | None = None, *, hint: str | None = None) -> NoReturn:
        """Raise an error about the table, or about what is under a key of it."""
        raise ArgumentError(message, hint=hint)

    def take(self, key: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """The value of a key, of a type; the default if there is none."""
        if key not in self._rest:
            if default is ...:
                self.refuse(f"{self.where} lacks {key!r}")
            return default
        value = self._rest.pop(key)
        kinds = kind if isinstance(kind, tuple) else (kind,)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            names = " or ".join(one.__name__ for one in kinds)
            self.refuse(f"{self.where}.{key} must be {names}, got {_shown(value)}", key)
        return value

    def language(self, key: str, *, optional: bool = False) -> Any:
        """The language under a key."""
        if optional and key not in self._rest:
            return None
        from formalm.languages.data import from_data

        return from_data(self.take(key, dict), f"{self.where}.{key}")

    def items(self, key: str, *, optional: bool = False) -> Iterator[tuple[str, object]]:
        """Place and value of everything in the list under a key."""
        for number, value in enumerate(self.take(key, list, [] if optional else ...)):
            yield f"{self.where}.{key}[{number}]", value

    @property
    def left(self) -> tuple[str, ...]:
        """The keys that were not taken yet."""
        return tuple(self._rest)

    def close(self) -> None:
        """Refuse what was not taken."""
        if self._rest:
            names = ", ".join(repr(key) for key in self._rest)
            self.refuse(f"{self.where} has unknown keys: {names}", next(iter(self._rest)))


def _shown(value: object) -> str:
    """A value in a message; one nested too deeply cannot be written out."""
    try:
        return f"{value!r:.60}"
    except RecursionError:
        return f"a {type(value).__name__} nested too deeply"
