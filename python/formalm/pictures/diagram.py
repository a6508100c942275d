"""The :class:`Diagram` class: states and labeled edges to draw, without coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from formalm.errors import ArgumentError

__all__ = ["Diagram"]

Edge = tuple[int, str, int]


@dataclass(frozen=True)
class Diagram:
    """An automaton as it is to be drawn.

    Parameters
    ----------
    start
        The start state; states are numbered from 0.
    accepting
        The accepting states.
    edges
        ``(source, label, target)``, at most one per pair of states. Labels are for people: short,
        and already grouped, such as ``0-9``.
    state_count
        Number of states.
    edge_count
        Number of edges of the automaton, which may exceed the number drawn: an edge ``0-9`` can
        stand for ten.
    title
        The title, for tooltips and screen readers.
    dashed
        The edges to draw dashed, as ``(source, target)``: those that a rule removed.

    Raises
    ------
    ArgumentError
        If a number is not a state, a label is not a string, or two edges join the same pair.

    Examples
    --------
    >>> diagram = Diagram(0, frozenset({1}), ((0, "a", 1), (1, "b", 1)), 2, 2, "ab*")
    >>> diagram.state_count
    2
    """

    start: int
    accepting: frozenset[int]
    edges: tuple[Edge, ...]
    state_count: int
    edge_count: int
    title: str
    dashed: frozenset[tuple[int, int]] = frozenset()

    def __post_init__(self) -> None:
        count = self.state_count
        if type(count) is not int or count < 1:
            raise ArgumentError(f"state_count must be a positive integer, got {count!r}")
        if type(self.edge_count) is not int or self.edge_count < 0:
            raise ArgumentError(
                f"edge_count must be a non-negative integer, got {self.edge_count!r}"
            )
        if not isinstance(self.title, str):
            raise ArgumentError(f"title must be a str, got {type(self.title).__name__}")
        object.__setattr__(self, "accepting", frozenset(self.accepting))
        object.__setattr__(self, "edges", tuple(self.edges))
        object.__setattr__(self, "dashed", frozenset(self.dashed))
        self._check_states("start", [self.start])
        self._check_states("accepting", self.accepting)
        edges: tuple[Any, ...] = self.edges  # whatever was handed in
        pairs = set()
        for edge in edges:
            if not isinstance(edge, tuple) or len(edge) != 3 or not isinstance(edge[1], str):
                raise ArgumentError(f"each edge must be (source, label, target), got {edge!r:.80}")
            self._check_states("edges", (edge[0], edge[2]))
            if (edge[0], edge[2]) in pairs:
                raise ArgumentError(
                    "edges must have one edge for each pair of states, got two from"
                    f" {edge[0]} to {edge[2]}",
                    hint="join their labels",
                )
            pairs.add((edge[0], edge[2]))
        if not self.dashed <= pairs:
            missing = min(self.dashed - pairs)
            raise ArgumentError(f"dashed must name edges, got {missing!r}")

    def _repr_html_(self) -> str:
        from formalm.pictures.notebook_html import html

        return html(self)

    def _check_states(self, where: str, states: Iterable[int]) -> None:
        for state in states:
            if type(state) is not int or not 0 <= state < self.state_count:
                raise ArgumentError(
                    f"{where}: states must be below state_count ({self.state_count:,}), got"
                    f" {state!r}"
                )
