"""Log-probabilities of the tokens of given sequences, evaluated together on shared prefixes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from formalm.models import Position, Session

__all__ = ["SequenceScores", "TokenLogprobs", "score_sequences"]

Floats = npt.NDArray[np.float64]
TokenLogprobs = Callable[[Sequence[int]], Floats]
"""Returns the log-probabilities of some tokens after one position."""
TokenSequences = Sequence[tuple[int, ...]]


def score_sequences(
    session: Session,
    common_prefix: tuple[int, ...],
    sequences: TokenSequences,
    answer: Callable[[Position], TokenLogprobs],
    *,
    ended: bool = False,
    certain: bool = False,
    batch_size: int = 64,
) -> list[list[float]]:
    """Returns the log-probability of each token of some sequences after a common prefix.

    Parameters
    ----------
    session, common_prefix
        The model, and the prefix before every sequence.
    sequences
        Token sequences; a prefix that several of them share is evaluated once.
    answer
        Maps a position to the log-probabilities of given tokens after it.
    ended
        If True, the probability of an end is added as a last entry.
    certain
        If True, minus infinity is taken literally. If False, a partial model that did not show a
        token is asked for the log-probabilities of the sequence.
    batch_size
        Maximum number of prefixes in one call of the model.

    Returns
    -------
    list of list of float
        In nats; as long as each sequence, and one longer with ``ended``.
    """
    scores = SequenceScores(
        session,
        common_prefix,
        sequences,
        answer,
        ended=ended,
        certain=certain,
        batch_size=batch_size,
    )
    for _ in scores.run():
        pass
    return scores.rows


class SequenceScores:
    """:func:`score_sequences`, one model batch at a time.

    Attributes
    ----------
    rows
        The values so far, at their final length; unknown entries are NaN.
    """

    def __init__(
        self,
        session: Session,
        common_prefix: tuple[int, ...],
        sequences: TokenSequences,
        answer: Callable[[Position], TokenLogprobs],
        *,
        ended: bool,
        certain: bool,
        batch_size: int,
    ) -> None:
        self.rows: list[list[float]] = [
            [math.nan] * (len(sequence) + ended) for sequence in sequences
        ]
        self._session, self._common_prefix, self._sequences = session, common_prefix, sequences
        self._answer, self._ended, self._certain = answer, ended, certain
        self._batch_size = batch_size
        self._ends = list(session.vocabulary.end_token_ids)

    def run(self) -> Iterator[None]:
        """Evaluates the sequences and yields before each batch; :attr:`rows` are valid after
        each.
        """
        hidden: list[tuple[int, int]] = []
        level: dict[tuple[int, ...], Position] = {}
        if any(self.rows):
            yield
            level = {(): self._session.start(self._common_prefix)}
        depth = 0
        while level:
            wanted = self._read(level, depth, hidden)
            longer: dict[tuple[int, ...], Position] = {}
            for start in range(0, len(wanted), self._batch_size):
                yield
                chunk = wanted[start : start + self._batch_size]
                before = [level[prefix[:-1]] for prefix in chunk]
                after = self._session.extend(before, [prefix[-1] for prefix in chunk])
                longer.update(zip(chunk, after, strict=True))
            level = longer
            depth += 1
        for number, depth in hidden:
            yield
            self.rows[number][depth] = self._fetch_hidden(self._sequences[number], depth)

    def _read(
        self,
        level: dict[tuple[int, ...], Position],
        depth: int,
        hidden: list[tuple[int, int]],
    ) -> list[tuple[int, ...]]:
        """Records the answers of a level and returns the sequences to evaluate next."""
        answers = {prefix: self._answer(position) for prefix, position in level.items()}
        wanted: dict[tuple[int, ...], None] = {}
        for number, (sequence, row) in enumerate(zip(self._sequences, self.rows, strict=True)):
            if depth >= len(row):
                continue
            before = sequence[:depth]
            last = [sequence[depth]] if depth < len(sequence) else self._ends
            values = answers[before](last)
            if level[before].unseen and not self._certain and np.any(values == -np.inf):
                hidden.append((number, depth))
            else:
                row[depth] = (
                    float(values[0]) if len(values) == 1 else float(np.logaddexp.reduce(values))
                )
            if depth + 1 < len(row):
                wanted[sequence[: depth + 1]] = None
        return list(wanted)

    def _fetch_hidden(self, sequence: tuple[int, ...], depth: int) -> float:
        """Returns the log-probability of a token that was not shown, or of an end after all
        tokens.
        """
        before = (*self._common_prefix, *sequence[:depth])
        last = [sequence[depth]] if depth < len(sequence) else self._ends
        rows = self._session.sequence_logprobs([(*before, token_id) for token_id in last])
        return float(np.logaddexp.reduce([row[len(before)] for row in rows]))
