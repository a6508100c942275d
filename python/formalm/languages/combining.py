"""How languages are made of a language: operators, repetition, edits, rewriting, reversal."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from formalm.languages.edits import Edited, Operation, Region
    from formalm.languages.language import Language
    from formalm.languages.rewrites import Reversed, Rewritten

__all__ = ["Combining"]


class Combining:
    """The part of :class:`~formalm.Language` that makes other languages of it."""

    __slots__ = ()

    @property
    def is_regular(self) -> bool:
        """Whether the language is made of patterns and texts only.

        Regular languages go into every operation; grammars and schemas into ``|``, ``+`` and ``*``
        with any of these, and into ``&`` and ``-`` with a regular one on the right; a
        :class:`~formalm.Parser` into none.
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
        """Between ``minimum`` and ``maximum`` members in a row; None is without end."""
        from formalm.languages.algebra import Repetition

        return Repetition(_language(self), minimum, maximum)

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
        operations: Iterable[Operation] = ("insert", "delete", "substitute"),
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
            Where: a :class:`~formalm.languages.Region`, or the name of a group of this pattern,
            wherever some way of matching puts it; a group that is repeated, or of a pattern with
            look-around or atomic groups, is refused. None is everywhere. Members in which the
            region does not occur stay as they are.

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
        """Members read from right to left, character by character.

        Groups are those of the reversed pattern, which prefers from its own left to right: they
        capture pieces of the reversed text, and where a pattern leaves a choice, not always the
        mirrored ones.

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

        return Reversed(_language(self))


def _language(part: Combining) -> Language:
    """Nothing else has this part."""
    return cast("Language", part)


def _combine(operator: str, *operands: object) -> Language:
    from formalm.languages.algebra import combine

    return combine(operator, *operands)
