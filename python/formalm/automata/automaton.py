"""A regular language written out: states and edges over bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.automata.numbering import MEMORY_LIMIT_BYTES as LIMIT_BYTES
from formalm.automata.numbering import Numbering
from formalm.automata.people import byte_labels, edges_for_people
from formalm.automata.texts import (
    Relation,
    Unit,
    as_text,
    checked_integer,
    counts_characters,
    is_inclusion,
    text_bytes,
)
from formalm.automata.view import View
from formalm.errors import ArgumentError

__all__ = ["PAIR_LIMIT", "Automaton"]

PAIR_LIMIT = 1_000_000
"""Pairs of states that a comparison may look at unless the caller says otherwise."""


class Automaton(View):
    r"""The minimal deterministic automaton of a language, over bytes, without a dead state.

    Made by :meth:`Language.to_automaton`. States are numbered breadth first from 0, the start,
    bytes ascending, so that equal languages have the very same automaton: ``==`` and ``hash`` say
    whether two *languages* are equal, however they were written. Immutable, picklable, shared
    freely between threads.

    Members are handed out as ``str``; one that is not UTF-8 (only :class:`StringLiteral` of bytes
    makes such) as ``bytes``. Lengths count characters, and members come by length and then in order
    of code points, which is that of their bytes. ``unit="bytes"`` counts bytes instead; it is the
    only unit for languages with members that are not UTF-8, for which the other is a
    :class:`LanguageError`. Iterating goes through all members in this order, lazily; ``in`` asks
    for membership, and ``len`` is the number of *states*.

    Counts are exact integers of any size. What takes memory has the keyword
    ``memory_limit_bytes``, 256 MiB unless you say otherwise; more than that is a
    :class:`LimitError`. Long work can be interrupted by Ctrl-C.

    Examples
    --------
    >>> import re
    >>> from formalm import Regex
    >>> automaton = Regex(r"([0-9]+)?\.[0-9]+").to_automaton()
    >>> automaton.state_count, sorted(automaton.accepting), automaton.edges().tolist()
    (3, [2], [[0, 46, 46, 1], [0, 48, 57, 0], [1, 48, 57, 2], [2, 48, 57, 2]])
    >>> automaton == Regex(r"\d*\.\d+", re.ASCII).to_automaton()
    True
    >>> automaton.counts(4), automaton.nth(10), automaton.rank(".00")
    ([0, 0, 10, 200, 3000], '.00', 10)
    """

    __slots__ = ()

    @property
    def edge_count(self) -> int:
        """Number of edges; a range of bytes with one target is one edge."""
        return self.core.range_count

    def edges(self) -> npt.NDArray[np.uint32]:
        """All edges, by source and then by byte.

        Returns
        -------
        numpy.ndarray
            uint32, shape ``(edge_count, 4)``: source, first byte, last byte, target.
        """
        return self.core.ranges()

    def step(self, state: int, byte: int) -> int | None:
        """The state after ``byte``; None if no member goes on so."""
        if checked_integer("state", state) >= self.state_count:
            raise ArgumentError(
                f"state must be below the number of states ({self.state_count}), got {state}"
            )
        if checked_integer("byte", byte) > 255:
            raise ArgumentError(f"byte must be from 0 to 255, got {byte}")
        return self.core.after(state, byte)

    def matches(self, text: str | bytes) -> bool:
        """Whether the whole of ``text`` is a member."""
        data = text_bytes(text)
        return data is not None and self.core.accepts(data)

    def shortest(self, *, unit: Unit = "characters") -> str | bytes | None:
        """The shortest, then smallest, member; None if there is none."""
        found = self.core.shortest(counts_characters(unit))
        return None if found is None else as_text(found)

    def count(
        self,
        length: int | None = None,
        *,
        max_length: int | None = None,
        unit: Unit = "characters",
        memory_limit_bytes: int = LIMIT_BYTES,
    ) -> int:
        """How many members there are: of a length, of at most a length, or altogether.

        Raises
        ------
        ArgumentError
            If there are infinitely many and neither bound is given.
        LanguageError
            If characters are counted and some member is not UTF-8.
        LimitError
            If the counts need more memory.
        """
        return self._numbering(unit, memory_limit_bytes).count(length, max_length)

    def counts(
        self, max_length: int, *, unit: Unit = "characters", memory_limit_bytes: int = LIMIT_BYTES
    ) -> list[int]:
        """How many members there are of each length, from 0 to ``max_length``."""
        return self._numbering(unit, memory_limit_bytes).counts(max_length)

    def nth(
        self, index: int, *, unit: Unit = "characters", memory_limit_bytes: int = LIMIT_BYTES
    ) -> str | bytes:
        """The member with number ``index``, from 0, by length and then from the smallest.

        Raises
        ------
        ArgumentError
            If there are not so many members.
        """
        return as_text(self._numbering(unit, memory_limit_bytes).nth(index))

    def rank(
        self, text: str | bytes, *, unit: Unit = "characters", memory_limit_bytes: int = LIMIT_BYTES
    ) -> int:
        """The number of a member: ``nth(rank(text)) == text``.

        Raises
        ------
        ArgumentError
            If ``text`` is not a member.
        """
        data = text_bytes(text)
        numbering = self._numbering(unit, memory_limit_bytes)
        if data is None or not self.core.accepts(data):
            raise ArgumentError(f"{text!r} is not a member, so it has no rank")
        # A member that is not UTF-8 has a length in bytes only; the core refuses the other.
        length = len(data.decode(errors="replace")) if numbering.characters else len(data)
        return numbering.rank(data, length)

    def enumerate(
        self,
        *,
        length: int | None = None,
        max_length: int | None = None,
        unit: Unit = "characters",
        memory_limit_bytes: int = LIMIT_BYTES,
    ) -> Iterator[str | bytes]:
        """Members by length and then from the smallest, lazily: all, or those of some lengths."""
        numbering = self._numbering(unit, memory_limit_bytes)
        return map(as_text, numbering.members(length, max_length))

    def sample(
        self,
        n: int,
        *,
        seed: int | None = None,
        length: int | None = None,
        max_length: int | None = None,
        unit: Unit = "characters",
        memory_limit_bytes: int = LIMIT_BYTES,
    ) -> list[str | bytes]:
        """``n`` members, independent and uniform: each member is exactly as likely as any other.

        Parameters
        ----------
        n
            How many; a member may come more than once.
        seed
            Equal seeds give equal samples, and the first three of ten are the same as three; None
            draws differently each time.
        length, max_length
            The members to draw from: of one length, or of at most a length. An infinite language
            needs one of them.

        Raises
        ------
        ArgumentError
            If there are infinitely many members to draw from, or none.

        Examples
        --------
        >>> from formalm import Regex
        >>> automaton = Regex("a|b{1,3}").to_automaton()
        >>> draws = automaton.sample(4000, seed=1)
        >>> all(0.22 < draws.count(text) / 4000 < 0.28 for text in automaton)
        True
        """
        numbering = self._numbering(unit, memory_limit_bytes)
        return [as_text(member) for member in numbering.sample(n, seed, length, max_length)]

    def equivalent(self, other: Automaton) -> bool:
        """Whether both have the same members; the same as ``==``."""
        return self.core == _checked(other).core

    def is_subset(self, other: Automaton, *, state_limit: int = PAIR_LIMIT) -> bool:
        """Whether every member is a member of ``other``."""
        limit = checked_integer("state_limit", state_limit, least=1)
        graph = _checked(other).core
        found = self.core.difference(graph, inclusion=True, characters=False, pair_limit=limit)
        return found is None

    def witness(
        self,
        other: Automaton,
        relation: Relation = "equivalence",
        *,
        unit: Unit = "characters",
        state_limit: int = PAIR_LIMIT,
    ) -> str | bytes | None:
        """The shortest, then smallest, text that refutes a relation; None if it holds.

        Parameters
        ----------
        relation
            ``"equivalence"``: a text in exactly one of the two. ``"inclusion"``: a text in this
            one and not in ``other``.
        unit, state_limit
            What a length counts, and the most pairs of states to look at.

        Examples
        --------
        >>> from formalm import Regex
        >>> words, names = Regex("[a-z]+").to_automaton(), Regex("[a-z_]{1,3}").to_automaton()
        >>> names.witness(words), words.witness(names, "inclusion"), words.is_subset(names)
        ('_', 'aaaa', False)
        """
        limit = checked_integer("state_limit", state_limit, least=1)
        found = self.core.difference(
            _checked(other).core,
            inclusion=is_inclusion(relation),
            characters=counts_characters(unit),
            pair_limit=limit,
        )
        return None if found is None else as_text(found)

    def to_bytes(self) -> bytes:
        """The automaton in a compact form of its own, which :meth:`from_bytes` reads."""
        return self.core.save()

    @classmethod
    def from_bytes(cls, data: bytes) -> Automaton:
        """Read what :meth:`to_bytes` wrote; everything is checked, nothing executed.

        Raises
        ------
        ArgumentError
            If ``data`` is anything else.
        """
        if not isinstance(data, bytes):
            raise ArgumentError(
                f"data must be the bytes of a saved automaton, got {type(data).__name__}"
            )
        return cls(_core.Graph.load(data))

    def _edges_for_people(self) -> Iterator[tuple[int, str, int]]:
        return edges_for_people(self.core.ranges(), byte_labels)

    def _numbering(self, unit: Unit, memory_limit_bytes: int) -> Numbering:
        names = ("length", "max_length")
        return Numbering(self.core, counts_characters(unit), names, memory_limit_bytes)

    def __iter__(self) -> Iterator[str | bytes]:
        return self.enumerate()

    def __contains__(self, text: str | bytes) -> bool:
        return self.matches(text)

    def __eq__(self, other: object) -> bool:
        return self.core == other.core if isinstance(other, Automaton) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.core)

    def __reduce__(self) -> tuple[object, ...]:
        return Automaton.from_bytes, (self.to_bytes(),)


def _checked(other: object) -> Automaton:
    if not isinstance(other, Automaton):
        raise ArgumentError(
            f"other must be an Automaton, got {type(other).__name__}",
            hint="write language.to_automaton(), or compare the languages themselves",
        )
    return other
