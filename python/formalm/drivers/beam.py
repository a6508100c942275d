"""Beam search over token sequences, with exact termination.

The *score* of a sequence is the sum of the model's own log-probabilities of its tokens, including
an end token if there is one. It is neither renormalized over the mask nor divided by a length. A
score never rises as the sequence grows, so the search can stop exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from formalm.drivers.draft import Draft, Outlook, Plan

__all__ = ["Beam"]

Order = tuple[int, float, int, list[int]]


class Beam:
    """The beam search of one prompt.

    Each step ranks all continuations of the unfinished sequences by score; ties go to the smaller
    token ids. The first ``width`` unfinished ones are kept for the next step. A continuation that
    ends is kept if it ranks among the first ``width`` of all. ``width=1`` is greedy decoding.

    The search is done when ``count`` sequences have ended and no unfinished one scores above the
    last of them, or when none is unfinished.
    """

    def __init__(self, plan: Plan, width: int, count: int) -> None:
        self.plan = plan
        self.rows = width
        self.count = count
        start = plan.draft(0)
        self._live: list[Draft] = [] if start.reason is not None else [start]
        self._ended: list[Draft] = [] if start.reason is None else [start]

    @property
    def live(self) -> list[Draft]:
        """The unfinished sequences, ordered by their token ids."""
        return self._live

    @property
    def drafts(self) -> list[Draft]:
        """The best ``count`` ended sequences: complete ones first, then truncated ones, each by
        score.

        Dead ends are included only if there is nothing else.
        """
        alive = [draft for draft in self._ended if draft.reason != "dead_end"]
        best = sorted(alive or self._ended, key=_order)[: self.count]
        for index, draft in enumerate(best):
            draft.index = index
        return best

    def step(self) -> None:
        """Replaces the unfinished sequences by the best that are one token longer."""
        outlooks = [(draft, draft.look()) for draft in self._live]
        open_ones = [(draft, outlook) for draft, outlook in outlooks if outlook is not None]
        for _, outlook in open_ones:
            outlook.check(None)
        self._ended += [draft for draft, outlook in outlooks if outlook is None]
        self._live = self._chosen(_Candidates(open_ones, self.rows))
        self._ended = sorted(self._ended, key=_order)[: self.count]
        for draft in self._ended:
            draft.position = None
        if self._live and max(draft.score for draft in self._live) <= self._bar():
            self._live = []
        self._live.sort(key=lambda draft: draft.token_ids)

    def _chosen(self, candidates: _Candidates) -> list[Draft]:
        """Returns the unfinished sequences of the next step, and records those that end."""
        live: list[Draft] = []
        cut = 0
        for rank, (score, child) in enumerate(candidates.drafts()):
            if child.reason is None:
                live.append(child)
            elif child.reason in ("length", "context"):
                self._ended.append(child)
                cut += 1
            elif rank < self.rows:
                self._ended.append(child)
            # From here on, no ended sequence is kept and no unfinished one can be returned.
            if len(live) + cut == self.rows or (rank + 1 >= self.rows and score <= self._bar()):
                break
        return live

    def _bar(self) -> float:
        """The score of the last sequence certain to be returned; unfinished ones must exceed it."""
        whole = sorted(draft.score for draft in self._ended if draft.is_complete)
        return whole[-self.count] if len(whole) >= self.count else -np.inf


def _order(draft: Draft) -> Order:
    rank = 0 if draft.is_complete else 1 if draft.reason != "dead_end" else 2
    return rank, -draft.score, len(draft.token_ids), draft.token_ids


class _Candidates:
    """All continuations by one token, best first."""

    def __init__(self, parents: list[tuple[Draft, Outlook]], width: int) -> None:
        self._parents = parents
        self._first = 2 * width
        allowed = [np.flatnonzero(outlook.logprobs > -np.inf) for _, outlook in parents]
        self._tokens = np.concatenate([np.empty(0, np.int64), *allowed])
        self._places = np.repeat(np.arange(len(parents)), [len(tokens) for tokens in allowed])
        self._scores = np.concatenate(
            [
                np.empty(0),
                *(
                    draft.score + np.minimum(outlook.logprobs[tokens], 0.0)
                    for (draft, outlook), tokens in zip(parents, allowed, strict=True)
                ),
            ]
        )

    def drafts(self) -> Iterator[tuple[float, Draft]]:
        """Yields scores and sequences."""
        for row in self._ranked():
            parent, outlook = self._parents[int(self._places[row])]
            child = parent.fork()
            child.take(int(self._tokens[row]), outlook)
            yield float(self._scores[row]), child

    def _ranked(self) -> Iterator[np.int64]:
        """Yields rows by score, and sorts more of them only on demand."""
        size, done = self._first, 0
        while done < len(self._scores):
            rows = self._best(size)
            # Parents are ordered by their tokens and have equal length.
            keys = (self._tokens[rows], self._places[rows], -self._scores[rows])
            ranked = rows[np.lexsort(keys)]
            yield from ranked[done:]
            size, done = 2 * len(rows), len(rows)

    def _best(self, size: int) -> npt.NDArray[np.int64]:
        """Returns the best ``size`` rows, and all that tie with the last of them."""
        if size >= len(self._scores):
            return np.arange(len(self._scores))
        place = len(self._scores) - size
        return np.flatnonzero(self._scores >= np.partition(self._scores, place)[place])
