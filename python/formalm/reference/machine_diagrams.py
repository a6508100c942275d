"""Diagrams of the machines in this package, whose edges are characters or tokens."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from formalm.pictures import Diagram

__all__ = ["machine_diagram"]

FEW = 6  # labels written out; of more, those left out are written if they are few


class Machine(Protocol):
    """A deterministic machine: state → label → state, a start, and accepting states."""

    @property
    def transitions(self) -> Mapping[int, Mapping[str, int]]: ...
    @property
    def start(self) -> int: ...
    @property
    def accepting(self) -> frozenset[int]: ...


def machine_diagram(
    machine: Machine,
    title: str,
    *,
    alphabet: Collection[str] = (),
    shown: Callable[[str], str] = str,
) -> Diagram:
    """Returns what is drawn of a machine: its reachable states, numbered breadth first.

    Parameters
    ----------
    machine
        Any machine of this package.
    title
        The title of the picture.
    alphabet
        All labels, so that an edge of many is named by the few it lacks: ``any but .``.
    shown
        How a label is written, such as ``Ġ`` for a space.

    Examples
    --------
    >>> from formalm import Regex
    >>> from formalm.reference.outlines import CharacterMachine
    >>> machine = CharacterMachine.of(Regex("a[bc]*"), "abc")
    >>> machine_diagram(machine, "a[bc]*").edges
    ((0, 'a', 1), (1, 'b c', 1))
    """
    numbers = {machine.start: 0}
    waiting = [machine.start]
    edges: list[tuple[int, str, int]] = []
    count = 0
    for state in waiting:
        by_target: dict[int, list[str]] = {}
        for label in sorted(machine.transitions[state], key=lambda one: (len(one), one)):
            by_target.setdefault(machine.transitions[state][label], []).append(label)
            count += 1
        for target, labels in by_target.items():
            if target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
            edges.append((numbers[state], _written(labels, alphabet, shown), numbers[target]))
    accepting = frozenset(numbers[state] for state in machine.accepting if state in numbers)
    return Diagram(0, accepting, tuple(edges), len(numbers), count, title)


def _written(labels: list[str], alphabet: Collection[str], shown: Callable[[str], str]) -> str:
    missing = [label for label in alphabet if label not in labels]
    if len(labels) > 1 and alphabet and not missing:
        return "any"
    if len(labels) > FEW and alphabet and len(missing) <= FEW:
        return "any but " + " ".join(map(shown, missing))
    return " ".join(map(shown, labels))
