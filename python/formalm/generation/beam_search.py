"""Beam search over token sequences, with exact termination.

The *score* of a sequence is the sum of the model's own log-probabilities of its tokens, including
an end token if there is one. It is neither renormalized over the mask nor divided by a length. A
score never rises as the sequence grows, so the search can stop exactly.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from formalm.generation.sequence import GeneratedSequence, NextTokens, PromptPlan

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

    def __init__(self, plan: PromptPlan, width: int, count: int) -> None:
        self.plan = plan
        self.rows = width
        self.count = count
        start = plan.new_sequence(0)
        self._live: list[GeneratedSequence] = [] if start.reason is not None else [start]
        self._ended: list[GeneratedSequence] = [] if start.reason is None else [start]

    @property
    def live(self) -> list[GeneratedSequence]:
        """The unfinished sequences, ordered by their token ids."""
        return self._live

    @property
    def sequences(self) -> list[GeneratedSequence]:
        """The best ``count`` ended sequences: complete ones first, then truncated ones, each by
        score.

        Dead ends are included only if there is nothing else.
        """
        alive = [sequence for sequence in self._ended if sequence.reason != "dead_end"]
        best = sorted(alive or self._ended, key=_order)[: self.count]
        for index, sequence in enumerate(best):
            sequence.index = index
        return best

    def step(self) -> None:
        """Replaces the unfinished sequences by the best that are one token longer."""
        next_tokens_of_each = [(sequence, sequence.next_tokens()) for sequence in self._live]
        open_ones = [
            (sequence, next_tokens)
            for sequence, next_tokens in next_tokens_of_each
            if next_tokens is not None
        ]
        for _, next_tokens in open_ones:
            next_tokens.check(None)
        self._ended += [
            sequence for sequence, next_tokens in next_tokens_of_each if next_tokens is None
        ]
        self._live = self._chosen(_Candidates(open_ones, self.rows))
        self._ended = sorted(self._ended, key=_order)[: self.count]
        for sequence in self._ended:
            sequence.position = None
        if self._live and max(sequence.score for sequence in self._live) <= self._bar():
            self._live = []
        self._live.sort(key=lambda sequence: sequence.token_ids)

    def _chosen(self, candidates: _Candidates) -> list[GeneratedSequence]:
        """Returns the unfinished sequences of the next step, and records those that end."""
        live: list[GeneratedSequence] = []
        cut = 0
        for rank, (score, child) in enumerate(candidates.sequences()):
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
        whole = sorted(sequence.score for sequence in self._ended if sequence.is_complete)
        return whole[-self.count] if len(whole) >= self.count else -np.inf


def _order(sequence: GeneratedSequence) -> Order:
    rank = 0 if sequence.is_complete else 1 if sequence.reason != "dead_end" else 2
    return rank, -sequence.score, len(sequence.token_ids), sequence.token_ids


class _Candidates:
    """All continuations by one token, best first."""

    def __init__(self, parents: list[tuple[GeneratedSequence, NextTokens]], width: int) -> None:
        self._parents = parents
        self._first = 2 * width
        allowed = [np.flatnonzero(next_tokens.logprobs > -np.inf) for _, next_tokens in parents]
        self._tokens = np.concatenate([np.empty(0, np.int64), *allowed])
        self._places = np.repeat(np.arange(len(parents)), [len(tokens) for tokens in allowed])
        self._scores = np.concatenate(
            [
                np.empty(0),
                *(
                    sequence.score + np.minimum(next_tokens.logprobs[tokens], 0.0)
                    for (sequence, next_tokens), tokens in zip(parents, allowed, strict=True)
                ),
            ]
        )

    def sequences(self) -> Iterator[tuple[float, GeneratedSequence]]:
        """Yields scores and sequences."""
        for row in self._ranked():
            parent, next_tokens = self._parents[int(self._places[row])]
            child = parent.fork()
            token_id = int(self._tokens[row])
            child.append_token(
                token_id,
                float(next_tokens.logprobs[token_id]),
                next_tokens.log_allowed_mass,
                next_tokens.log_byte_mass,
            )
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
