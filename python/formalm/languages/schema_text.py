"""Schemas as users have them, as JSON text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

from formalm.errors import ArgumentError

__all__ = ["schema_text"]


def schema_text(schema: object) -> str:
    """A schema as JSON text, numbers as they are."""
    if isinstance(schema, str):
        return schema
    if isinstance(schema, Path):
        try:
            return schema.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ArgumentError(f"the schema cannot be read: {error}") from error
    if not isinstance(schema, Mapping | bool):
        kind = type(schema).__name__
        raise ArgumentError(
            f"a schema is a dictionary, a bool, a text or a Path, not {kind}",
        )
    return _text(schema, 0)


def _text(value: object, depth: int) -> str:
    if depth > 500:
        raise ArgumentError("the schema is nested too deeply, or contains itself")
    if isinstance(value, Mapping):
        members = []
        for name, member in value.items():
            if not isinstance(name, str):
                raise ArgumentError(f"names of members are texts, not {name!r}")
            members.append(f"{json.dumps(name)}:{_text(member, depth + 1)}")
        return "{" + ",".join(members) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(_text(item, depth + 1) for item in value) + "]"
    if isinstance(value, Decimal) and value.is_finite():
        return str(value)
    if value is None or isinstance(value, bool | int | float | str):
        try:
            return json.dumps(value, allow_nan=False)
        except ValueError as error:
            raise ArgumentError(f"{value!r} is no JSON") from error
    raise ArgumentError(f"{type(value).__name__} is no JSON")
