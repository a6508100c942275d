"""What every language can do: be asked, be combined, be compared, be pickled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from formalm import _core
from formalm.errors import ArgumentError, LanguageError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from formalm.languages.edits import Edited, Region
    from formalm.languages.rewrites import Reversed, Rewritten

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

    def _described(self) -> _core.Expression | _core.Grammar:
        """What the core makes the machine of."""
        return self.expression()

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
            machine = _core.Automaton(self._described(), **options)
            self._automata[state_limit] = machine
        return machine

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

    def edits(
        self,
        count: int,
        *,
        alphabet: object = None,
        operations: Iterable[str] = ("insert", "delete", "substitute"),
        region: Region | str | None = None,
    ) -> Edited:
        """Texts within ``count`` edits of a member: Levenshtein's distance, over characters.

        Nothing is expanded: a state is built when a text first reaches it.

        Parameters
        ----------
        count
            At most so many edits, 100 at most; members themselves are included.
        alphabet
            The characters that may be inserted or put in the place of others: a str of them, or a
            class such as ``Regex("[ -~]")``. None is every character.
        operations
            Which edits: of ``"insert"``, ``"delete"``, ``"substitute"``.
        region
            Where: a :class:`~formalm.languages.Region`, or the name of a group of this pattern.
            None is everywhere. Members in which the region does not occur stay as they are.

        Returns
        -------
        Edited
            Its :meth:`~formalm.languages.Edited.script` tells how many edits a text needs.

        Raises
        ------
        LanguageError
            If a member may not be UTF-8, or the region is none of this language.
        LimitError
            For more than 100 edits.

        Examples
        --------
        >>> from formalm import Literal
        >>> near = Literal("receive").edits(2)
        >>> near.matches("recieve"), near.matches("received it")
        (True, False)
        >>> near.script("recieve").count
        2
        """
        from formalm.languages.edits import Edited

        return Edited(self, count, alphabet, operations, region)

    def rewrite(self, rules: Mapping[str, object], *, optional: bool = False) -> Rewritten:
        """Members with occurrences of some texts replaced.

        Parameters
        ----------
        rules
            From a text to what stands in its place: a text, several, or a language. The empty
            text leaves it out. :mod:`formalm.languages.variants` has ready ones.
        optional
            False: every occurrence is replaced, from left to right, at each place the longest.
            True: any of the occurrences that do not overlap, or none.

        Raises
        ------
        LanguageError
            For the empty text as a source.

        Examples
        --------
        >>> from formalm import Literal
        >>> text = Literal("a big dog")
        >>> text.rewrite({"big": ["large", "huge"]}).matches("a huge dog")
        True
        >>> text.rewrite({"big": ["large", "huge"]}).matches("a big dog")
        False
        """
        from formalm.languages.rewrites import Rewritten

        return Rewritten(self, rules, optional)

    def reverse(self) -> Reversed:
        """Members read from right to left, character by character.

        Raises
        ------
        LanguageError
            For what reads in one direction only: atomic groups, possessive quantifiers, and
            obligatory rewriting of texts that may overlap.

        Examples
        --------
        >>> from formalm import Regex
        >>> Regex("[a-z]+ing").reverse().matches("gnikool")
        True
        """
        from formalm.languages.rewrites import Reversed

        return Reversed(self)

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


def text_bytes(text: str | bytes) -> bytes | None:
    """UTF-8 bytes of a text; None if it has none, as a lone surrogate does not."""
    if isinstance(text, bytes):
        return text
    if not isinstance(text, str):
        raise ArgumentError(f"a text is str or bytes, not {type(text).__name__}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        return None


def _combine(operator: str, *operands: object) -> Language:
    from formalm.languages.algebra import combine

    return combine(operator, *operands)
