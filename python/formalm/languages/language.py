"""The base class of all languages: membership, comparison, automata, pickling, operators."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from formalm import _core
from formalm.automata.text_of_bytes import text_bytes
from formalm.errors import ArgumentError, LanguageError, LimitError
from formalm.languages.captures.capture_mixin import CapturesMixin

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from formalm.argument_checks import Relation, Unit
    from formalm.automata import Automaton
    from formalm.languages.json_schema.partial_json import PartialJson

__all__ = ["Language", "text_bytes"]

# The same limit as in the core. Refused at construction, before anything recurses.
MAX_DEPTH = 200

#: Types of arguments that are not languages, and are hashed only on demand.
ATOMS = frozenset((str, bytes, int, float, bool, type(None)))
PLAIN = ATOMS | {tuple}


class Language(CapturesMixin, ABC):
    """A set of byte strings, described but not yet compiled.

    Languages are immutable values: hashable, picklable (as written, never the compiled machine) and
    equal if they were written the same way. Two descriptions of one set may be unequal.

    ========== ===========================================
    ``a | b``  union
    ``a & b``  intersection
    ``a - b``  difference
    ``~a``     every UTF-8 string that is not in ``a``
    ``a + b``  concatenation
    ``a * 3``  exactly three times; ``a * (2, 5)`` two to five; ``a * (2, None)`` two or more
    ========== ===========================================

    Kleene's star is :meth:`star`, because ``*`` repeats as for Python's own sequences. An operand
    that is a list of strings becomes a :class:`~formalm.Choice`. A bare string is refused, because
    it could be a literal or a pattern.

    Examples
    --------
    >>> from formalm import StringLiteral, Regex
    >>> word = Regex("[a-z]+") - StringLiteral("no")
    >>> word.matches("yes"), word.matches("no"), word.is_viable("no")
    (True, False, True)
    """

    __slots__ = ("_arguments", "_automata", "_depth", "_expression", "_hash", "_parts")

    def __init__(self, *arguments: Hashable) -> None:
        # Checking whether a plain value is a language would take longer than all the rest.
        others = [part for part in arguments if type(part) not in PLAIN]
        self._parts: tuple[Language, ...] = ()
        self._depth = 1
        if others:
            self._parts = tuple(part for part in others if isinstance(part, Language))
            self._depth += max([part._depth for part in self._parts], default=0)
            if self._depth > MAX_DEPTH:
                hint = "sums and unions of many languages are no nesting: a | b | c is one level"
                raise LimitError("levels of nesting", self._depth, MAX_DEPTH, hint=hint)
        self._arguments = arguments
        # Cached, because parts may be shared: each would be hashed again for every use.
        self._hash = hash((type(self).__name__, arguments)) if others else None
        self._automata: dict[int | None, _core.Automaton] = {}
        self._expression: _core.Expression | None = None
        self._grouping: _core.Grouping | None = None

    @abstractmethod
    def _build(self) -> _core.Expression:
        """The core's expression of this language."""

    def expression(self) -> _core.Expression:
        """The core's expression, built once."""
        if self._expression is None:
            self._expression = self._build()
        return self._expression

    def _own_marks(self) -> tuple[Any, ...]:
        """The strings that mark its parts in a model's output, if it has any."""
        return ()

    def _described(self) -> _core.Expression | _core.Grammar | _core.JsonSchema | _core.Parser:
        """The description from which the core builds the machine."""
        return self.expression()

    def automaton(self, *, state_limit: int | None = None) -> _core.Automaton:  # noqa: D102
        if state_limit is not None and not (type(state_limit) is int and 0 < state_limit < 1 << 63):
            raise ArgumentError(f"state_limit must be a positive integer, got {state_limit!r}")
        known = self._automata.get(state_limit)
        if known is None:
            known = self._automata[state_limit] = self._made(state_limit)
        return known

    def machine(self, *, state_limit: int | None = None) -> _core.Automaton | None:
        """The lazy byte machine; None for the empty language, which has none."""
        if state_limit is not None:
            return self._made_or_none(state_limit)
        machine = self._automata.get(None) or self._made_or_none(None)
        if machine is not None:
            self._automata[None] = machine
        return machine

    def _made(self, state_limit: int | None) -> _core.Automaton:
        return _core.Automaton(self._described(), state_limit=state_limit)

    def _made_or_none(self, state_limit: int | None) -> _core.Automaton | None:
        return _core.Automaton.of(self._described(), state_limit=state_limit)

    def to_automaton(
        self, *, state_limit: int = 100_000, max_bytes: int | None = None
    ) -> Automaton:
        """Returns the minimal automaton; that of the empty language has one state.

        Parameters
        ----------
        state_limit
            Maximum number of states before minimization.
        max_bytes
            Restrict to members of at most this many bytes. They are finitely many, so the automaton
            of a grammar or a schema can be built too, and its members counted, listed and drawn
            uniformly.

        Raises
        ------
        LimitError
            If there are more states.

        Examples
        --------
        >>> from formalm import Grammar
        >>> brackets = Grammar('start: "(" start ")" start |').to_automaton(max_bytes=12)
        >>> brackets.count(12), brackets.nth(4)
        (132, '((()))')
        """
        from formalm.languages.automaton_comparison import written_out

        return written_out(self, state_limit, max_bytes)

    def is_empty(self) -> bool:
        """Returns whether the language has no members.

        Raises
        ------
        LanguageError
            For a :class:`~formalm.Parser`, or a grammar with a parser in its rules, if the empty
            string is not a member: only the parser could decide this.
        """
        machine = self.machine()
        if machine is not None and not machine.is_exact and not machine.matches(b""):
            raise LanguageError(
                "is_empty() is not supported for a language with a parser",
                hint="a parser only tests strings: use matches(text)",
            )
        return machine is None

    def equivalent(
        self, other: Language | Sequence[str | bytes], *, state_limit: int = 1_000_000
    ) -> bool:
        """Returns whether both languages have the same members; stops at the first difference.

        Parameters
        ----------
        other
            A language, or a list of strings.
        state_limit
            Maximum number of pairs of states to visit; neither automaton is built.
        """
        from formalm.languages.automaton_comparison import difference

        return difference(self, other, "equivalence", None, state_limit) is None

    def is_subset(
        self, other: Language | Sequence[str | bytes], *, state_limit: int = 1_000_000
    ) -> bool:
        """Returns whether every member is a member of ``other``. See :meth:`equivalent`."""
        from formalm.languages.automaton_comparison import difference

        return difference(self, other, "inclusion", None, state_limit) is None

    def witness(
        self,
        other: Language | Sequence[str | bytes],
        relation: Relation = "equivalence",
        *,
        unit: Unit = "characters",
        state_limit: int = 1_000_000,
    ) -> str | bytes | None:
        """Returns the shortest, then smallest, string that refutes a relation; None if it holds.

        ``"equivalence"`` looks for a string in exactly one of the two, ``"inclusion"`` for one in
        this language and not in ``other``. It is a str, or bytes if it is not UTF-8. The other
        arguments are as in :meth:`Automaton.witness`.

        Examples
        --------
        >>> from formalm import Regex
        >>> Regex("(ab)*").witness(Regex("(ab){0,2}"))
        'ababab'
        """
        from formalm.languages.automaton_comparison import difference

        return difference(self, other, relation, unit, state_limit)

    def may_have_parts(self) -> bool:
        """True if it may contain other languages or marks, rather than plain values only."""
        return any(
            type(one) not in PLAIN
            or (type(one) is tuple and any(type(inner) not in ATOMS for inner in one))
            for one in self._arguments
        )

    def special_tokens_written(self) -> Sequence[str]:
        """Names of special tokens in its own text, without those of its parts."""
        return ()

    def parts(self) -> PartialJson | None:
        """Returns a new reader of unfinished texts; None if they have no parts."""

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._arguments == other._arguments

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash((type(self).__name__, self._arguments))
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self._arguments))})"

    def __bool__(self) -> bool:
        raise LanguageError(
            "a language has no truth value: bool(language) is not defined",
            hint="call language.matches(text), or language.is_empty()",
        )
