"""The :class:`Automaton` class: the minimal deterministic automaton of a language, over bytes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.argument_checks import Relation, Unit, checked_integer, counts_characters, is_inclusion
from formalm.automata.automaton_base import AutomatonBase
from formalm.automata.edge_labels import Ranges, byte_labels, edges_for_people
from formalm.automata.ranking import MEMORY_LIMIT_BYTES as LIMIT_BYTES
from formalm.automata.ranking import MemberRanking
from formalm.automata.text_of_bytes import as_text, text_bytes
from formalm.automata.trace import Trace
from formalm.errors import ArgumentError

__all__ = ["PAIR_LIMIT", "Automaton"]

PAIR_LIMIT = 1_000_000
"""Pairs of states that a comparison may look at unless the caller says otherwise."""


class Automaton(AutomatonBase):
    r"""The minimal deterministic automaton of a language, over bytes, without a dead state.

    Created by :meth:`Language.to_automaton`. States are numbered breadth first from 0, the start,
    with bytes ascending, so equal languages have identical automata: ``==`` and ``hash`` compare
    *languages*, however they were written. Immutable, picklable, shared freely between threads.

    Members are ``str``, or ``bytes`` if they are not UTF-8 (only possible with
    :class:`StringLiteral` of bytes). Lengths count characters, and members are ordered by length,
    then by code points, which is also the order of their bytes. ``unit="bytes"`` counts bytes
    instead. It is required for languages with members that are not UTF-8; the default unit then
    raises a :class:`LanguageError`. Iteration lists all members in this order, lazily. ``in`` tests
    membership, and ``len`` is the number of *states*.

    Counts are exact integers of any size. Methods that need memory take ``memory_limit_bytes``, 256
    MiB by default, and raise a :class:`LimitError` beyond it. Ctrl-C interrupts long computations.

    Examples
    --------
    >>> import re
    >>> from formalm import Regex
    >>> automaton = Regex(r"([0-9]+)?\.[0-9]+").to_automaton()
    >>> automaton.state_count, sorted(automaton.accepting), automaton.edges().tolist()
    (3, [2], [[0, 46, 46, 1], [0, 48, 57, 0], [1, 48, 57, 2], [2, 48, 57, 2]])
    >>> print(automaton)
      state  final?  .  0-9  anything_else
    --------------------------------------
    * 0      False   1  0
      1      False      2
      2      True       2
    >>> automaton.finals, automaton.map
    (frozenset({2}), {0: {0: 1, 1: 0}, 1: {1: 2}, 2: {1: 2}})
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
        """Returns all edges, sorted by source, then by byte.

        Returns
        -------
        numpy.ndarray
            uint32, shape ``(edge_count, 4)``: source, first byte, last byte, target.
        """
        return self.core.ranges()

    def step(self, state: int, byte: int) -> int | None:
        """Returns the state after ``byte``; None if no member continues this way."""
        if checked_integer("state", state) >= self.state_count:
            raise ArgumentError(
                f"state must be below the number of states ({self.state_count}), got {state}"
            )
        if checked_integer("byte", byte) > 255:
            raise ArgumentError(f"byte must be from 0 to 255, got {byte}")
        return self.core.after(state, byte)

    def trace(self, text: str | bytes) -> Trace:
        """Returns the steps in which the automaton reads ``text``, for pictures of each.

        A character beyond ASCII is several bytes, hence several steps.

        Raises
        ------
        ArgumentError
            For a string with a lone surrogate, which has no bytes.
        """
        data = text_bytes(text)
        if data is None:
            raise ArgumentError(f"text must have UTF-8 bytes, got {text!r:.40}")
        return self._trace(data)

    def matches(self, text: str | bytes) -> bool:
        """Returns whether the whole of ``text`` is a member."""
        data = text_bytes(text)
        return data is not None and self.core.accepts(data)

    def shortest(self, *, unit: Unit = "characters") -> str | bytes | None:
        """Returns the shortest, then smallest, member; None if there is none."""
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
        """Returns the number of members: of one length, of at most a length, or in total.

        Raises
        ------
        ArgumentError
            If there are infinitely many and no bound is given.
        LanguageError
            If characters are counted and some member is not UTF-8.
        LimitError
            If the counts need more memory.
        """
        return self._numbering(unit, memory_limit_bytes).count(length, max_length)

    def counts(
        self, max_length: int, *, unit: Unit = "characters", memory_limit_bytes: int = LIMIT_BYTES
    ) -> list[int]:
        """Returns the number of members of each length, from 0 to ``max_length``."""
        return self._numbering(unit, memory_limit_bytes).counts(max_length)

    def nth(
        self, index: int, *, unit: Unit = "characters", memory_limit_bytes: int = LIMIT_BYTES
    ) -> str | bytes:
        """Returns the member with index ``index``, from 0, by length, then from the smallest.

        Raises
        ------
        ArgumentError
            If there are fewer members.
        """
        return as_text(self._numbering(unit, memory_limit_bytes).nth(index))

    def rank(
        self, text: str | bytes, *, unit: Unit = "characters", memory_limit_bytes: int = LIMIT_BYTES
    ) -> int:
        """Returns the index of a member: ``nth(rank(text)) == text``.

        Raises
        ------
        ArgumentError
            If ``text`` is not a member.
        """
        data = text_bytes(text)
        numbering = self._numbering(unit, memory_limit_bytes)
        if data is None or not self.core.accepts(data):
            raise ArgumentError(f"{text!r} is not a member, so it has no rank")
        # A member that is not UTF-8 has only a length in bytes; the core refuses characters.
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
        """Yields members by length, then from the smallest: all, or those of some lengths."""
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
        """Returns ``n`` independent, uniform draws: every member is equally likely.

        Parameters
        ----------
        n
            Number of draws; a member may occur more than once.
        seed
            Equal seeds give equal samples, and the first three of ten draws equal three draws. None
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
        """Returns whether both have the same members, like ``==``."""
        return self.core == _checked(other).core

    def is_subset(self, other: Automaton, *, state_limit: int = PAIR_LIMIT) -> bool:
        """Returns whether every member is a member of ``other``."""
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
        """Returns the shortest, then smallest, string that refutes a relation; None if it holds.

        Parameters
        ----------
        relation
            ``"equivalence"``: a string in exactly one of the two. ``"inclusion"``: a string in this
            one and not in ``other``.
        unit, state_limit
            The unit of length, and the maximum number of pairs of states to visit.

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
        """Returns the automaton in a compact format, for :meth:`from_bytes`."""
        return self.core.save()

    @classmethod
    def from_bytes(cls, data: bytes) -> Automaton:
        """Reads the result of :meth:`to_bytes`; everything is checked, nothing is executed.

        Raises
        ------
        ArgumentError
            For any other data.
        """
        if not isinstance(data, bytes):
            raise ArgumentError(
                f"data must be the bytes of a saved automaton, got {type(data).__name__}"
            )
        return cls(_core.Graph.load(data))

    def _edges_for_people(self) -> Iterator[tuple[int, str, int]]:
        return edges_for_people(self.core.ranges(), byte_labels)

    @property
    def _symbol_count(self) -> int:
        return 256

    def _label(self, ranges: Ranges) -> str:
        return byte_labels(ranges)

    def _numbering(self, unit: Unit, memory_limit_bytes: int) -> MemberRanking:
        names = ("length", "max_length")
        return MemberRanking(self.core, counts_characters(unit), names, memory_limit_bytes)

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
