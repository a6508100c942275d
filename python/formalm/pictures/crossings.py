"""Ordering of nodes within the layers of a drawing, with few edge crossings."""

from __future__ import annotations

from bisect import bisect_right, insort

from formalm.pictures.layers import Layering

__all__ = ["arrange"]

SWEEPS, SWEEPS_OF_LARGE = 24, 6
LARGE = 1500  # nodes, bends among them


def arrange(layering: Layering) -> None:
    """Orders every layer by the mean position of each node's neighbors, sweeping back and forth.

    The best order found is kept. Large pictures get fewer sweeps, where the difference is
    invisible.
    """
    sweeps = SWEEPS if len(layering.before) < LARGE else SWEEPS_OF_LARGE
    best, fewest = [list(layer) for layer in layering.layers], _crossings(layering)
    for sweep in range(sweeps):
        if not fewest:
            break
        _sweep(layering, forward=sweep % 2 == 0)
        if sweeps > SWEEPS_OF_LARGE:
            _swap(layering)
        crossings = _crossings(layering)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layering.layers], crossings
    layering.layers[:] = best


def _sweep(layering: Layering, *, forward: bool) -> None:
    layers = layering.layers if forward else layering.layers[::-1]
    joined = layering.before if forward else layering.after
    places: dict[int, int] = {}
    for layer in layers:
        wish = {
            node: sum(places[other] for other in joined[node]) / len(joined[node])
            if joined[node]
            else float(place)
            for place, node in enumerate(layer)
        }
        layer.sort(key=wish.__getitem__)
        places = {node: place for place, node in enumerate(layer)}


def _swap(layering: Layering) -> None:
    """Exchanges adjacent nodes as long as this removes crossings."""
    places = {node: i for layer in layering.layers for i, node in enumerate(layer)}
    for layer in layering.layers:
        for i in range(len(layer) - 1):
            one, other = layer[i], layer[i + 1]
            gain = 0
            for joined in (layering.before, layering.after):
                here = sorted(places[node] for node in joined[one])
                there = sorted(places[node] for node in joined[other])
                gain += _inversions(here, there) - _inversions(there, here)
            if gain > 0:
                layer[i], layer[i + 1] = other, one
                places[one], places[other] = i + 1, i


def _inversions(upper: list[int], lower: list[int]) -> int:
    """Returns the pairs where an end of the upper node lies below one of the lower node."""
    return sum(len(upper) - bisect_right(upper, place) for place in lower)


def _crossings(layering: Layering) -> int:
    total = 0
    for layer, following in zip(layering.layers, layering.layers[1:], strict=False):
        places = {node: place for place, node in enumerate(following)}
        met: list[int] = []
        for node in layer:
            ends = sorted(places[other] for other in layering.after[node])
            total += sum(len(met) - bisect_right(met, end) for end in ends)
            for end in ends:
                insort(met, end)
    return total
