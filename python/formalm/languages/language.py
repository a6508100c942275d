"""What every language can do: be asked, be combined, be compared, be pickled."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from formalm import _core
from formalm.errors import ArgumentError, LanguageError, LimitError, TokenError
from formalm.languages.captures import STEP_LIMIT, Captures, Group, captures_of

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from formalm.languages.edits import Edited, Region
    from formalm.languages.rewrites import Reversed, Rewritten

__all__ = ["Language", "text_bytes"]

# What the core allows as well. Refused where it is written, before anything has to recurse.
MAX_DEPTH = 200


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

    __slots__ = ("_arguments", "_automata", "_depth", "_expression", "_grouping", "_hash")

    def __init__(self, *arguments: Hashable) -> None:
        depths: list[int] = [part._depth for part in arguments if isinstance(part, Language)]
        self._depth: int = 1 + max(depths, default=0)
        if self._depth > MAX_DEPTH:
            hint = "sums and unions of many languages are no nesting: a | b | c is one level"
            raise LimitError("levels of nesting", self._depth, MAX_DEPTH, hint=hint)
        self._arguments = arguments
        # Kept, because parts may be shared: each would be hashed anew for every use.
        self._hash = hash((type(self).__name__, arguments))
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

    def _described(self) -> _core.Expression | _core.Grammar | _core.JsonSchema:
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

    @property
    def groups(self) -> tuple[Group, ...]:
        """The capture groups of all its patterns, in the order written and numbered from 1.

        Patterns that are subtracted, complemented, edited or rewritten have none: no member
        matches them.
        """
        groups = self.expression().groups
        return tuple(Group(number, *group) for number, group in enumerate(groups, start=1))

    def captures(self, text: str | bytes, *, step_limit: int = STEP_LIMIT) -> Captures | None:
        """What the groups capture in a member; None if ``text`` is not a member.

        In a pattern it is what the dialect's own engine reports when the pattern matches the whole
        text, which is ``re.fullmatch`` for Python's. Combinations divide the text first, and each
        part sees its own piece only:

        - a union shows the groups of its first operand that has the text;
        - in a concatenation each part in turn takes as much as it can, whatever it prefers inside;
        - so do the members of a repetition, of which the last one shows its groups;
        - an intersection shows the groups of all its operands, a difference those on its left.

        Parameters
        ----------
        text
            A text, or UTF-8 bytes.
        step_limit
            Most steps to take; a step is an instruction of a pattern or a byte read by a machine.

        Raises
        ------
        LimitError
            If more steps or memory are needed. The effort is proportional to the text for most
            languages; look-ahead to the far end at every character makes it quadratic.
        LanguageError
            If the language is empty.

        Examples
        --------
        >>> from formalm import Literal, Regex
        >>> price = Regex("(?P<whole>[0-9]+)") + Literal(".") + Regex("(?P<cents>[0-9]{2})")
        >>> price.captures("12.50").groupdict()
        {'whole': '12', 'cents': '50'}
        """
        if type(step_limit) is not int or not 1 <= step_limit < 1 << 63:
            raise ArgumentError(f"step_limit must be a positive integer, not {step_limit!r}")
        data = text_bytes(text)
        if data is None:
            return None
        if self._grouping is None:
            self._grouping = _core.Grouping(self.expression(), self.automaton())
        return captures_of(text, data, self.groups, self._grouping, step_limit)

    def value(self, text: str | bytes) -> object:
        """What a member stands for: its named groups as a dictionary, or the text itself.

        The dictionary is that of :meth:`captures`, with None for groups that took no part; a
        language without named groups returns the text.

        Raises
        ------
        TokenError
            If there are named groups and ``text`` is not a member.

        Examples
        --------
        >>> from formalm import Regex
        >>> Regex("(?P<hours>[0-9]+):(?P<minutes>[0-9]{2})").value("9:30")
        {'hours': '9', 'minutes': '30'}
        """
        if all(group.name is None for group in self.groups):
            return text if isinstance(text, str) else text.decode(errors="replace")
        found = self.captures(text)
        if found is None:
            raise TokenError(
                "a text that is not a member stands for nothing", hint="ask matches(text) first"
            )
        return found.groupdict()

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

        Groups of a pattern are kept; they capture pieces of the reversed text.

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
