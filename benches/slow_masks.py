"""The slowest masks of a benchmark, with the place in the text where they were filled."""

from __future__ import annotations

import heapq
from typing import Any

from tokenizers import Tokenizer

#: How many are kept.
MOST = 10

#: How many bytes of the text before a token are shown.
SHOWN = 40


class Slow:
    """The slowest masks so far: µs, schema, tokens before, token."""

    def __init__(self) -> None:
        self.slowest: list[tuple[float, str, list[int], int]] = []

    def note(self, schema: str, tests: list[tuple[bool, list[int]]], times: list[int]) -> None:
        """Add the masks along the valid instances of a schema before the first invalid one.

        Where an engine refuses an invalid instance is not known.
        """
        at = 0
        for valid, tokens in tests:
            if not valid:
                return
            part = times[at : at + len(tokens)]
            for place, took in heapq.nlargest(MOST, enumerate(part), key=lambda one: one[1]):
                found = (took / 1e3, schema, tokens[:place], tokens[place])
                self.slowest = heapq.nlargest(MOST, [*self.slowest, found])
            at += len(tokens)


def told(slowest: list[tuple[float, str, list[int], int]], tokenizer: Tokenizer) -> list[Any]:
    """Return the masks as a record has them."""
    rows = []
    for took, schema, before, token in slowest:
        text = tokenizer.decode(before, skip_special_tokens=False)
        rows.append(
            {
                "us": took,
                "schema": schema,
                "place": place_of(text),
                "before": text[-SHOWN:],
                "token": tokenizer.decode([token], skip_special_tokens=False),
            }
        )
    return rows


def place_of(text: str) -> str:
    """Return where a prefix of JSON ends.

    Examples
    --------
    >>> [place_of(text) for text in ("", '{"', '{"a": ', '{"a": 1', "[1, ", '["b', '{"a": 1, ')]
    ['value', 'name', 'value', 'number', 'value', 'string', 'next name']
    """
    inside, escaped, last = False, False, ""
    brackets: list[str] = []
    is_name = False
    for char in text:
        if inside:
            inside = escaped or char != '"'
            escaped = not escaped and char == "\\"
            continue
        if char == '"':
            inside, is_name = True, bool(brackets) and brackets[-1] == "{" and last in "{,"
        if char in "{[":
            brackets.append(char)
        if char in "}]" and brackets:
            brackets.pop()
        last = char if not char.isspace() else last
    if inside:
        return "name" if is_name else "string"
    if last == ":" or (last in "[," and brackets[-1:] == ["["]) or not last:
        return "value"
    if last in "{,":
        return "next name"
    return "number" if last in "0123456789.eE+-" else "after a value"
