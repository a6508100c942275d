"""The base class of automata over bytes and tokens: states, acceptance, drawings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from formalm import _core
from formalm.automata.alphabet import Alphabet, Transitions, classes_of, table_of
from formalm.automata.edge_labels import Ranges
from formalm.automata.trace import Trace, TraceStep
from formalm.errors import ArgumentError

if TYPE_CHECKING:
    from typing_extensions import Self

    from formalm.pictures import Diagram

__all__ = ["AutomatonBase"]


class AutomatonBase(ABC):
    """A minimal deterministic graph; its states are numbered from 0, breadth first.

    ``print`` shows the table of transitions: a row for each state, with ``*`` at the start, and a
    column for each class of the :attr:`alphabet`.
    """

    __slots__ = ("core",)

    def __init__(self, core: _core.Graph) -> None:
        if not isinstance(core, _core.Graph):
            raise ArgumentError(
                f"an automaton is not made from {type(core).__name__}",
                hint="use language.to_automaton() or constraint.to_automaton()",
            )
        self.core = core

    @property
    def state_count(self) -> int:
        """Number of states; 1 for the empty language, whose only state is not accepting."""
        return self.core.state_count

    @property
    @abstractmethod
    def edge_count(self) -> int:
        """Number of rows of :meth:`edges`."""

    @property
    def start(self) -> int:
        """The start state: 0."""
        return 0

    @property
    def accepting(self) -> frozenset[int]:
        """The accepting states."""
        return frozenset(self.core.accepting())

    @property
    def finals(self) -> frozenset[int]:
        """The accepting states, by the name that interegular gives them."""
        return self.accepting

    @property
    def alphabet(self) -> Alphabet:
        """The classes of symbols with equal transitions."""
        return self._classes()[0]

    @property
    def map(self) -> Transitions:
        """The transitions: state → class of the alphabet → next state. Every state is a key."""
        return self._classes()[1]

    @property
    def is_empty(self) -> bool:
        """True if there are no members."""
        return self.core.is_empty

    @property
    def is_finite(self) -> bool:
        """True if there are finitely many members."""
        return self.core.is_finite

    @abstractmethod
    def _edges_for_people(self) -> Iterator[tuple[int, str, int]]:
        """Returns one edge per pair of states: source, label, target."""

    @property
    @abstractmethod
    def _symbol_count(self) -> int:
        """Number of symbols, from 0."""

    @abstractmethod
    def _label(self, ranges: Ranges) -> str:
        """Returns ranges of symbols for people."""

    def _classes(self) -> tuple[Alphabet, Transitions]:
        return classes_of(self.core.ranges(), self._symbol_count, self.state_count, self._label)

    def _trace(self, symbols: Sequence[int]) -> Trace:
        """Returns the steps until the end, or until no member continues."""
        # A special token has no bytes to show.
        labels = tuple(self._label([(symbol, symbol)]) or f"({symbol})" for symbol in symbols)
        state: int | None = self.start
        steps = []
        for symbol, label in zip(symbols, labels, strict=True):
            if state is None:
                break
            target = self.core.after(state, symbol)
            steps.append(TraceStep(state, symbol, label, target))
            state = target
        return Trace(self.diagram(), labels, tuple(steps))

    def diagram(self) -> Diagram:
        """Returns states and edges as they are drawn: one edge per pair of states."""
        from formalm.pictures import Diagram

        edges = tuple(self._edges_for_people())
        counts = (self.state_count, self.edge_count)
        return Diagram(self.start, self.accepting, edges, *counts, self._size())

    def to_dot(self) -> str:
        """Returns Graphviz source."""
        from formalm import pictures

        return pictures.dot(self.diagram())

    def to_svg(self, *, state_limit: int = 150, edge_limit: int = 600) -> str:
        """Returns an SVG picture; raises a LimitError for more states or drawn edges."""
        from formalm import pictures

        return pictures.svg(self.diagram(), state_limit=state_limit, edge_limit=edge_limit)

    def _repr_html_(self) -> str:
        from formalm import pictures

        return pictures.html(self.diagram())

    def _size(self) -> str:
        counts = {"state": self.state_count, "edge": self.edge_count}
        return ", ".join(f"{n:,} {name}{'' if n == 1 else 's'}" for name, n in counts.items())

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self._size()}>"

    def __str__(self) -> str:
        return table_of(*self._classes(), self.start, self.accepting)

    def __len__(self) -> int:
        return self.state_count

    def __bool__(self) -> bool:
        return True

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self
