"""TOML: parsing with the standard library, and a small writer."""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from formalm.errors import ArgumentError

__all__ = ["toml_data", "toml_key", "toml_value"]


def toml_data(text: str) -> dict[str, Any]:
    """Returns the data in a TOML text.

    Raises
    ------
    ArgumentError
        If the value is not a string, or no TOML parser is installed.
    ValueError
        If the text is not TOML.
    """
    given: object = text
    if not isinstance(given, str):
        raise ArgumentError(f"TOML must be a string, got {type(given).__name__}")
    name = "tomllib" if sys.version_info >= (3, 11) else "tomli"
    try:
        loads = import_module(name).loads
    except ImportError:
        hint = "install tomli, or use JSON"
        raise ArgumentError(
            "reading TOML in Python 3.10 requires the package tomli", hint=hint
        ) from None
    data: dict[str, Any] = loads(text)
    return data


def toml_value(value: object) -> str:
    """Returns a value on one line; nested tables are inline tables."""
    if isinstance(value, dict):
        parts = ", ".join(f"{toml_key(key)} = {toml_value(part)}" for key, part in value.items())
        return f"{{{parts}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, except for DEL, which JSON writes unescaped.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value)


def toml_key(key: str) -> str:
    """Returns a key, in quotes if it needs them."""
    return key if key.isascii() and key.replace("_", "").isalnum() else toml_value(key)
