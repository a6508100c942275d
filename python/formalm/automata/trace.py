"""The :class:`Trace` class: an automaton reading one input, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from formalm.argument_checks import checked_integer
from formalm.errors import ArgumentError, LimitError

if TYPE_CHECKING:
    from formalm.pictures import Diagram
    from formalm.pictures.animation import Frame

__all__ = ["Trace", "TraceStep"]

STEP_LIMIT = 200
"""Symbols of an input that is drawn. Chosen, not measured."""


@dataclass(frozen=True)
class TraceStep:
    """One symbol read.

    Attributes
    ----------
    source
        The state before it.
    symbol
        The byte, or the token id.
    label
        The symbol as drawings show it.
    target
        The state after it; None if no member continues this way.
    """

    source: int
    symbol: int
    label: str
    target: int | None


class Trace(Sequence[TraceStep]):
    r"""The steps of an automaton that reads an input from its start state.

    Created by :meth:`Automaton.trace` and :meth:`TokenAutomaton.trace`. A sequence of
    :class:`TraceStep`. It ends with the input, or with the first symbol that no member continues.

    Attributes
    ----------
    diagram
        What is drawn.
    labels
        The symbols of the whole input, as drawings show them.
    steps
        The steps taken.

    Examples
    --------
    >>> from formalm import Regex
    >>> automaton = Regex(r"([0-9]+)?\.[0-9]+").to_automaton()
    >>> print(automaton.trace("23.37"))
    0 -2-> 0 -3-> 0 -.-> 1 -3-> 2 -7-> 2: accepted
    >>> print(automaton.trace("2x"))
    0 -2-> 0 -x-> : rejected, no member continues with x
    >>> automaton.trace("23.37").states
    (0, 0, 0, 1, 2, 2)
    """

    __slots__ = ("diagram", "labels", "steps")

    def __init__(
        self, diagram: Diagram, labels: tuple[str, ...], steps: tuple[TraceStep, ...]
    ) -> None:
        self.diagram = diagram
        self.labels = labels
        self.steps = steps

    @property
    def states(self) -> tuple[int, ...]:
        """The states visited, beginning with the start state."""
        visited = (step.target for step in self.steps if step.target is not None)
        return (self.diagram.start, *visited)

    @property
    def is_accepted(self) -> bool:
        """True if the input is a member."""
        return self.rejected_at is None and self.states[-1] in self.diagram.accepting

    @property
    def rejected_at(self) -> int | None:
        """The index of the symbol that no member continues; None if there is none."""
        if self.steps and self.steps[-1].target is None:
            return len(self.steps) - 1
        return None

    @property
    def verdict(self) -> str:
        """The outcome in words."""
        if self.is_accepted:
            return "accepted"
        if self.rejected_at is not None:
            return f"rejected, no member continues with {self.steps[-1].label}"
        return "not accepted, but some member continues"

    def to_svgs(self, *, state_limit: int = 150, edge_limit: int = 600) -> list[str]:
        """Returns SVG pictures: one before the first symbol, and one after each step.

        Each marks the state, the edge just taken, and the symbols read.

        Raises
        ------
        LimitError
            If the automaton has more states or drawn edges.
        """
        from formalm.pictures.animation import frame_svg

        return [
            frame_svg(self.diagram, self.labels, frame, (state_limit, edge_limit))
            for frame in self._frames()
        ]

    def to_svg(
        self,
        *,
        seconds: float = 0.9,
        state_limit: int = 150,
        edge_limit: int = 600,
        step_limit: int = STEP_LIMIT,
    ) -> str:
        """Returns one animated SVG, which repeats the steps; no script, only CSS.

        Readers who prefer reduced motion see the last step.

        Parameters
        ----------
        seconds
            How long each step is shown.
        state_limit, edge_limit, step_limit
            Maximum numbers of states, drawn edges and steps.

        Raises
        ------
        LimitError
            If there are more.
        """
        from formalm.pictures.animation import animated_svg

        if isinstance(seconds, bool) or not isinstance(seconds, int | float):
            raise ArgumentError(f"seconds must be a number, got {type(seconds).__name__}")
        if not 0.05 <= seconds <= 60:
            raise ArgumentError(f"seconds must be from 0.05 to 60, got {seconds!r}")
        limit = checked_integer("step_limit", step_limit)
        if len(self.steps) > limit:
            raise LimitError("steps in an animation", len(self.steps), limit, "raise step_limit")
        limits = (state_limit, edge_limit)
        return animated_svg(self.diagram, self.labels, self._frames(), float(seconds), limits)

    def _frames(self) -> list[Frame]:
        from formalm.pictures.animation import Frame

        frames = [Frame(self.diagram.start, None, 0, "")]
        for read, step in enumerate(self.steps, start=1):
            over = self.verdict if read == len(self.steps) else ""
            if step.target is None:
                frames.append(Frame(None, None, read, over))
            else:
                frames.append(Frame(step.target, (step.source, step.target), read, over))
        if not self.steps:
            frames = [Frame(self.diagram.start, None, 0, self.verdict)]
        return frames

    def _repr_html_(self) -> str:
        limits = (150, 600)
        drawn = (self.diagram.state_count, len(self.diagram.edges))
        if len(self.steps) > STEP_LIMIT or any(n > m for n, m in zip(drawn, limits, strict=True)):
            from html import escape

            return f"<pre>{escape(str(self))}</pre>"
        from formalm.pictures.animation import animated_svg
        from formalm.pictures.notebook_html import STYLE

        picture = animated_svg(self.diagram, self.labels, self._frames(), 0.9, limits, STYLE)
        return f'<div style="overflow-x:auto">{picture}</div>'

    @overload
    def __getitem__(self, index: int) -> TraceStep: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[TraceStep, ...]: ...
    def __getitem__(self, index: int | slice) -> TraceStep | tuple[TraceStep, ...]:
        return self.steps[index]

    def __len__(self) -> int:
        return len(self.steps)

    def __iter__(self) -> Iterator[TraceStep]:
        return iter(self.steps)

    def __str__(self) -> str:
        path = str(self.diagram.start)
        for step in self.steps:
            path += f" -{step.label}-> {'' if step.target is None else step.target}"
        return f"{path}: {self.verdict}"

    def __repr__(self) -> str:
        return f"<Trace: {len(self.steps)} steps, {self.verdict}>"
