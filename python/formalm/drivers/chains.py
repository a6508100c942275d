"""The probabilities along given token sequences, evaluated together where they agree."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from formalm.models import Position, Session

__all__ = ["chained"]

Floats = npt.NDArray[np.float64]
Ways = Sequence[tuple[int, ...]]


def chained(
    session: Session,
    front: tuple[int, ...],
    ways: Ways,
    answer: Callable[[Position], Floats],
    *,
    ended: bool = False,
    certain: bool = False,
    batch_size: int = 64,
) -> list[list[float]]:
    """The log-probability of each token of some sequences, after a common front.

    Parameters
    ----------
    session, front
        The model, and what stands in front of every sequence.
    ways
        Token sequences; equal beginnings are evaluated once.
    answer
        From a position to the distribution after it.
    ended
        Whether the probability of an end is added as a last entry.
    certain
        Whether minus infinity means what it says. Else a partial model that did not show a token
        is asked for the sequence's own log-probabilities.
    batch_size
        Most prefixes a call of the model.

    Returns
    -------
    list of list of float
        In nats, as long as each sequence, and one longer with ``ended``.
    """
    ends = list(session.vocabulary.end_token_ids)
    found: list[list[float]] = [[] for _ in ways]
    hidden: list[tuple[int, int]] = []
    level: dict[tuple[int, ...], Position] = {}
    if ended or any(ways):
        level = {(): session.start(front)}
    depth = 0
    while level:
        answers = {prefix: answer(position) for prefix, position in level.items()}
        wanted: dict[tuple[int, ...], None] = {}
        for number, (way, logprobs) in enumerate(zip(ways, found, strict=True)):
            before = way[:depth]
            if depth <= len(way) and not certain and level.get(before) and level[before].unseen:
                wanted_ids = ends if len(way) == depth else [way[depth]]
                if np.any(answers[before][wanted_ids] == -np.inf) and (ended or len(way) > depth):
                    hidden.append((number, depth))
            if len(way) > depth:
                logprobs.append(float(answers[way[:depth]][way[depth]]))
                if ended or len(way) > depth + 1:
                    wanted[way[: depth + 1]] = None
            elif ended and len(way) == depth:
                logprobs.append(float(np.logaddexp.reduce(answers[way][ends])))
        level = _extended(session, level, list(wanted), batch_size)
        depth += 1
    for number, depth in hidden:
        found[number][depth] = _told(session, front, ways[number], depth, ends)
    return found


def _told(
    session: Session, front: tuple[int, ...], way: tuple[int, ...], depth: int, ends: list[int]
) -> float:
    """The log-probability of a token that was not shown, or of an end after all of them."""
    before = (*front, *way[:depth])
    last = [way[depth]] if depth < len(way) else ends
    rows = session.sequence_logprobs([(*before, token_id) for token_id in last])
    return float(np.logaddexp.reduce([row[len(before)] for row in rows]))


def _extended(
    session: Session, level: dict[tuple[int, ...], Position], wanted: Ways, batch_size: int
) -> dict[tuple[int, ...], Position]:
    longer: dict[tuple[int, ...], Position] = {}
    for start in range(0, len(wanted), batch_size):
        chunk = wanted[start : start + batch_size]
        before = [level[prefix[:-1]] for prefix in chunk]
        after = session.extend(before, [prefix[-1] for prefix in chunk])
        longer.update(zip(chunk, after, strict=True))
    return longer
