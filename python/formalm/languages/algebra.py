"""Combinations of languages: Boolean operations, concatenation and repetition."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import reduce
from os import PathLike
from typing import TYPE_CHECKING, TypeGuard

from formalm import _core
from formalm.errors import ArgumentError, LanguageError
from formalm.languages.captures.combinations import (
    captures_of_concatenation,
    captures_of_intersection,
    captures_of_union,
    groups_of,
)
from formalm.languages.choice import Choice
from formalm.languages.grammar.named_languages import hashable
from formalm.languages.language import MAX_DEPTH, Language
from formalm.languages.parser import Parser
from formalm.languages.python_types.language import PythonType, is_type

if TYPE_CHECKING:
    from collections.abc import Hashable

    from formalm.languages.captures.groups import CaptureSpans, Group

__all__ = ["Combination", "Repetition", "as_language", "combine"]

MAX_REPETITION = 100_000


class Mixed(Language):
    """A language made of other languages, of any kind except parsers."""

    __slots__ = ("_regular",)

    _regular: bool

    def __init__(self, *arguments: Hashable) -> None:
        for part in arguments:
            if isinstance(part, Parser):
                part.expression()  # it has no operands, and its name says so
        super().__init__(*arguments)

    @property
    def is_regular(self) -> bool:
        """True if all parts are regular."""
        # Cached: parts form a graph, which would otherwise be traversed as a tree.
        try:
            return self._regular
        except AttributeError:
            self._regular = all(part.is_regular for part in self._parts)
            return self._regular

    @property
    def groups(self) -> tuple[Group, ...]:
        return super().groups if self.is_regular else groups_of(self._capturing)

    @property
    def _capturing(self) -> tuple[Language, ...]:
        """The parts whose groups are groups of the combination."""
        return self._parts

    def _made(self, state_limit: int | None) -> _core.Automaton:
        if self.is_regular:
            return super()._made(state_limit)
        machine = self._made_or_none(state_limit)
        if machine is None:
            raise LanguageError("the language is empty: no string is a member")
        return machine

    def _made_or_none(self, state_limit: int | None) -> _core.Automaton | None:
        if self.is_regular:
            return super()._made_or_none(state_limit)
        from formalm.languages.combination_automata import combined

        return combined(self, state_limit)


class Combination(Mixed):
    """The union, intersection, difference, concatenation or complement of languages."""

    # A chain `a | b | c | …` is one level with many operands. Copying them at each operator would
    # take n² steps, so a longer chain refers to the shorter one until its operands are needed.
    __slots__ = ("_chain", "_flat", "_flat_parts", "_operator", "_size")

    _chain: tuple[tuple[Language, ...], Combination, tuple[Language, ...]] | None
    _flat: tuple[Hashable, ...]
    _flat_parts: tuple[Language, ...]

    def __init__(self, operator: str, *operands: Language) -> None:
        self._chain = None
        self._operator = operator
        self._size = len(operands)
        super().__init__(operator, *operands)

    @property
    def _arguments(self) -> tuple[Hashable, ...]:
        self._resolve()
        return self._flat

    @_arguments.setter
    def _arguments(self, arguments: tuple[Hashable, ...]) -> None:
        self._flat = arguments

    @property
    def _parts(self) -> tuple[Language, ...]:
        self._resolve()
        return self._flat_parts

    @_parts.setter
    def _parts(self, parts: tuple[Language, ...]) -> None:
        self._flat_parts = parts

    def _extended(
        self, before: tuple[Language, ...], after: tuple[Language, ...]
    ) -> Combination | None:
        """Returns the chain with operands added at its ends; None if they are nested too deeply."""
        depth = 1 + max(part._depth for part in before + after)
        if depth > MAX_DEPTH or any(isinstance(part, Parser) for part in before + after):
            return None
        longer = Combination.__new__(Combination)
        longer._chain = (before, self, after)
        longer._operator = self._operator
        longer._size = self._size + len(before) + len(after)
        longer._depth = max(self._depth, depth)
        longer._hash = longer._expression = longer._grouping = None
        longer._automata = {}
        return longer

    def _resolve(self) -> None:
        """Stores the operands of a chain."""
        if self._chain is None:
            return
        fronts: list[tuple[Language, ...]] = []
        backs: list[tuple[Language, ...]] = []
        one = self
        while one._chain is not None:
            before, one, after = one._chain
            fronts.append(before)
            backs.append(after)
        parts: list[Language] = [part for front in fronts for part in front]
        parts += one._flat_parts
        parts += [part for back in reversed(backs) for part in back]
        self._flat_parts = tuple(parts)
        self._flat = (self._operator, *parts)
        self._chain = None

    @property
    def operator(self) -> str:
        """The operator: one of ``| & - + ~``."""
        return self._operator

    @property
    def operands(self) -> tuple[Language, ...]:
        """The operands, from left to right."""
        return self._parts

    @property
    def _capturing(self) -> tuple[Language, ...]:
        return {"-": self.operands[:1], "~": ()}.get(self.operator, self.operands)

    def captured_in(self, data: bytes, step_limit: int) -> CaptureSpans | None:  # noqa: D102
        if self.is_regular:
            return super().captured_in(data, step_limit)
        parts, count = self._capturing, len(self._capturing)
        if self.operator == "|":
            return captures_of_union(parts, data, step_limit)
        if self.operator == "+":
            return captures_of_concatenation(parts, (count, count), data, step_limit)
        return captures_of_intersection(parts, data, step_limit) if self.matches(data) else None

    def _build(self) -> _core.Expression:
        parts = [part.expression() for part in self.operands]
        if self.operator == "~":
            return parts[0].complement()
        method = {"|": "union", "&": "intersect", "-": "subtract", "+": "concatenate"}[
            self.operator
        ]
        return reduce(lambda left, right: getattr(left, method)(right), parts)

    def __repr__(self) -> str:
        parts = [repr(part) for part in self.operands]
        return f"~{parts[0]}" if self.operator == "~" else f"({f' {self.operator} '.join(parts)})"


class Repetition(Mixed):
    """Between ``minimum`` and ``maximum`` members of a language in a row."""

    __slots__ = ("maximum", "minimum", "part")

    def __init__(self, part: Language, minimum: int, maximum: int | None = None) -> None:
        for bound in (minimum, 0 if maximum is None else maximum):
            if type(bound) is not int or bound < 0:
                raise ArgumentError(
                    f"repetition counts must be non-negative integers, got {bound!r}"
                )
            if bound > MAX_REPETITION:
                raise LanguageError(
                    f"repetition counts must be at most {MAX_REPETITION:,}, got {bound:,}"
                )
        if maximum is not None and maximum < minimum:
            raise ArgumentError(f"maximum must be at least minimum ({minimum}), got {maximum}")
        super().__init__(part, minimum, maximum)
        self.part = part
        self.minimum = minimum
        self.maximum = maximum

    def captured_in(self, data: bytes, step_limit: int) -> CaptureSpans | None:  # noqa: D102
        if self.is_regular:
            return super().captured_in(data, step_limit)
        return captures_of_concatenation(
            (self.part,), (self.minimum, self.maximum), data, step_limit
        )

    def _build(self) -> _core.Expression:
        return self.part.expression().repeat(self.minimum, self.maximum)

    def __repr__(self) -> str:
        if (self.minimum, self.maximum) == (0, None):
            return f"{self.part!r}.star()"
        if self.minimum == self.maximum:
            return f"({self.part!r} * {self.minimum})"
        return f"({self.part!r} * ({self.minimum}, {self.maximum}))"


def combine(operator: str, *operands: object) -> Language:
    """Returns the combination of ``operands``, with nested unions and sums flattened."""
    languages = [as_language(operand) for operand in operands]
    if operator not in "|&+":
        return Combination(operator, *languages)
    # Not for subclasses, which know more about their members than their operands do.
    chains = [one for one in languages if _is_chain(one, operator)]
    if chains:
        # Refer to the longest chain, and list the operands of the others.
        longest = max(chains, key=lambda chain: chain._size)
        at = next(index for index, one in enumerate(languages) if one is longest)
        longer = longest._extended(
            _operands(languages[:at], operator), _operands(languages[at + 1 :], operator)
        )
        if longer is not None:
            return longer
    return Combination(operator, *_operands(languages, operator))


def _is_chain(language: Language, operator: str) -> TypeGuard[Combination]:
    # Not for subclasses, which know more about their members than their operands do.
    return type(language) is Combination and language.operator == operator


def _operands(languages: list[Language], operator: str) -> tuple[Language, ...]:
    flat: list[Language] = []
    for one in languages:
        flat += one.operands if _is_chain(one, operator) else (one,)
    return tuple(flat)


def as_language(value: object) -> Language:
    """Converts ``value`` to a language.

    A language is returned unchanged. A list or tuple of strings becomes a :class:`~formalm.Choice`.
    A type, an annotation such as ``list[int]`` or a function becomes a
    :class:`~formalm.PythonType`.

    Raises
    ------
    LanguageError
        For any other value. A string is refused because it could be a pattern or a literal.

    Examples
    --------
    >>> as_language(["yes", "no"])
    Choice(['yes', 'no'])
    """
    # `isinstance` with an abstract class takes longer than all the rest.
    if Language in type(value).__mro__:
        return hashable(value)  # type: ignore[arg-type]
    if isinstance(value, type) and issubclass(value, Language):
        raise LanguageError(
            f"language must be a Language, got the class {value.__name__}",
            hint=f"make an instance: {value.__name__}(...)",
        )
    if isinstance(value, (list, tuple)):
        return Choice(value)
    if is_type(value):
        return PythonType(value)
    kind = type(value).__name__
    raise LanguageError(f"language must be a Language, got {kind}", hint=_hint_for(value))


def _hint_for(value: object) -> str:
    """Returns advice on how to make a language of a value that is not one."""
    if isinstance(value, (str, bytes)):
        return (
            "write Regex(pattern) for a pattern, StringLiteral(text) for exactly this string, or"
            " Choice([...]) for one of several"
        )
    if isinstance(value, (Mapping, bool)):
        return "write JsonSchema(schema) for the JSON of a schema's instances"
    if isinstance(value, PathLike):
        return (
            "write JsonSchema(path) for a JSON Schema, or Grammar(path.read_text()) for a grammar"
        )
    if isinstance(value, re.Pattern):
        return "write Regex(pattern.pattern, pattern.flags)"
    if isinstance(value, Iterable):
        return "write Choice(list(strings)) for one of several strings"
    return "pass a Language, such as Regex(pattern), a list of strings, or a type"
