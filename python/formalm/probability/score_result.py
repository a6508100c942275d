"""``Score``: the log-probability of a string, with bounds over all its tokenizations."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError
from formalm.execution.query_execution import QueryExecution
from formalm.probability.mass_intervals import BoundStatus, Interval
from formalm.query.query import Event, Query
from formalm.records.record import Origin, Record

__all__ = ["Score", "Scored"]

UNKNOWN = Interval(-math.inf, 0.0)


@dataclass(frozen=True, eq=False)
class Score:
    """The log-probability of a string.

    Attributes
    ----------
    text
        The string.
    token_ids
        The tokenizer's own encoding of it.
    logprobs
        Log-probabilities of these tokens, and of the end with ``event="complete"``; in nats.
    marginal
        Bounds on the log of the sum over all tokenizations.
    tokenizations
        Number of tokenizations that were summed.
    possible
        Whether some tokenization has a nonzero probability under the decoding rule; None if a limit
        left it open.
    witness
        The most probable such tokenization, or None.
    truncated_by
        The limit that stopped the bounds from closing, or None.
    status
        ``"exact"``: the bounds differ by rounding error. ``"reached"``: by at most ``tolerance``.
        ``"truncated"``: a limit stopped it. ``"interrupted"``: the user stopped it; unknown values
        are then NaN in ``logprobs``, and lie between the bounds of ``marginal``.
    rank
        Its number among the strings, from 1.
    origin
        The context from which :meth:`record` makes a record.
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
        """Returns a record with everything known about the tokenizer's own encoding.

        Raises
        ------
        ArgumentError
            If the call was interrupted before all tokens were evaluated.
        """
        if math.isnan(self.logprob):
            raise ArgumentError(
                f"the score of {self.text!r:.60} must be complete to have a record, got status"
                " 'interrupted'",
                hint="score the string again, or drop scores with status 'interrupted'",
            )
        data = self.text.encode()
        return self.origin.record(self.rank, data, self.token_ids, self.logprob)

    @property
    def event(self) -> Event | None:
        """The event that the log-probabilities refer to, see :func:`~formalm.score`."""
        return self.origin.query.event

    @property
    def logprob(self) -> float:
        """Sum of :attr:`logprobs`, for the tokenizer's own encoding; NaN if one is unknown."""
        return math.fsum(self.logprobs)


@dataclass
class Scored:
    """A string during scoring, and what is proven about it so far."""

    text: str
    query: Query
    front: tuple[int, ...]
    rank: int
    way: tuple[int, ...]
    logprobs: list[float]
    execution: QueryExecution
    marginal: Interval = UNKNOWN
    tokenizations: int = 0

    def score(
        self,
        status: BoundStatus,
        truncated_by: str | None = None,
        possible: bool | None = None,
        witness: tuple[int, ...] | None = None,
    ) -> Score:
        """Returns its score, as far as it is known."""
        complete = self.query.event == "complete"
        marginal, tokenizations = self.marginal, self.tokenizations
        if marginal.low == -math.inf and len(self.logprobs) == len(self.way) + complete:
            own = math.fsum(self.logprobs)
            if own > -math.inf:  # a partial model may report these tokens and no others
                marginal, tokenizations = Interval(own, max(own, marginal.high)), 1
                possible, witness = True, self.way
        origin = Origin(
            "score",
            self.query,
            self.execution.session.vocabulary,
            self.front,
            (),
            b"",
            0.0,
            tuple(self.logprobs),
            complete,
            self.execution.cost(),
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
