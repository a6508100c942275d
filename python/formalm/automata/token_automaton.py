"""The :class:`TokenAutomaton` class: the minimal automaton of a constraint, over token ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import index as as_index

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm.argument_checks import checked_integer
from formalm.automata.automaton_base import AutomatonBase
from formalm.automata.edge_labels import Ranges, edges_for_people, token_labels
from formalm.automata.ranking import MEMORY_LIMIT_BYTES, MemberRanking
from formalm.automata.trace import Trace
from formalm.errors import ArgumentError
from formalm.vocabulary import Vocabulary

__all__ = ["TokenAutomaton"]


class TokenAutomaton(AutomatonBase):
    """The minimal deterministic automaton of all token sequences that spell a member.

    Created by :meth:`Constraint.to_automaton`. End tokens are not edges: a state where one is
    allowed is accepting. Every edge lies on a path to a member in tokens. A mask, in contrast,
    allows a token if a member in *bytes* continues with it, even if no tokens can spell the rest.
    (The two differ only for vocabularies that cannot spell every string.)

    Sequences are ordered by number of tokens, then by ids. Counts are exact integers;
    ``memory_limit_bytes`` is as in :class:`Automaton`. Immutable, hashable, picklable; equal if the
    vocabulary and all token sequences are.

    Examples
    --------
    >>> from formalm import Constraint, StringLiteral, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"T", b"h", b"e", b"Th", b"he", b"The"])
    >>> automaton = Constraint(StringLiteral("The"), vocabulary).to_automaton()
    >>> automaton.count(), list(automaton)
    (4, [[5], [0, 4], [3, 2], [0, 1, 2]])
    """

    __slots__ = ("vocabulary",)

    def __init__(self, core: _core.Graph, vocabulary: Vocabulary) -> None:
        super().__init__(core)
        self.vocabulary = vocabulary

    @property
    def edge_count(self) -> int:
        """Number of edges, one per state and token."""
        return self.core.label_count

    def edges(self) -> npt.NDArray[np.uint32]:
        """Returns all edges, sorted by source, then by token.

        Returns
        -------
        numpy.ndarray
            uint32, shape ``(edge_count, 3)``: source, token id, target.
        """
        return self.core.edges()

    def step(self, state: int, token_id: int) -> int | None:
        """Returns the state after a token; None if no member continues this way."""
        if checked_integer("state", state) >= self.state_count:
            raise ArgumentError(
                f"state must be below the number of states ({self.state_count}), got {state}"
            )
        return self.core.after(state, self._ids([token_id])[0])

    def trace(self, token_ids: Iterable[int]) -> Trace:
        """Returns the steps in which the automaton reads tokens; see :meth:`Automaton.trace`."""
        return self._trace(self._ids(token_ids))

    def matches(self, token_ids: Iterable[int]) -> bool:
        """Returns whether the tokens, without an end token, spell a member."""
        return self.core.accepts(self._ids(token_ids))

    def shortest(self) -> list[int] | None:
        """Returns the sequence of fewest tokens, then of smallest ids; None if there is none."""
        found = self.core.shortest(False)
        return None if found is None else list(found)

    def count(
        self,
        tokens: int | None = None,
        *,
        max_tokens: int | None = None,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
    ) -> int:
        """Returns the number of sequences: of a number of tokens, of at most a number, or in total.

        Raises
        ------
        ArgumentError
            If there are infinitely many and no bound is given.
        LimitError
            If the counts need more memory.
        """
        return self._numbering(memory_limit_bytes).count(tokens, max_tokens)

    def counts(self, max_tokens: int, *, memory_limit_bytes: int = MEMORY_LIMIT_BYTES) -> list[int]:
        """Returns the number of sequences of each number of tokens, from 0 to ``max_tokens``."""
        return self._numbering(memory_limit_bytes).counts(max_tokens)

    def nth(self, index: int, *, memory_limit_bytes: int = MEMORY_LIMIT_BYTES) -> list[int]:
        """Returns the sequence with index ``index``, from 0, by number of tokens, then by ids."""
        return list(self._numbering(memory_limit_bytes).nth(index))

    def rank(
        self, token_ids: Iterable[int], *, memory_limit_bytes: int = MEMORY_LIMIT_BYTES
    ) -> int:
        """Returns the index of a sequence: ``nth(rank(token_ids)) == token_ids``."""
        ids = self._ids(token_ids)
        return self._numbering(memory_limit_bytes).rank(ids, len(ids))

    def enumerate(
        self,
        *,
        tokens: int | None = None,
        max_tokens: int | None = None,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
    ) -> Iterator[list[int]]:
        """Yields sequences by number of tokens, then by ids."""
        return self._numbering(memory_limit_bytes).members(tokens, max_tokens)

    def sample(
        self,
        n: int,
        *,
        seed: int | None = None,
        tokens: int | None = None,
        max_tokens: int | None = None,
        memory_limit_bytes: int = MEMORY_LIMIT_BYTES,
    ) -> list[list[int]]:
        """Returns ``n`` independent, uniform draws; see :meth:`Automaton.sample`."""
        return self._numbering(memory_limit_bytes).sample(n, seed, tokens, max_tokens)

    def _edges_for_people(self) -> Iterator[tuple[int, str, int]]:
        return edges_for_people(self.core.ranges(), self._label)

    @property
    def _symbol_count(self) -> int:
        return len(self.vocabulary)

    def _label(self, ranges: Ranges) -> str:
        return token_labels(ranges, self.vocabulary)

    def _numbering(self, memory_limit_bytes: int) -> MemberRanking:
        names = ("tokens", "max_tokens")
        return MemberRanking(self.core, False, names, memory_limit_bytes)

    def _ids(self, token_ids: Iterable[int]) -> Sequence[int]:
        try:
            ids = [as_index(token_id) for token_id in token_ids]
        except TypeError:
            kind = type(token_ids).__name__
            raise ArgumentError(f"token_ids must be a sequence of integers, got {kind}") from None
        for token_id in ids:
            if not 0 <= token_id < len(self.vocabulary):
                raise ArgumentError(f"token_ids must be ids of the vocabulary, got {token_id}")
        return ids

    def __iter__(self) -> Iterator[list[int]]:
        return self.enumerate()

    def __contains__(self, token_ids: Iterable[int]) -> bool:
        return self.matches(token_ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, TokenAutomaton):
            return NotImplemented
        return self.core == other.core and self.vocabulary == other.vocabulary

    def __hash__(self) -> int:
        return hash((self.core, self.vocabulary))

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (self.core.save(), self.vocabulary)


def _restore(data: bytes, vocabulary: Vocabulary) -> TokenAutomaton:
    return TokenAutomaton(_core.Graph.load(data, len(vocabulary)), vocabulary)
