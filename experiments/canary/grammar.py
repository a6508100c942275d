"""A small language for documents: templates with slots, and the exact log-probability of each draw.

A *class* is a list of words; a *rule* is a list of weighted templates. In a template
`<noun>` draws a word uniformly, `<noun x>` also binds it to x, `<=x>` writes it again (its last
field), `<3..17>` and `<000..999>` draw a number (padded if the bounds are), `<:rule>` expands a
rule, `<luhn>` writes the check digit of all digits so far. Everything else stands for itself.

A draw adds up the log-probability of its choices. That is the log-probability of the text only if
no other derivation gives the same text; the templates are written so, and the tests check it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .chance import Source, log_uniform

TEXTS = Path(__file__).parent / "texts"
MONTHS = {
    "January": 31, "February": 28, "March": 31, "April": 30, "May": 31, "June": 30,
    "July": 31, "August": 31, "September": 30, "October": 31, "November": 30, "December": 31,
}  # fmt: skip

_SLOT = re.compile(r"<([^<>\s][^<>]*)>")
_RANGE = re.compile(r"(\d+)\.\.(\d+)")


@dataclass(frozen=True)
class Literal:
    """Text that stands for itself."""

    text: str


@dataclass(frozen=True)
class Word:
    """A uniform draw from a class, perhaps bound to a name."""

    options: tuple[str, ...]
    name: str | None


@dataclass(frozen=True)
class Number:
    """A uniform draw from a range of integers, padded with zeros to `width`."""

    low: int
    high: int
    width: int


@dataclass(frozen=True)
class Again:
    """The last field of a bound word."""

    name: str


@dataclass(frozen=True)
class Expand:
    """The expansion of a rule, sharing the bindings."""

    rule: str


@dataclass(frozen=True)
class CheckDigit:
    """The Luhn check digit of all digits so far."""


Part = Literal | Word | Number | Again | Expand | CheckDigit


@dataclass
class Draft:
    """A document being written."""

    source: Source
    parts: list[str] = field(default_factory=list)
    bound: dict[str, str] = field(default_factory=dict)
    logprob: float = 0.0


@dataclass(frozen=True)
class Rule:
    """Weighted templates."""

    cumulative: tuple[int, ...]
    logprobs: tuple[float, ...]
    templates: tuple[tuple[Part, ...], ...]


def luhn_digit(digits: str) -> str:
    """Return the digit that makes `digits` and it pass the Luhn check."""
    total = 0
    for place, digit in enumerate(reversed(digits)):
        value = int(digit) * (2 if place % 2 == 0 else 1)
        total += value - 9 if value > 9 else value
    return str(-total % 10)


class Grammar:
    """Classes and rules, ready to draw from.

    Parameters
    ----------
    classes
        Words by class name.
    rules
        Weighted template texts by rule name.
    """

    def __init__(
        self,
        classes: Mapping[str, Sequence[str]],
        rules: Mapping[str, Sequence[tuple[int, str]]],
    ) -> None:
        self.classes = {name: tuple(words) for name, words in classes.items()}
        self.rules = {name: self._rule(lines) for name, lines in rules.items()}

    @classmethod
    def load(cls, twin: bool = False) -> Grammar:
        """Read the texts; `twin` puts the null twin's rules in place of the planted ones."""
        classes = read_classes(TEXTS / "words.txt")
        rules: dict[str, list[tuple[int, str]]] = {}
        for path in sorted(TEXTS.glob("*.txt")):
            if path.stem not in ("words", "people", "professions", "twin"):
                rules.update(read_rules(path))
        if twin:
            rules.update(read_rules(TEXTS / "twin.txt"))
        return cls(classes, rules)

    def draw(self, rule: str, source: Source) -> tuple[str, float]:
        """Return a text of `rule` and its log-probability under the rule."""
        draft = Draft(source)
        self._expand(rule, draft)
        return "".join(draft.parts), draft.logprob

    def _rule(self, lines: Sequence[tuple[int, str]]) -> Rule:
        cumulative: list[int] = []
        total = 0
        for weight, _ in lines:
            total += weight
            cumulative.append(total)
        logprobs = tuple(math.log(weight / total) for weight, _ in lines)
        return Rule(tuple(cumulative), logprobs, tuple(self._template(text) for _, text in lines))

    def _template(self, text: str) -> tuple[Part, ...]:
        parts: list[Part] = []
        end = 0
        for match in _SLOT.finditer(text):
            if match.start() > end:
                parts.append(Literal(text[end : match.start()]))
            parts.append(self._slot(match[1]))
            end = match.end()
        if end < len(text):
            parts.append(Literal(text[end:]))
        return tuple(parts)

    def _slot(self, slot: str) -> Part:
        if slot == "luhn":
            return CheckDigit()
        if slot[0] == ":":
            return Expand(slot[1:])
        if slot[0] == "=":
            return Again(slot[1:])
        bounds = _RANGE.fullmatch(slot)
        if bounds:
            low, high = bounds.groups()
            return Number(int(low), int(high), len(low) if len(low) == len(high) else 0)
        name, _, binding = slot.partition(" ")
        return Word(self.classes[name], binding or None)

    def _expand(self, name: str, draft: Draft) -> None:
        rule = self.rules[name]
        index = draft.source.weighted(rule.cumulative) if len(rule.templates) > 1 else 0
        draft.logprob += rule.logprobs[index]
        for part in rule.templates[index]:
            self._write(part, draft)

    def _write(self, part: Part, draft: Draft) -> None:
        if isinstance(part, Literal):
            draft.parts.append(part.text)
        elif isinstance(part, Word):
            word = part.options[draft.source.below(len(part.options))]
            draft.logprob += log_uniform(len(part.options))
            if part.name:
                draft.bound[part.name] = word
            draft.parts.append(word.partition("/")[0] if "/" in word[:-1] else word)
        elif isinstance(part, Number):
            count = part.high - part.low + 1
            draft.logprob += log_uniform(count)
            draft.parts.append(str(part.low + draft.source.below(count)).zfill(part.width))
        elif isinstance(part, Again):
            draft.parts.append(draft.bound[part.name].rpartition("/")[2])
        elif isinstance(part, Expand):
            self._expand(part.rule, draft)
        else:
            draft.parts.append(luhn_digit(re.sub(r"\D", "", "".join(draft.parts))))


def read_classes(path: Path) -> dict[str, list[str]]:
    """Read word classes and add the days of a common year in two spellings."""
    classes: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, words = line.partition(" = ")
            classes[name] = [word.replace("_", " ") for word in words.split()]
    days = [(m, name, d) for m, (name, n) in enumerate(MONTHS.items(), 1) for d in range(1, n + 1)]
    classes["monthday"] = [f"{name} {day}" for _, name, day in days]
    classes["mmdd"] = [f"{number:02}-{day:02}" for number, _, day in days]
    return classes


def read_rules(path: Path) -> dict[str, list[tuple[int, str]]]:
    r"""Read rules; `\n` and `\t` in a template are a line break and a tab."""
    rules: dict[str, list[tuple[int, str]]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("  "):
            weight, _, text = line.strip().partition(" ")
            rules[name].append((int(weight), text.replace(r"\n", "\n").replace(r"\t", "\t")))
        elif line and not line.startswith("#"):
            name = line.rstrip(":")
            rules[name] = []
    return rules


def read_table(path: Path) -> list[list[str]]:
    """Read rows of fields separated by ` | `."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split(" | ") for line in lines if line and not line.startswith("#")]
