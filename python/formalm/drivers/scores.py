"""What a score returns, and what is proven on the way to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formalm.drivers.intervals import BoundStatus, Interval
from formalm.drivers.record import Origin, Record
from formalm.drivers.task import Task
from formalm.errors import ArgumentError
from formalm.query.query import Event, Query

__all__ = ["Score", "Scored"]

UNKNOWN = Interval(-math.inf, 0.0)


@dataclass(frozen=True, eq=False)
class Score:
    """How probable a text is.

    Attributes
    ----------
    text
        The text.
    token_ids
        The tokenizer's own encoding of it.
    logprobs
        Of each of these tokens, and of the end with ``event="complete"``; in nats.
    marginal
        The log of the sum over all tokenizations, between two bounds.
    tokenizations
        How many of them were added up.
    possible
        Whether some tokenization has a probability above zero under the decoding rule; None if a
        limit left it open.
    witness
        The most probable such tokenization, or None.
    truncated_by
        The limit that left the bounds apart, or None.
    status
        ``"exact"``: the bounds differ by rounding. ``"reached"``: by no more than ``tolerance``.
        ``"truncated"``: a limit stopped it. ``"interrupted"``: the user did; what is not known then
        is NaN in ``logprobs``, and between the bounds of ``marginal``.
    rank
        Its number among the texts, from 1.
    origin
        What :meth:`record` is made from.
    """

    text: str
    token_ids: tuple[int, ...] = field(repr=False)
    logprobs: npt.NDArray[np.float64] = field(repr=False)
    marginal: Interval
    tokenizations: int
    possible: bool | None
    witness: tuple[int, ...] | None = field(repr=False)
    truncated_by: str | None
    status: BoundStatus
    rank: int = field(repr=False)
    origin: Origin = field(repr=False)

    def record(self) -> Record:
        """Everything that is known of it, in the tokenizer's own encoding.

        Raises
        ------
        ArgumentError
            If it was interrupted before all of its tokens had been evaluated.
        """
        if math.isnan(self.logprob):
            raise ArgumentError(
                f"the score of {self.text!r:.60} was interrupted and has no record",
                hint="score it again, or leave out what has status 'interrupted'",
            )
        data = self.text.encode()
        return self.origin.record(self.rank, data, self.token_ids, self.logprob)

    @property
    def event(self) -> Event | None:
        """What the log-probabilities are of, see :func:`~formalm.score`."""
        return self.origin.query.event

    @property
    def logprob(self) -> float:
        """Of the tokenizer's own encoding: the sum of :attr:`logprobs`; NaN if one is not known."""
        return math.fsum(self.logprobs)


@dataclass
class Scored:
    """A text that is scored, and what is proven of it so far."""

    text: str
    query: Query
    front: tuple[int, ...]
    rank: int
    way: tuple[int, ...]
    logprobs: list[float]
    task: Task
    marginal: Interval = UNKNOWN
    tokenizations: int = 0

    def score(
        self,
        status: BoundStatus,
        truncated_by: str | None = None,
        possible: bool | None = None,
        witness: tuple[int, ...] | None = None,
    ) -> Score:
        """Its score, as far as it is known."""
        complete = self.query.event == "complete"
        marginal, tokenizations = self.marginal, self.tokenizations
        if marginal.low == -math.inf and len(self.logprobs) == len(self.way) + complete:
            own = math.fsum(self.logprobs)
            if own > -math.inf:  # a partial model may tell of these tokens and of no others
                marginal, tokenizations = Interval(own, max(own, marginal.high)), 1
                possible, witness = True, self.way
        origin = Origin(
            "score",
            self.query,
            self.task.session.vocabulary,
            self.front,
            (),
            b"",
            0.0,
            tuple(self.logprobs),
            complete,
            self.task.cost(),
        )
        return Score(
            self.text,
            self.way,
            np.array(self.logprobs),
            marginal,
            tokenizations,
            possible,
            witness,
            truncated_by,
            status,
            self.rank,
            origin,
        )
