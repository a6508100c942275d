"""Mixin of :class:`~formalm.Language` for operators, repetition, edits, rewriting and reversal."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from formalm.languages.edits import Edited, Operation, Region
    from formalm.languages.language import Language
    from formalm.languages.rewrites import Reversed, Rewritten

__all__ = ["OperatorsMixin"]


class OperatorsMixin:
    """The methods of :class:`~formalm.Language` that create other languages from it."""

    __slots__ = ()

    @property
    def is_regular(self) -> bool:
        """True if the language consists of patterns and strings only.

        Regular languages support every operation. Grammars and schemas support ``|``, ``+`` and
        ``*`` with any of these, and ``&`` and ``-`` with a regular language on the right. A
        :class:`~formalm.Parser` supports none.
        """
        return True

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
                f"a repetition must be a count or a pair of counts, got {count!r}",
                hint="write lang * 3, lang * (2, 5) or lang * (2, None)",
            )
        return self.repeat(*bounds)

    __rmul__ = __mul__

    def repeat(self, minimum: int, maximum: int | None = None) -> Language:
        """Returns ``minimum`` to ``maximum`` members in a row; None means no maximum."""
        from formalm.languages.algebra import Repetition

        return Repetition(_language(self), minimum, maximum)

    def star(self) -> Language:
        """Returns any number of members in a row, including none."""
        return self.repeat(0)

    def plus(self) -> Language:
        """Returns one or more members in a row."""
        return self.repeat(1)

    def optional(self) -> Language:
        """Returns the language with the empty string added."""
        return self.repeat(0, 1)

    def edits(
        self,
        count: int,
        *,
        alphabet: object = None,
        operations: Iterable[Operation] = ("insert", "delete", "substitute"),
        region: Region | str | None = None,
    ) -> Edited:
        """Returns the strings within ``count`` edits of a member.

        The distance is Levenshtein's, counted in characters.

        Nothing is expanded: a state is built when an input first reaches it.

        Parameters
        ----------
        count
            Maximum number of edits, at most 100. Members themselves are included.
        alphabet
            The characters that edits may insert or substitute: a str of them, or a class such as
            ``Regex("[ -~]")``. None is every character.
        operations
            The edits allowed: any of ``"insert"``, ``"delete"``, ``"substitute"``.
        region
            The part of a member that may be edited. Either a :class:`~formalm.languages.Region`, or
            the name of a group of this pattern, at any position where some match puts it. A group
            that is repeated, or that belongs to a pattern with lookaround or atomic groups, is
            refused. None is everywhere. Members without the region stay unchanged.

        Returns
        -------
        Edited
            Its :meth:`~formalm.languages.Edited.script` returns the edits that a string needs.

        Raises
        ------
        LanguageError
            If a member may not be UTF-8, or the region does not belong to this language.
        LimitError
            For more than 100 edits.

        Examples
        --------
        >>> from formalm import StringLiteral
        >>> near = StringLiteral("receive").edits(2)
        >>> near.matches("recieve"), near.matches("received it")
        (True, False)
        >>> near.script("recieve").count
        2
        """
        from formalm.languages.edits import Edited

        return Edited(_language(self), count, alphabet, operations, region)

    def rewrite(self, rules: Mapping[str, object], *, optional: bool = False) -> Rewritten:
        """Returns the members with occurrences of some strings replaced.

        Parameters
        ----------
        rules
            Maps each string to its replacement: a string, several strings, or a language. The empty
            string as replacement deletes. :mod:`formalm.languages.spelling_variants` has ready-made
            rules.
        optional
            False: every occurrence is replaced, from left to right, the longest first at each
            position. True: any set of occurrences that do not overlap, or none.

        Raises
        ------
        LanguageError
            If the string to replace is empty.

        Examples
        --------
        >>> from formalm import StringLiteral
        >>> text = StringLiteral("a big dog")
        >>> text.rewrite({"big": ["large", "huge"]}).matches("a huge dog")
        True
        >>> text.rewrite({"big": ["large", "huge"]}).matches("a big dog")
        False
        """
        from formalm.languages.rewrites import Rewritten

        return Rewritten(_language(self), rules, optional)

    def reverse(self) -> Reversed:
        """Returns the members read from right to left, character by character.

        Groups are those of the reversed pattern, whose preferences apply from its own left to
        right. They capture pieces of the reversed string. For an ambiguous pattern, they need not
        be the mirror image of the original captures.

        Raises
        ------
        LanguageError
            For constructs that read in one direction only: atomic groups, possessive quantifiers,
            and mandatory rewriting of strings that may overlap.

        Examples
        --------
        >>> from formalm import Regex
        >>> Regex("[a-z]+ing").reverse().matches("gnikool")
        True
        """
        from formalm.languages.rewrites import Reversed

        return Reversed(_language(self))


def _language(part: OperatorsMixin) -> Language:
    """Casts to ``Language``: no other class uses this mixin."""
    return cast("Language", part)


def _combine(operator: str, *operands: object) -> Language:
    from formalm.languages.algebra import combine

    return combine(operator, *operands)
