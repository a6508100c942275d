"""Readable ids of parametrized cases, where pytest would number them: ``options0``."""

from __future__ import annotations

import dis
import enum
import re
from collections.abc import Iterator
from pathlib import PurePath
from types import CodeType, FunctionType

MAX_LENGTH = 60
"""Maximum length of an id, in characters; longer ones are cut. Chosen to fit on a line."""

ADDRESS = re.compile(r"\bat 0x[0-9a-fA-F]+")
NAMED_BY_PYTEST = (bool, int, float, complex, type, enum.Enum, re.Pattern)
LONG_STRING = 100
"""Length beyond which pytest numbers a string."""


def readable_id(value: object) -> str | None:
    """Return an id for a value, or None where the id that pytest chooses is readable.

    Ids must be equal in every process, because pytest-xdist compares them. So sets are sorted, and
    a value whose ``repr`` holds an address is named by its type.
    """
    if value is None or isinstance(value, NAMED_BY_PYTEST):
        return None
    if isinstance(value, str | bytes) and len(value) <= LONG_STRING:
        return None
    text = ascii(value)[1:-1] if isinstance(value, str) else describe(value)
    text = text.encode("ascii", "backslashreplace").decode()
    return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - 3] + "..."


def describe(value: object) -> str:
    """Return a description in one line."""
    if isinstance(value, type | FunctionType):
        is_lambda = value.__name__ == "<lambda>"
        return describe_code(value.__code__) if is_lambda else value.__name__
    if isinstance(value, BaseException):
        return type(value).__name__
    if isinstance(value, PurePath):
        return "/".join(value.parts[-2:])
    if type(value) is dict:
        pairs = (f"{describe(key)}: {describe(item)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if type(value) is list:
        return "[" + ", ".join(map(describe, value)) + "]"
    if type(value) is tuple:
        return "(" + ", ".join(map(describe, value)) + ")"
    if isinstance(value, set | frozenset):
        return "{" + ", ".join(sorted(map(describe, value))) + "}"
    text = " ".join(repr(value).split())
    return type(value).__name__ if ADDRESS.search(text) else text


def describe_code(code: CodeType) -> str:
    """Return the names and constants that a lambda mentions, in the order of their first use."""
    return " ".join(dict.fromkeys(mentions(code))) or "lambda"


def mentions(code: CodeType) -> Iterator[str]:
    """Iterate over what the code loads, in nested functions too."""
    for instruction in dis.get_instructions(code):
        value = instruction.argval
        if isinstance(value, CodeType):
            yield from mentions(value)
        elif instruction.opname.startswith(("LOAD_GLOBAL", "LOAD_ATTR", "LOAD_METHOD")):
            yield str(value)
        elif instruction.opname in ("LOAD_CONST", "LOAD_SMALL_INT") and value is not None:
            yield describe(value)
