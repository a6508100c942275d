"""Schemas of Pydantic objects: the names and alias paths under which fields are validated."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from formalm.errors import ArgumentError

__all__ = ["lookups", "object_of"]

Schema = dict[str, Any]
Path = list[str | int]


def lookups(field: Any, name: str, *, by_alias: bool, by_name: bool) -> list[Path]:
    """Returns the places where the value of a field is looked up, in order of precedence."""
    alias = field.get("validation_alias")
    found: list[Path] = []
    if alias is not None and by_alias:
        if isinstance(alias, str):
            found.append([alias])
        elif all(isinstance(one, list) for one in alias):
            found += alias
        else:
            found.append(alias)
    if by_name or not found:
        found.append([name])
    unique: list[Path] = []
    for path in found:
        if path not in unique:
            unique.append(path)
    return unique


class Branch:
    """A part of an object or a list that contains values of fields."""

    def __init__(self) -> None:
        self.leaves: list[Schema] = []
        self.parts: dict[str | int, Branch] = {}
        self.is_required = False

    def at(self, path: Path, *, is_required: bool) -> Branch:
        """Returns the branch at a path, required if a value is."""
        branch = self
        for key in path:
            branch = branch.parts.setdefault(key, Branch())
            branch.is_required |= is_required
        return branch

    def schema(self, *, is_closed: bool) -> Schema:
        """Returns the schema of this branch."""
        found = list(self.leaves)
        if self.parts:
            names = {key: one for key, one in self.parts.items() if isinstance(key, str)}
            places = {key: one for key, one in self.parts.items() if isinstance(key, int)}
            if names and places:
                raise ArgumentError("aliases ask for an object and for a list in one place")
            is_closed = is_closed and not self.leaves
            made = _object(names, is_closed) if names else _list(places, is_closed)
            found.append(made)
        return found[0] if len(found) == 1 else {"allOf": found}


def _object(names: dict[str, Branch], is_closed: bool) -> Schema:
    made: Schema = {
        "type": "object",
        "properties": {name: one.schema(is_closed=is_closed) for name, one in names.items()},
    }
    required = [name for name, one in names.items() if one.is_required]
    if required:
        made["required"] = required
    if is_closed:
        made["additionalProperties"] = False
    return made


def _list(places: dict[int, Branch], is_closed: bool) -> Schema:
    """Returns the schema of a list with values at some indexes, counted from either end."""
    if min(places) < 0:
        # With indexes from the end, the list has exactly the items that are looked up.
        length = max(-min(places), max(places) + 1)
        placed = {key % length: one for key, one in places.items()}
        if len(placed) < len(places):
            raise ArgumentError("two aliases ask for one item of a list")
        least = length
    else:
        length, placed = max(places) + 1, places
        needed = [key + 1 for key, one in places.items() if one.is_required]
        least = max(needed, default=0)
    items: list[Any] = [
        placed[at].schema(is_closed=is_closed) if at in placed else {} for at in range(length)
    ]
    made: Schema = {"type": "array", "prefixItems": items, "items": not is_closed}
    if least:
        made["minItems"] = least
    return made


def object_of(
    fields: Sequence[tuple[list[Path], bool, Callable[[], Schema | None]]], *, is_closed: bool
) -> Schema:
    """Returns the schema of an object from its fields: paths, required or not, and their schemas.

    A field with several names has one of them. If it has names, its other paths are left out.
    """
    root = Branch()
    root.is_required = True
    choices: list[Schema] = []
    for paths, is_required, make in fields:
        schema = make()
        if schema is None:
            continue
        names = [path for path in paths if len(path) == 1]
        chosen = names or paths[:1]
        is_alone = len(chosen) == 1
        for path in chosen:
            root.at(path, is_required=is_required and is_alone).leaves.append(schema)
        if not is_alone:
            given = [{"required": path} for path in chosen]
            if is_required:
                choices.append({"oneOf": given})
            else:
                pairs = [
                    {"not": {"required": [one[0], other[0]]}}
                    for at, one in enumerate(chosen)
                    for other in chosen[:at]
                ]
                choices += pairs
    if not root.parts:
        return {"type": "object", "properties": {}}
    if any(isinstance(key, int) for key in root.parts):
        raise ArgumentError("an alias that begins with a number is no place of an object")
    made = _object({str(key): one for key, one in root.parts.items()}, is_closed=False)
    # It contains only the parts that are looked up.
    made["properties"] = {
        str(name): one.schema(is_closed=is_closed) for name, one in root.parts.items()
    }
    if choices:
        made["allOf"] = choices
    return made
