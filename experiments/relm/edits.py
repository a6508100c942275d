"""Figure 9: where edits fall if each step of a walk is drawn evenly, and if each text is."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from formalm import StringLiteral
from formalm.automata import Automaton

__all__ = ["edit_places", "figure_9"]

TEXT = "The man was trained in"
EARLY = 6


def edit_places(draws: int, seed: int) -> dict[str, float]:
    """Of texts one edit away from a beginning, the share whose edit is in the first six letters.

    ``steps``: each byte is drawn evenly among those that may follow. ``texts``: each text is.
    """
    original = TEXT.encode()
    automaton = (StringLiteral(TEXT).edits(1) - StringLiteral(TEXT)).to_automaton()
    generator = np.random.default_rng(seed)
    walked = [_walk(automaton, automaton.accepting, generator) for _ in range(draws)]
    drawn = [str(one).encode() for one in automaton.sample(draws, seed=seed)]
    return {
        "steps": float(np.mean([_place(original, one) < EARLY for one in walked])),
        "texts": float(np.mean([_place(original, one) < EARLY for one in drawn])),
    }


def figure_9(draws: int = 2000, seed: int = 0) -> list[tuple[str, str, str]]:
    """The paper's numbers beside ours."""
    found = edit_places(draws, seed)
    return [
        ("edits in the first 6 letters, steps drawn evenly", "80 %", f"{found['steps']:.0%}"),
        ("the same, texts drawn evenly", "about 20 to 27 %", f"{found['texts']:.0%}"),
    ]


def _walk(automaton: Automaton, accepting: frozenset[int], generator: np.random.Generator) -> bytes:
    state, data = automaton.start, b""
    while True:
        moves = list(_moves(automaton, state))
        stops = state in accepting
        chosen = int(generator.integers(len(moves) + stops))
        if chosen == len(moves):
            return data
        byte, state = moves[chosen]
        data += bytes([byte])


def _moves(automaton: Automaton, state: int) -> Iterator[tuple[int, int]]:
    for byte in range(32, 127):  # the alphabet of the paper is what can be typed
        target = automaton.step(state, byte)
        if target is not None:
            yield byte, target


def _place(original: bytes, edited: bytes) -> int:
    """The first byte that differs."""
    for place, (one, other) in enumerate(zip(original, edited, strict=False)):
        if one != other:
            return place
    return min(len(original), len(edited))
