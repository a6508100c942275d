"""Coordinates in pixels for a layered graph drawing, the second half of Sugiyama's method.

A layer is as wide as its widest node. An edge crosses it in a straight line that keeps its distance
from the nodes above and below; edges bend only between layers. So no edge runs through a state or a
label, whatever the automaton.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from formalm.pictures.labels import cells, shortened, visible
from formalm.pictures.layers import Layering

__all__ = ["CELL", "LABEL_HEIGHT", "LABEL_LIFT", "LOOP_HEIGHT", "Places", "label_width", "place"]

CELL = 7.3  # width of a character of the labels
LABEL_LIFT = 5.0  # from an edge to the bottom of its label
LABEL_HEIGHT = 13.0
LOOP_HEIGHT = 40.0  # from a state's center to the top of its loop
BETWEEN = 9.0  # least distance between two nodes of a layer


@dataclass
class Places:
    """Coordinates; y grows downward.

    Attributes
    ----------
    y
        The y coordinate of each node.
    left, right
        The bounds of each layer.
    layer
        The layer of each node.
    radius
        The radius of a state.
    slope
        The slope at which the edge of each node crosses the layer; 0 for states and labels.
    """

    y: list[float]
    left: list[float]
    right: list[float]
    layer: list[int]
    radius: float
    slope: list[float]

    def middle(self, node: int) -> float:
        """The x coordinate of a node."""
        layer = self.layer[node]
        return (self.left[layer] + self.right[layer]) / 2

    def half_width(self, node: int) -> float:
        """Half the width of a node's layer."""
        layer = self.layer[node]
        return (self.right[layer] - self.left[layer]) / 2


def label_width(label: str) -> float:
    """Returns the width of a label in pixels."""
    return CELL * cells(shortened(visible(label)))


def place(layering: Layering, state_count: int) -> Places:
    """Returns coordinates for every node."""
    radius = max(18.0, 6.0 + 4.0 * len(str(state_count - 1)))
    above = [2.0] * len(layering.before)
    below = [2.0] * len(layering.before)
    width = [0.0] * len(layering.before)
    for state in range(state_count):
        above[state] = below[state] = radius
        width[state] = 2 * radius
        if state in layering.loops:
            above[state] = LOOP_HEIGHT + LABEL_LIFT + LABEL_HEIGHT
            width[state] = max(width[state], label_width(layering.loops[state]))
    for chain in layering.chains:
        above[chain.label_node] = LABEL_LIFT + LABEL_HEIGHT
        width[chain.label_node] = label_width(chain.label) + 2
    y = _levels(layering, state_count, above, below)
    layer_of = [0] * len(y)
    left, right = [], []
    x = 0.0
    for index, layer in enumerate(layering.layers):
        for node in layer:
            layer_of[node] = index
        left.append(x)
        right.append(x + max(width[node] for node in layer))
        x = right[-1] + _gap(layering, layer, y)
    places = Places(y, left, right, layer_of, radius, [0.0] * len(y))
    for chain in layering.chains:
        for one, node, other in zip(chain.nodes, chain.nodes[1:], chain.nodes[2:], strict=False):
            if node != chain.label_node:
                places.slope[node] = _slope(places, one, node, other)
    _keep_clear(layering, places, above, below)
    return places


def _slope(places: Places, before: int, node: int, after: int) -> float:
    """Returns the slope of a smooth edge: zero at turning points, else between both sides'."""
    x, y = places.middle(node), places.y[node]
    one = (y - places.y[before]) / (x - places.middle(before))
    other = (places.y[after] - y) / (places.middle(after) - x)
    return 2 * one * other / (one + other) if one * other > 0 else 0.0


def _keep_clear(layering: Layering, places: Places, above: list[float], below: list[float]) -> None:
    """Flattens edges that would come close to nodes above or below them in a layer."""
    for layer in layering.layers:
        half = places.half_width(layer[0])
        gaps = [
            places.y[other] - above[other] - places.y[one] - below[one]
            for one, other in itertools.pairwise(layer)
        ]
        for index, node in enumerate(layer):
            # Both neighbors may extend into a gap, so each gets a third of it.
            room = min([1e9, *gaps[max(0, index - 1) : index + 1]]) / 3
            steepest = max(0.0, room) / max(half, 1.0)
            places.slope[node] = max(-steepest, min(steepest, places.slope[node]))


def _gap(layering: Layering, layer: list[int], y: list[float]) -> float:
    """Returns the room after a layer: more where edges climb, so that they do not climb steeply."""
    climb = max((abs(y[a] - y[b]) for a in layer for b in layering.after[a]), default=0.0)
    return max(24.0, min(90.0, 0.4 * climb))


def _levels(
    layering: Layering, state_count: int, above: list[float], below: list[float]
) -> list[float]:
    """Returns heights that keep order and distance, with edges as straight as possible."""
    y = [0.0] * len(above)
    distances = []
    for layer in layering.layers:
        steps = [below[one] + above[other] + BETWEEN for one, other in itertools.pairwise(layer)]
        distances.append(steps)
        level = -sum(steps) / 2
        for node, step in zip(layer, [*steps, 0.0], strict=True):
            y[node] = level
            level += step
    order = list(range(len(layering.layers)))
    rounds = 15 if len(y) < 3000 else 3
    for count in range(rounds):
        last = count >= rounds - rounds // 3
        for direction in (order, order[::-1]):
            for index in direction:
                layer = layering.layers[index]
                wishes, weights = [], []
                for node in layer:
                    sides = (
                        (layering.before[node], layering.after[node])
                        if last
                        else (
                            layering.before[node] if direction is order else layering.after[node],
                        )
                    )
                    wish, weight = _wish(node, sides, y, state_count)
                    wishes.append(wish)
                    weights.append(weight)
                for node, level in zip(
                    layer, _spread(wishes, weights, distances[index]), strict=True
                ):
                    y[node] = level
    return y


def _wish(
    node: int, sides: tuple[list[int], ...], y: list[float], state_count: int
) -> tuple[float, float]:
    """Returns the height to which a node's neighbors pull it, and the strength of the pull."""
    total = weight = 0.0
    for side in sides:
        for other in side:
            pull = 1.0 if node < state_count or other < state_count else 8.0
            total += pull * y[other]
            weight += pull
    return (total / weight, weight) if weight else (y[node], 0.1)


def _spread(wishes: list[float], weights: list[float], distances: list[float]) -> list[float]:
    """Returns the heights nearest to the wishes in weighted least squares, with minimum distances.

    After subtracting the distances, the heights must not decrease: isotonic regression, by pooling
    adjacent violators.
    """
    offsets = [0.0]
    for distance in distances:
        offsets.append(offsets[-1] + distance)
    blocks: list[tuple[float, float, int]] = []  # mean, weight, members
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        mean, total, members = wish - offset, weight, 1
        while blocks and blocks[-1][0] > mean:
            other, more, count = blocks.pop()
            mean = (mean * total + other * more) / (total + more)
            total, members = total + more, members + count
        blocks.append((mean, total, members))
    flat = [mean for mean, _, members in blocks for _ in range(members)]
    return [level + offset for level, offset in zip(flat, offsets, strict=True)]
