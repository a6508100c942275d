"""How many walks a constraint has: strings over bytes, token sequences over a vocabulary."""

from __future__ import annotations

from dataclasses import dataclass

from formalm.errors import LimitError
from formalm.query.states import States

__all__ = ["COUNT_LIMIT", "Counts", "count_walks"]

COUNT_LIMIT = 2_000_000


@dataclass(frozen=True)
class Counts:
    """The size of a constraint, and how many walks lead through it.

    Attributes
    ----------
    states, edges
        Of what can be reached.
    walks
        Walks from the start to an accepting state; None for infinitely many.
    prefixes
        Beginnings of them, the empty one and the walks among them: what a model would have to
        evaluate; None for infinitely many.
    longest
        Steps of the longest walk; None for no bound.
    """

    states: int
    edges: int
    walks: int | None
    prefixes: int | None
    longest: int | None


def count_walks(states: States, start: int, limit: int = COUNT_LIMIT) -> Counts:
    """Count from a state on.

    Parameters
    ----------
    states
        The states of a constraint.
    start
        Where walks begin.
    limit
        Most edges to look at.

    Raises
    ------
    LimitError
        If there are more edges.
    """
    targets = _graph(states, start, limit)
    edges = sum(sum(row.values()) for row in targets.values())
    order = _order(targets, start)
    if order is None:
        return Counts(len(targets), edges, None, None, None)
    walks: dict[int, int] = {}
    prefixes: dict[int, int] = {}
    longest: dict[int, int] = {}
    for state in order:  # successors first
        row = targets[state]
        walks[state] = int(states.accepting[state]) + sum(n * walks[t] for t, n in row.items())
        prefixes[state] = 1 + sum(n * prefixes[t] for t, n in row.items())
        longest[state] = max((1 + longest[t] for t in row), default=0)
    return Counts(len(targets), edges, walks[start], prefixes[start], longest[start])


def _graph(states: States, start: int, limit: int) -> dict[int, dict[int, int]]:
    """How many steps lead from each state to each other one."""
    graph: dict[int, dict[int, int]] = {}
    waiting = [start]
    edges = 0
    while waiting:
        state = waiting.pop()
        if state in graph:
            continue
        row: dict[int, int] = {}
        allowed = states.allowed(state).tolist()
        edges += len(allowed)
        if edges > limit:
            raise LimitError("edges to count", edges, limit)
        for token_id in allowed:
            target = states.step(state, token_id)
            row[target] = row.get(target, 0) + 1
        graph[state] = row
        waiting += row
    return graph


def _order(graph: dict[int, dict[int, int]], start: int) -> list[int] | None:
    """The states, successors before what leads to them; None if there is a cycle."""
    incoming = dict.fromkeys(graph, 0)
    for row in graph.values():
        for target in row:
            incoming[target] += 1
    if incoming[start]:
        return None
    order = []
    ready = [start]
    while ready:
        state = ready.pop()
        order.append(state)
        for target in graph[state]:
            incoming[target] -= 1
            if not incoming[target]:
                ready.append(target)
    return order[::-1] if len(order) == len(graph) else None
