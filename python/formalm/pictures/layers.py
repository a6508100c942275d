"""Layer assignment, the first half of a layered graph drawing (Sugiyama's method).

States are in even layers and labels in odd ones, so a label has room of its own like a state. An
edge is a chain through every layer it crosses: its source, its label, bends, its target. The later
steps need not distinguish edges from nodes.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from formalm.pictures.diagram import Diagram, Edge

__all__ = ["Chain", "Layering", "layered"]


@dataclass(frozen=True)
class Chain:
    """An edge between two states, as nodes from left to right.

    Attributes
    ----------
    label, source, target
        The edge.
    nodes
        One node per layer; the first and the last are states.
    backward
        Whether the target is the first of them.
    """

    source: int
    label: str
    target: int
    nodes: tuple[int, ...]
    backward: bool

    @property
    def label_node(self) -> int:
        """The node of the label, next to the source."""
        return self.nodes[-2] if self.backward else self.nodes[1]


@dataclass
class Layering:
    """Nodes by layer; numbers below the number of states are states.

    Attributes
    ----------
    layers
        Nodes from top to bottom.
    chains
        The edges, without loops.
    loops
        The label of each state's edge to itself.
    before, after
        The neighbors of each node in the adjacent layers.
    """

    layers: list[list[int]]
    chains: list[Chain]
    loops: dict[int, str]
    before: list[list[int]]
    after: list[list[int]]


def layered(diagram: Diagram) -> Layering:
    """Assigns a layer to every state, label and bend."""
    edges = [edge for edge in diagram.edges if edge[0] != edge[2]]
    plans = [_ranked(diagram, edges, order) for order in (_by_depth, _by_distance)]
    ranks, backward = min(plans, key=lambda plan: _cost(edges, *plan))
    layers: list[list[int]] = [[] for _ in range(2 * max(ranks) + 1)]
    for state, rank in enumerate(ranks):
        layers[2 * rank].append(state)
    nodes = diagram.state_count
    before: list[list[int]] = [[] for _ in range(nodes)]
    after: list[list[int]] = [[] for _ in range(nodes)]
    chains = []
    for edge, back in zip(edges, backward, strict=True):
        source, label, target = edge
        left, right = (target, source) if back else (source, target)
        chain = [left]
        for layer in range(2 * ranks[left] + 1, 2 * ranks[right]):
            layers[layer].append(len(before))
            chain.append(len(before))
            before.append([])
            after.append([])
        chain.append(right)
        for one, other in itertools.pairwise(chain):
            after[one].append(other)
            before[other].append(one)
        chains.append(Chain(source, label, target, tuple(chain), back))
    loops = {source: label for source, label, target in diagram.edges if source == target}
    return Layering(layers, chains, loops, before, after)


def _cost(edges: list[Edge], ranks: list[int], backward: list[bool]) -> int:
    """Returns the cost of a layering: layers crossed, and arrows against the reading direction."""
    crossed = sum(abs(ranks[source] - ranks[target]) for source, _, target in edges)
    return crossed + 4 * sum(backward)


def _ranked(
    diagram: Diagram, edges: list[Edge], order: Callable[[Diagram], list[int]]
) -> tuple[list[int], list[bool]]:
    """Reverses edges until no cycle is left; each state is then to the right of all before it.

    ``order`` numbers the states such that edges to a smaller number are reversed.
    """
    numbers = order(diagram)
    start = diagram.start
    backward = [
        target == start or (source != start and numbers[source] > numbers[target])
        for source, _, target in edges
    ]
    followers: list[list[int]] = [[] for _ in range(diagram.state_count)]
    waiting = [0] * diagram.state_count
    for (source, _, target), back in zip(edges, backward, strict=True):
        left, right = (target, source) if back else (source, target)
        followers[left].append(right)
        waiting[right] += 1
    ranks = [0] * diagram.state_count
    ready = deque(state for state, count in enumerate(waiting) if not count)
    while ready:
        state = ready.popleft()
        for follower in followers[state]:
            ranks[follower] = max(ranks[follower], ranks[state] + 1)
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append(follower)
    return ranks, backward


def _successors(diagram: Diagram) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(diagram.state_count)]
    for source, _, target in diagram.edges:
        found[source].append(target)
    return [sorted(targets) for targets in found]


def _by_depth(diagram: Diagram) -> list[int]:
    """Returns the reverse depth-first postorder, in which only edges that close a cycle go back."""
    successors = _successors(diagram)
    numbers = [-1] * diagram.state_count
    seen = [False] * diagram.state_count
    left = diagram.state_count
    for root in (diagram.start, *range(diagram.state_count)):
        if seen[root]:
            continue
        seen[root] = True
        path = [(root, iter(successors[root]))]
        while path:
            state, rest = path[-1]
            target = next((target for target in rest if not seen[target]), None)
            if target is None:
                left -= 1
                numbers[state] = left
                path.pop()
            else:
                seen[target] = True
                path.append((target, iter(successors[target])))
    return numbers


def _by_distance(diagram: Diagram) -> list[int]:
    """Returns the order of a breadth-first search, which keeps dense cycles short."""
    successors = _successors(diagram)
    numbers = [-1] * diagram.state_count
    count = 0
    for root in (diagram.start, *range(diagram.state_count)):
        if numbers[root] >= 0:
            continue
        numbers[root] = count
        count += 1
        queue = deque([root])
        while queue:
            for target in successors[queue.popleft()]:
                if numbers[target] < 0:
                    numbers[target] = count
                    count += 1
                    queue.append(target)
    return numbers
