"""All derivations of a text: the check that a draw's log-probability is the text's own."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from .grammar import (
    Again,
    CheckDigit,
    Expand,
    Grammar,
    Literal,
    Number,
    Part,
    Word,
    luhn_digit,
)

Found = tuple[int, dict[str, str], float]  # end of what was read, bindings, log-probability


def derivations(grammar: Grammar, rule: str, text: str) -> list[float]:
    """Return the log-probability of every derivation of a whole text from a rule."""
    return [logprob for end, _, logprob in _rule(grammar, rule, text, 0, {}) if end == len(text)]


def _rule(
    grammar: Grammar, name: str, text: str, start: int, bound: Mapping[str, str]
) -> Iterator[Found]:
    rule = grammar.rules[name]
    for template, weight in zip(rule.templates, rule.logprobs, strict=True):
        for end, names, logprob in _parts(grammar, template, text, start, dict(bound)):
            yield end, names, weight + logprob


def _parts(
    grammar: Grammar, parts: tuple[Part, ...], text: str, start: int, bound: dict[str, str]
) -> Iterator[Found]:
    if not parts:
        yield start, bound, 0.0
        return
    for middle, names, first in _part(grammar, parts[0], text, start, bound):
        for end, final, rest in _parts(grammar, parts[1:], text, middle, names):
            yield end, final, first + rest


def _part(
    grammar: Grammar, part: Part, text: str, start: int, bound: dict[str, str]
) -> Iterator[Found]:
    if isinstance(part, Expand):
        yield from _rule(grammar, part.rule, text, start, bound)
    elif isinstance(part, Word):
        for word in part.options:
            written = word.partition("/")[0] if "/" in word[:-1] else word
            if text.startswith(written, start):
                names = {**bound, part.name: word} if part.name else bound
                yield start + len(written), names, -math.log(len(part.options))
    elif isinstance(part, Number):
        yield from _number(part, text, start, bound)
    else:
        fixed = _fixed(part, text, start, bound)
        if text.startswith(fixed, start):
            yield start + len(fixed), bound, 0.0


def _fixed(part: Literal | Again | CheckDigit, text: str, start: int, bound: dict[str, str]) -> str:
    if isinstance(part, Literal):
        return part.text
    if isinstance(part, Again):
        return bound[part.name].rpartition("/")[2]
    return luhn_digit(re.sub(r"\D", "", text[:start]))


def _number(part: Number, text: str, start: int, bound: dict[str, str]) -> Iterator[Found]:
    widths = [part.width] if part.width else range(1, len(str(part.high)) + 1)
    for width in widths:
        digits = text[start : start + width]
        if len(digits) < width or not (digits.isascii() and digits.isdecimal()):
            continue
        plain = bool(part.width) or digits == str(int(digits))
        if plain and part.low <= int(digits) <= part.high:
            yield start + width, bound, -math.log(part.high - part.low + 1)
