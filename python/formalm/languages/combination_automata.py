"""Machines of combinations with a language that is not regular.

Regular languages are combined as expressions. With others, concatenations, unions and repetitions
become a position automaton whose symbols are machines. A regular language that is intersected or
subtracted filters the other machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, NoReturn

from formalm import _core
from formalm.errors import LanguageError, LimitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from formalm.languages.algebra import Combination, Repetition
    from formalm.languages.language import Language

__all__ = ["combined"]

#: Maximum number of machines in one expression.
LETTERS = 2_000

#: Maximum number of states of a minimal automaton that filters another language.
FILTER_STATES = 200


def combined(language: Language, state_limit: int | None) -> _core.Automaton | None:
    """Returns the machine of a combination that is not regular; None if the language is empty."""
    from formalm.languages.algebra import Combination

    if isinstance(language, Combination) and language.operator in "&-~":
        return filtered(language, state_limit)
    letters = GlushkovBuilder(state_limit)
    whole = letters.read(language)
    if whole is None:
        return None
    last = set(whole.last)
    parts = [
        (machine, sorted(follows), at in last)
        for at, (machine, follows) in enumerate(zip(letters.machines, letters.follows, strict=True))
    ]
    first = list(whole.first)
    return _core.Automaton.composed(parts, first, empty=whole.empty, state_limit=state_limit)


@dataclass(frozen=True)
class PositionSets:
    """The first and last symbols of an expression, and whether it contains the empty sequence."""

    empty: bool
    first: tuple[int, ...]
    last: tuple[int, ...]


class GlushkovBuilder:
    """The symbols of an expression, numbered in reading order, with the successors of each."""

    def __init__(self, state_limit: int | None) -> None:
        self.machines: list[_core.Automaton] = []
        self.follows: list[set[int]] = []
        self._state_limit = state_limit

    def read(self, language: Language) -> PositionSets | None:
        """Adds a language with new symbols; None is the empty language."""
        from formalm.languages.algebra import Combination, Repetition

        if language.is_regular:
            return self._add_symbol(language)
        if isinstance(language, Combination) and language.operator == "|":
            parts = [part for part in map(self.read, language.operands) if part is not None]
            return reduce(either, parts) if parts else None
        if isinstance(language, Combination) and language.operator == "+":
            return self._concatenation([self.read(part) for part in language.operands])
        if isinstance(language, Repetition):
            return self._repetition(language)
        return self._add_symbol(language)

    def _add_symbol(self, language: Language) -> PositionSets | None:
        machine = language.machine(state_limit=self._state_limit)
        if machine is None:
            return None
        at = len(self.machines)
        if at >= LETTERS:
            hint = "repeat a regular part, or let the count be open: lang.star()"
            raise LimitError("languages in an expression", at + 1, LETTERS, hint=hint)
        self.machines.append(machine)
        self.follows.append(set())
        return PositionSets(empty=False, first=(at,), last=(at,))

    def _concatenation(self, parts: Sequence[PositionSets | None]) -> PositionSets | None:
        whole = PositionSets(empty=True, first=(), last=())
        for part in parts:
            if part is None:
                return None
            self._connect(whole.last, part.first)
            whole = PositionSets(
                empty=whole.empty and part.empty,
                first=whole.first + (part.first if whole.empty else ()),
                last=part.last + (whole.last if part.empty else ()),
            )
        return whole

    def _repetition(self, language: Repetition) -> PositionSets | None:
        nothing = PositionSets(empty=True, first=(), last=())
        if language.maximum == 0:
            return nothing
        if language.part.machine(state_limit=self._state_limit) is None:
            return nothing if language.minimum == 0 else None
        # Copies of the part; the last one loops if there is no maximum.
        count = max(language.minimum, 1) if language.maximum is None else language.maximum
        parts: list[PositionSets | None] = []
        for number in range(count):
            part = self.read(language.part)
            if part is not None and number >= language.minimum:
                part = PositionSets(empty=True, first=part.first, last=part.last)
            parts.append(part)
        final = parts[-1]
        if language.maximum is None and final is not None:
            self._connect(final.last, final.first)
        return self._concatenation(parts)

    def _connect(self, before: Sequence[int], after: Sequence[int]) -> None:
        for at in before:
            self.follows[at].update(after)


def either(left: PositionSets, right: PositionSets) -> PositionSets:
    """Returns the union of two."""
    return PositionSets(left.empty or right.empty, left.first + right.first, left.last + right.last)


def filtered(language: Combination, state_limit: int | None) -> _core.Automaton | None:
    """Returns the machine of an intersection or difference with one non-regular language."""
    from formalm.languages.choice import Choice

    operands = language.operands
    others = [part for part in operands if not part.is_regular]
    if language.operator == "~":
        refuse("the complement of {0} is not supported", others)
    if len(others) > 1:
        refuse("the intersection of {0} and {1} is undecidable in general", others)
    if language.operator == "-" and operands[0].is_regular:
        refuse("the difference from {0} is not supported", others)
    regular = [part for part in operands if part.is_regular]
    if language.operator == "-":
        # Not their complements, which contain only UTF-8: members may be other bytes.
        every = Choice([bytes([byte]) for byte in range(256)]).star()
        regular = [every - part for part in regular]
    filter_language = reduce(lambda left, right: left & right, regular)
    check_states(filter_language, max(FILTER_STATES, state_limit or 0))
    machine, filtering = others[0].machine(state_limit=state_limit), filter_language.machine()
    if machine is None or filtering is None:
        return None
    return machine.filtered(filtering, state_limit=state_limit)


def check_states(language: Language, allowed: int) -> None:
    """Refuses a filter with too many states: the search for completions depends on all of them."""
    try:
        language.to_automaton(state_limit=allowed)
    except LimitError as error:
        hint = (
            "a regular language combined with a grammar or schema needs a small minimal automaton"
            " over bytes: '.' takes about seven states, '[ -~]' one; name the characters, or raise"
            " state_limit"
        )
        raise LimitError(error.what, error.needed, error.allowed, hint) from None


def refuse(message: str, languages: Sequence[Language]) -> NoReturn:
    """Refuses a combination of languages that are not regular."""
    names = [f"a {type(one).__name__}" for one in languages]
    raise LanguageError(
        message.format(*names),
        hint="grammars and schemas support | and + with any language, & and - with a regular one"
        " on the right",
    )
