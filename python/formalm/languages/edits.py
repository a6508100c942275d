"""Edit neighborhoods: the strings within a Levenshtein distance of a language, and edit scripts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

from formalm import _core
from formalm.errors import ArgumentError, LanguageError, LimitError
from formalm.languages.algebra import as_language
from formalm.languages.choice import Choice
from formalm.languages.language import Language, text_bytes

__all__ = ["Edit", "EditScript", "Edited", "Region"]

MAX_EDITS = 100
Operation = Literal["insert", "delete", "substitute"]
OPERATIONS: tuple[Operation, ...] = get_args(Operation)


@dataclass(frozen=True)
class Region:
    """The part of a member where edits are allowed, given by its unchanged context.

    Attributes
    ----------
    after
        The unchanged beginning of the string, before the first edit; None for nothing.
    before
        The unchanged end of the string, after the last edit; None for nothing.

    Examples
    --------
    >>> from formalm import Regex
    >>> near = Regex("to be or not to be").edits(1, region=Region(after=Regex("to be or ")))
    >>> near.matches("to be or nut to be"), near.matches("go be or not to be")
    (True, False)
    """

    after: Language | None = None
    before: Language | None = None

    def __post_init__(self) -> None:
        for side in ("after", "before"):
            value = getattr(self, side)
            if value is not None:
                object.__setattr__(self, side, as_language(value))


class Edit(NamedTuple):
    """A single edit.

    Attributes
    ----------
    operation
        ``"insert"``, ``"delete"`` or ``"substitute"``.
    member_index, text_index
        The index of the character in the member and in the text.
    old, new
        The character in the member and in the text; ``old`` is empty for an insertion, ``new`` for
        a deletion.
    """

    operation: str
    member_index: int
    text_index: int
    old: str
    new: str


@dataclass(frozen=True)
class EditScript:
    """A minimal sequence of edits from some member to a text.

    Attributes
    ----------
    member
        A nearest member.
    text
        The text.
    edits
        The edits, from left to right.
    """

    member: str
    text: str
    edits: tuple[Edit, ...]

    @property
    def count(self) -> int:
        """The number of edits, which is the distance of the text from the language."""
        return len(self.edits)


class Edited(Language):
    """The strings within some edits of a member. Created by :meth:`Language.edits`."""

    __slots__ = ()

    def __init__(
        self,
        language: Language,
        count: int,
        alphabet: object = None,
        operations: Iterable[Operation] = OPERATIONS,
        region: Region | str | None = None,
    ) -> None:
        if type(count) is not int or count < 0:
            raise ArgumentError(f"count of edits must be a non-negative integer, got {count!r}")
        if region is not None and not isinstance(region, (Region, str)):
            raise ArgumentError(
                f"region must be a Region or the name of a group, got {region!r:.80}",
                hint="Region(after=..., before=...) names what stays unchanged",
            )
        if count > MAX_EDITS:
            raise LimitError("edits", count, MAX_EDITS)
        if isinstance(region, str) and text_bytes(region) is None:
            raise LanguageError(
                f"region must be the name of a group of the pattern, got {region!r}"
            )
        super().__init__(language, count, _alphabet(alphabet), _operations(operations), region)
        self.expression()

    @property
    def language(self) -> Language:
        """The language whose members are edited."""
        (language, *_) = self._arguments
        assert isinstance(language, Language)
        return language

    @property
    def count(self) -> int:
        """The maximum number of edits."""
        count = self._arguments[1]
        assert isinstance(count, int)
        return count

    def script(self, text: str) -> EditScript | None:
        """Returns a minimal edit script to ``text``; None if the allowed edits do not suffice.

        Of several minimal scripts, it always returns the same one. If the edited language is itself
        made of edits, only the edits of this one are counted.

        Raises
        ------
        LimitError
            If the search takes too many steps.

        Examples
        --------
        >>> from formalm import Choice
        >>> script = Choice(["kitten", "mitten"]).edits(3).script("sitting")
        >>> script.count, script.member, [edit.operation for edit in script.edits]
        (3, 'kitten', ['substitute', 'substitute', 'insert'])
        """
        if not isinstance(text, str):
            raise ArgumentError(f"text must be str, got {type(text).__name__}")
        try:
            pairs = self.expression().edit_script(text)
        except UnicodeEncodeError:
            return None
        if pairs is None:
            return None
        edits = []
        member = ""
        at = 0
        for old, new in pairs:
            if old != new:
                kind = "insert" if old is None else "delete" if new is None else "substitute"
                edits.append(Edit(kind, len(member), at, old or "", new or ""))
            member += old or ""
            at += new is not None
        return EditScript(member, text, tuple(edits))

    def _build(self) -> _core.Expression:
        language, count, alphabet, operations, region = self._arguments
        assert isinstance(language, Language)
        assert isinstance(count, int)
        assert isinstance(operations, tuple)
        sides = region if isinstance(region, Region) else Region()
        return language.expression().edits(
            count,
            alphabet.expression() if isinstance(alphabet, Language) else None,
            after=None if sides.after is None else sides.after.expression(),
            before=None if sides.before is None else sides.before.expression(),
            group=region if isinstance(region, str) else None,
            **{operation: operation in operations for operation in OPERATIONS},
        )

    def __repr__(self) -> str:
        language, count, alphabet, operations, region = self._arguments
        parts = [repr(count)]
        if alphabet is not None:
            parts.append(f"alphabet={alphabet!r}")
        if operations != OPERATIONS:
            parts.append(f"operations={operations!r}")
        if region is not None:
            parts.append(f"region={region!r}")
        return f"{language!r}.edits({', '.join(parts)})"


def _alphabet(alphabet: object) -> Language | None:
    if alphabet is None or isinstance(alphabet, Language):
        return alphabet
    if not isinstance(alphabet, str):
        kind = type(alphabet).__name__
        raise ArgumentError(f"alphabet must be a str of characters or Regex of a class, got {kind}")
    if not alphabet:
        raise LanguageError(
            "alphabet must have at least one character, got none", hint="operations=('delete',)"
        )
    return Choice(sorted(set(alphabet)))


def _operations(operations: Iterable[str]) -> tuple[str, ...]:
    try:
        named = (operations,) if isinstance(operations, str) else tuple(operations)
    except TypeError:
        raise ArgumentError(f"operations must be a list of names, got {operations!r:.80}") from None
    for operation in named:
        if operation not in OPERATIONS:
            raise ArgumentError(
                f"operations must be 'insert', 'delete' or 'substitute', got {operation!r}"
            )
    return tuple(operation for operation in OPERATIONS if operation in named)
