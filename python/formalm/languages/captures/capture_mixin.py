"""Mixin of :class:`~formalm.Language` for groups, captures and values of members."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formalm import _core
from formalm.automata.text_of_bytes import not_a_member, shown_text, text_bytes
from formalm.errors import ArgumentError, LanguageError
from formalm.languages.captures.groups import (
    STEP_LIMIT,
    Captures,
    CaptureSpans,
    Group,
    captures_at,
    found_by,
)
from formalm.languages.membership_mixin import MembershipMixin
from formalm.languages.operator_mixin import OperatorsMixin

__all__ = ["CapturesMixin"]


class CapturesMixin(MembershipMixin, OperatorsMixin):
    """The methods of :class:`~formalm.Language` that split members into groups."""

    __slots__ = ("_grouping",)

    _grouping: _core.Grouping | None

    if TYPE_CHECKING:

        def expression(self) -> _core.Expression: ...  # noqa: D102

    @property
    def groups(self) -> tuple[Group, ...]:
        """The groups of all its patterns and grammars, in the order written and numbered from 1.

        Patterns that are subtracted, complemented, edited or rewritten contribute no groups,
        because they do not match members. A grammar contributes its captures; schemas and parsers
        have no groups.
        """
        if not self.is_regular:
            return ()
        groups = self.expression().groups
        return tuple(Group(number, *group) for number, group in enumerate(groups, start=1))

    def captures(self, text: str | bytes, *, step_limit: int = STEP_LIMIT) -> Captures | None:
        """Returns the captures of the groups in a member; None if ``text`` is not a member.

        A pattern captures what the engine of its dialect reports for a match of the whole string,
        for Python's dialect :func:`re.fullmatch`. A combination splits the string first, and each
        part sees only its own piece:

        - A union has the groups of its first operand that contains the string.
        - In a concatenation, from left to right, each part takes as much as it can, whatever it
          prefers inside.
        - The members of a repetition do the same; the groups are those of the last one.
        - An intersection has the groups of all operands, a difference those of its left operand.

        A grammar captures by its parse tree, see :meth:`formalm.Grammar.captures`.

        Parameters
        ----------
        text
            A string, or UTF-8 bytes.
        step_limit
            Maximum number of steps. A step is an instruction of a pattern or a byte read by a
            machine. Each part combined with a grammar or a schema has a budget of the same size.

        Raises
        ------
        LimitError
            If more steps or memory are needed. The time is linear for most languages; lookahead to
            the end at every character makes it quadratic.
        LanguageError
            If the language is empty, or captures nothing (schemas and parsers).

        Examples
        --------
        >>> from formalm import StringLiteral, Regex
        >>> price = Regex("(?P<whole>[0-9]+)") + StringLiteral(".") + Regex("(?P<cents>[0-9]{2})")
        >>> price.captures("12.50").groupdict()
        {'whole': '12', 'cents': '50'}
        """
        if type(step_limit) is not int or not 1 <= step_limit < 1 << 63:
            raise ArgumentError(f"step_limit must be a positive integer, got {step_limit!r}")
        data = text_bytes(text)
        if data is None:
            return None
        found = self.captured_in(data, step_limit)
        return None if found is None else captures_at(text, data, self.groups, found)

    def captured_in(self, data: bytes, step_limit: int) -> CaptureSpans | None:
        """Returns the captures in a string; None if it is not a member."""
        if not self.is_regular:
            raise LanguageError(
                f"captures need a pattern or a grammar, got {type(self).__name__}",
                hint="value(text) parses a member of a schema; matches(text) tests membership",
            )
        if self._grouping is None:
            self._grouping = _core.Grouping(self.expression(), self.automaton())
        return found_by(self._grouping, self.groups, data, step_limit)

    def value(self, text: str | bytes) -> object:
        """Returns the value of a member: its named groups as a dictionary, or the string itself.

        The dictionary is that of :meth:`captures`, with None for groups that did not participate. A
        language without named groups returns the string.

        Raises
        ------
        TokenError
            If ``text`` is not a member.

        Examples
        --------
        >>> from formalm import Regex
        >>> Regex("(?P<hours>[0-9]+):(?P<minutes>[0-9]{2})").value("9:30")
        {'hours': '9', 'minutes': '30'}
        """
        is_named = any(group.name is not None for group in self.groups)
        found = self.captures(text) if is_named else None
        if not is_named and self.matches(text):
            return text if isinstance(text, str) else shown_text(text)
        if found is None:
            raise not_a_member()
        return found.groupdict()
