"""Incremental JSON reader: the finished parts of a JSON text that is still being written."""

from __future__ import annotations

import json
import re
import sys

from formalm.errors import LimitError

__all__ = ["PartialJson", "whole_json"]

WORDS = {"true": True, "false": False, "null": None}
# The part of an escape at the end of a string that was cut there; a high surrogate waits for its
# other half.
_CUT_ESCAPE = re.compile(
    r"(?<!\\)(?P<even>(?:\\\\)*)"
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?$"
)
DELIMITERS = frozenset(" \t\r\n,]}")


class PartialJson:
    """Reads a prefix of a JSON text piece by piece; each character is read once.

    A part is finished if nothing that follows can change it: a string at its closing quote, a
    number at the character after it. Objects and arrays appear from their opening bracket on, with
    their finished properties and items. Input that is not a prefix of JSON goes unnoticed.

    Examples
    --------
    >>> parts = PartialJson()
    >>> parts.feed('{"a": [1, 23')
    >>> parts.value
    {'a': [1]}
    >>> parts.feed(', 4], "b": "x')
    >>> parts.value
    {'a': [1, 23, 4]}
    """

    def __init__(self) -> None:
        self._root: object = None
        self._open: list[list[object] | dict[str, object]] = []
        self._names: list[str | None] = []
        # The value being read: a string with its opening quote, or a number or word.
        self._begun = ""
        self._escaped = False

    def feed(self, piece: str) -> None:
        """Reads the next characters.

        Raises
        ------
        LimitError
            For integers with more digits than Python converts.
        """
        at = 0
        while at < len(piece):
            read_on = self._string if self._begun.startswith('"') else self._other
            at = read_on(piece, at)

    @property
    def value(self) -> object:
        """Returns a copy of the finished part; None if there is none."""
        return _copied(self._root)

    def with_open_string(self) -> object:
        """Returns the finished part, and in it the string value under way, as far as it was read.

        An escape that is cut short is left out. The name of a property is no value.

        Examples
        --------
        >>> parts = PartialJson()
        >>> parts.feed('{"name": "Jane A')
        >>> parts.value, parts.with_open_string()
        ({}, {'name': 'Jane A'})
        """
        is_name = bool(self._open) and isinstance(self._open[-1], dict) and self._names[-1] is None
        if not self._begun.startswith('"') or is_name:
            return self.value
        text = json.loads(_CUT_ESCAPE.sub(r"\g<even>", self._begun) + '"')
        if not self._open:
            return text
        outer = self._open[-1]
        if isinstance(outer, list):
            outer.append(text)
            value = self.value
            outer.pop()
            return value
        name = self._names[-1] or ""
        # A name twice in one object is no JSON of ours, but may be read.
        is_new, before = name not in outer, outer.get(name)
        outer[name] = text
        value = self.value
        if is_new:
            del outer[name]
        else:
            outer[name] = before
        return value

    def _string(self, piece: str, start: int) -> int:
        """Reads on inside a string; returns its end, or the end of the piece."""
        for at in range(start, len(piece)):
            if self._escaped:
                self._escaped = False
            elif piece[at] == "\\":
                self._escaped = True
            elif piece[at] == '"':
                text = json.loads(self._begun + piece[start : at + 1])
                self._begun = ""
                if self._names and isinstance(self._open[-1], dict) and self._names[-1] is None:
                    self._names[-1] = text
                else:
                    self._complete(text)
                return at + 1
        self._begun += piece[start:]
        return len(piece)

    def _other(self, piece: str, at: int) -> int:
        sign = piece[at]
        if self._begun and sign in DELIMITERS:
            number = self._begun
            self._begun = ""
            self._complete(_number(number))
        if sign in "{[":
            opened: dict[str, object] | list[object] = {} if sign == "{" else []
            self._complete(opened)
            self._open.append(opened)
            self._names.append(None)
        elif sign in "}]":
            self._open.pop()
            self._names.pop()
        elif sign not in " \t\r\n,:":
            self._begun += sign
            if self._begun in WORDS:
                word = WORDS[self._begun]
                self._begun = ""
                self._complete(word)
        return at + 1

    def _complete(self, value: object) -> None:
        """Stores a finished value in its container."""
        if not self._open:
            self._root = value
            return
        outer = self._open[-1]
        if isinstance(outer, list):
            outer.append(value)
        else:
            outer[self._names[-1] or ""] = value
            self._names[-1] = None


def _number(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        most = sys.get_int_max_str_digits()
        raise LimitError("digits of an integer", len(text), most) from None


def whole_json(text: str | bytes) -> object:
    """Returns the value of a JSON text.

    Raises
    ------
    LimitError
        For an integer with more digits, or values nested deeper, than Python reads.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise LimitError("levels of nesting", *(sys.getrecursionlimit(),) * 2) from None
    except ValueError:
        digits = re.findall(rb"\d+", text.encode() if isinstance(text, str) else text)
        needed, most = max(map(len, digits)), sys.get_int_max_str_digits()
        raise LimitError(
            "digits of an integer", needed, most, hint="sys.set_int_max_str_digits allows more"
        ) from None


def _copied(value: object) -> object:
    """Copies lists and dictionaries without recursion, because texts may be nested deeply."""
    top: list[object] = [value]
    pending: list[tuple[list[object] | dict[str, object], int | str]] = [(top, 0)]
    while pending:
        outer, place = pending.pop()
        inner = outer[place]  # type: ignore[index]
        if isinstance(inner, dict | list):
            copy = inner.copy()
            outer[place] = copy  # type: ignore[index]
            places = copy if isinstance(copy, dict) else range(len(copy))
            pending += [(copy, each) for each in places]
    return top[0]
