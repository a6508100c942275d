"""What every language can do: be asked, be combined, be compared, be pickled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from formalm import _core
from formalm.automata.texts import text_bytes
from formalm.errors import ArgumentError, LanguageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from formalm.automata import Automaton

__all__ = ["Language", "text_bytes"]


class Language(ABC):
    """A set of byte strings, described and not yet compiled.

    Languages are immutable values: hashable, picklable (by what was written, never by the compiled
    machine) and equal when they were written alike. Two descriptions of one set may be unequal.

    ========== ===========================================
    ``a | b``  union
    ``a & b``  intersection
    ``a - b``  difference
    ``~a``     every UTF-8 text that is not in ``a``
    ``a + b``  concatenation
    ``a * 3``  exactly three times; ``a * (2, 5)`` two to five; ``a * (2, None)`` two or more
    ========== ===========================================

    Kleene's star is :meth:`star`, since ``*`` counts as it does for Python's own sequences.
    An operand that is a list of strings is read as a :class:`~formalm.Choice`. A bare string is
    refused: it could mean a literal text or a pattern.

    Examples
    --------
    >>> from formalm import Literal, Regex
    >>> word = Regex("[a-z]+") - Literal("no")
    >>> word.matches("yes"), word.matches("no"), word.is_viable("no")
    (True, False, True)
    """

    __slots__ = ("_arguments", "_automata", "_expression", "_hash")

    def __init__(self, *arguments: Hashable) -> None:
        self._arguments = arguments
        # Kept, because parts may be shared: each would be hashed anew for every use.
        self._hash = hash((type(self).__name__, arguments))
        self._automata: dict[int | None, _core.Automaton] = {}
        self._expression: _core.Expression | None = None

    @abstractmethod
    def _build(self) -> _core.Expression:
        """The core's expression of this language."""

    def expression(self) -> _core.Expression:
        """The core's expression, built once."""
        if self._expression is None:
            self._expression = self._build()
        return self._expression

    def automaton(self, *, state_limit: int | None = None) -> _core.Automaton:
        """The lazy byte machine, built on first use and kept.

        Parameters
        ----------
        state_limit
            Most states the machine may build; None takes the core's default.

        Raises
        ------
        LanguageError
            If the language is empty.
        LimitError
            If the machine needs more than ``state_limit`` states.
        """
        fits = state_limit is None or (type(state_limit) is int and 1 <= state_limit < 1 << 63)
        if not fits:
            raise ArgumentError(f"state_limit must be a positive integer, not {state_limit!r}")
        machine = self._automata.get(state_limit)
        if machine is None:
            options = {} if state_limit is None else {"state_limit": state_limit}
            machine = _core.Automaton(self.expression(), **options)
            self._automata[state_limit] = machine
        return machine

    def machine(self) -> _core.Automaton | None:
        """The lazy byte machine; None for the empty language, which has none."""
        if None not in self._automata:
            machine = _core.Automaton.of(self.expression())
            if machine is None:
                return None
            self._automata[None] = machine
        return self._automata[None]

    def to_automaton(self, *, state_limit: int = 100_000) -> Automaton:
        """The minimal automaton, written out; that of the empty language has one state.

        Parameters
        ----------
        state_limit
            Most states before equivalent ones are joined.

        Raises
        ------
        LimitError
            If there are more.
        """
        from formalm.languages.comparison import written_out

        return written_out(self, state_limit)

    def is_empty(self) -> bool:
        """Whether no text is a member."""
        return self.machine() is None

    def equivalent(
        self, other: Language | Sequence[str | bytes], *, state_limit: int = 1_000_000
    ) -> bool:
        """Whether both have the same members; stops at the first difference.

        Parameters
        ----------
        other
            A language, or a list of strings.
        state_limit
            Most pairs of states to look at; neither language is written out.
        """
        from formalm.languages.comparison import difference

        return difference(self, other, "equivalence", None, state_limit) is None

    def is_subset(
        self, other: Language | Sequence[str | bytes], *, state_limit: int = 1_000_000
    ) -> bool:
        """Whether every member is a member of ``other``; the rest is as in :meth:`equivalent`."""
        from formalm.languages.comparison import difference

        return difference(self, other, "inclusion", None, state_limit) is None

    def witness(
        self,
        other: Language | Sequence[str | bytes],
        relation: str = "equivalence",
        *,
        unit: str = "characters",
        state_limit: int = 1_000_000,
    ) -> str | bytes | None:
        """The shortest, then smallest, text that refutes a relation; None if it holds.

        ``"equivalence"`` asks for a text in exactly one of the two, ``"inclusion"`` for one in this
        language and not in ``other``. It is a str, or bytes where it is not UTF-8; the other
        arguments are as in :meth:`Automaton.witness`.

        Examples
        --------
        >>> from formalm import Regex
        >>> Regex("(ab)*").witness(Regex("(ab){0,2}"))
        'ababab'
        """
        from formalm.languages.comparison import difference

        return difference(self, other, relation, unit, state_limit)

    def matches(self, text: str | bytes) -> bool:
        """Whether the whole of ``text`` is a member; a ``str`` is read as UTF-8."""
        data = text_bytes(text)
        return data is not None and self.automaton().matches(data)

    def is_viable(self, text: str | bytes) -> bool:
        """Whether some member starts with ``text``."""
        data = text_bytes(text)
        return data is not None and self.automaton().is_viable(data)

    def shortest(self, prefix: str | bytes = b"") -> bytes | None:
        """The shortest, then smallest, member that starts with ``prefix``, or None."""
        data = text_bytes(prefix)
        return None if data is None else self.automaton().shortest(data)

    def value(self, text: str) -> object:
        """What a member stands for; the text itself unless a language knows better."""
        return text

    def __or__(self, other: object) -> Language:
        return _combine("|", self, other)

    def __ror__(self, other: object) -> Language:
        return _combine("|", other, self)

    def __and__(self, other: object) -> Language:
        return _combine("&", self, other)

    def __rand__(self, other: object) -> Language:
        return _combine("&", other, self)

    def __sub__(self, other: object) -> Language:
        return _combine("-", self, other)

    def __rsub__(self, other: object) -> Language:
        return _combine("-", other, self)

    def __add__(self, other: object) -> Language:
        return _combine("+", self, other)

    def __radd__(self, other: object) -> Language:
        return _combine("+", other, self)

    def __invert__(self) -> Language:
        return _combine("~", self)

    def __mul__(self, count: object) -> Language:
        bounds = count if isinstance(count, tuple) else (count, count)
        if len(bounds) != 2:
            raise ArgumentError(
                f"{count!r} is not a repetition",
                hint="write lang * 3, lang * (2, 5) or lang * (2, None)",
            )
        return self.repeat(*bounds)

    __rmul__ = __mul__

    def repeat(self, minimum: int, maximum: int | None = None) -> Language:
        """Between ``minimum`` and ``maximum`` members in a row; None is without end."""
        from formalm.languages.algebra import Repetition

        return Repetition(self, minimum, maximum)

    def star(self) -> Language:
        """Any number of members in a row, none included."""
        return self.repeat(0)

    def plus(self) -> Language:
        """One or more members in a row."""
        return self.repeat(1)

    def optional(self) -> Language:
        """A member or nothing."""
        return self.repeat(0, 1)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._arguments == other._arguments

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._arguments))})"

    def __bool__(self) -> bool:
        raise LanguageError("a language has no truth value", hint="ask language.matches(text)")


def _combine(operator: str, *operands: object) -> Language:
    from formalm.languages.algebra import combine

    return combine(operator, *operands)
