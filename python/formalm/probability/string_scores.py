"""``score``: log-probabilities of given strings, canonical and summed over tokenizations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from formalm.constraint import Constraint
from formalm.cost import Progress, Series
from formalm.errors import ArgumentError
from formalm.execution.arguments import Prompt, checked_tolerance, positive, prefix_token_ids
from formalm.execution.query_contexts import canonical_tokens, query_contexts
from formalm.execution.query_execution import LimitReached, QueryExecution, log_of
from formalm.execution.query_setup import refuse_search_limits, require_end_token, resolved_query
from formalm.execution.sequence_scores import SequenceScores
from formalm.languages import StringLiteral
from formalm.models import LanguageModel, Session
from formalm.probability.bounds import BoundStatus, Interval, ProbabilityBounds
from formalm.query.decoding_rules import Decoding
from formalm.query.limits import Limits
from formalm.query.query import Event, Query, TokenEvent
from formalm.records.record import Origin, Record
from formalm.searching.best_first_search import search

__all__ = ["Score", "Scored", "score"]

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


def score(
    model: LanguageModel,
    texts: Sequence[str],
    *,
    prompt: Prompt = None,
    event: TokenEvent = "token_prefix",
    tokenization: Literal["all", "canonical"] = "all",
    decoding: Decoding | None = None,
    renormalize: bool = False,
    bos: Literal["auto"] | int | None = "auto",
    limits: Limits | None = None,
    tolerance: float = 0.0,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
) -> list[Score]:
    """Returns the log-probabilities of strings: of the tokenizer's encoding, and of all
    tokenizations.

    Parameters
    ----------
    model, prompt, bos, batch_size
        As in :func:`~formalm.search`.
    texts
        The strings; each is encoded separately.
    event
        ``"token_prefix"``, the default: the output starts with these tokens, whatever follows, as
        in a search. ``"complete"``: the output ends after them.
    tokenization
        ``"all"``, or ``"canonical"``: scores and sums only the tokens that the tokenizer produces
        for prompt and string together.
    decoding, renormalize
        As in :class:`~formalm.Query`.
    limits
        Limits for each string on summing its tokenizations. A string of n bytes can have 2ⁿ.
    tolerance
        The probability of its tokenizations that may stay undecided; 0 sums all.
    progress
        Called with a :class:`~formalm.cost.Progress` before each batch.

    Returns
    -------
    list of Score
        One for each string, in the same order.

    Raises
    ------
    ArgumentError
        For an option out of range, or a value that is not a string.

    Notes
    -----
    The tokenizer's encodings of all strings come first, then the other tokenizations of each.
    Ctrl-C returns what is proven: finished strings as they are, others with the status
    ``"interrupted"``.

    Examples
    --------
    >>> from formalm import TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], end_token_ids=[3],
    ...     encode=lambda text: [2] if text == "ab" else [0])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.2, 0.2, 0.1])
    >>> (found,) = score(model, ["ab"])
    >>> round(found.logprob, 4), round(found.marginal.low, 4), found.tokenizations
    (-1.6094, -1.204, 2)
    """
    positive("batch_size", batch_size, optional=False)
    tolerance = checked_tolerance(tolerance)
    chosen = Limits() if limits is None else limits
    handed: object = chosen
    if not isinstance(handed, Limits):
        what = "limits must be Limits(forwards=…, seconds=…, memory_bytes=…)"
        raise ArgumentError(f"{what} for a score, got {limits!r:.60}")
    refuse_search_limits(chosen, "a score")
    listed = _checked_texts(texts)
    if event not in ("complete", "token_prefix"):
        raise ArgumentError(
            f"event must be 'complete' or 'token_prefix' for a score, got {event!r}"
        )
    session = Session(model)
    # A log-probability checks the row that it reads.
    session.defers_checks = decoding is None or decoding.is_plain
    if event == "complete":
        require_end_token(session)
    fields: dict[str, object] = {"decoding": decoding or Decoding(), "renormalize": renormalize}
    fields |= {"event": event, "tokenization": tokenization}
    queries = [
        resolved_query(StringLiteral(text), **fields, bos=bos, unique="tokens", limits=chosen)
        for text in listed
    ]
    if not queries:
        return []
    front = prefix_token_ids(session, prompt, bos)
    ways = [_encoded(session, front, text, tokenization) for text in listed]
    series = Series(progress)
    resolved = _execution(session, queries[0], prompt, batch_size)
    resolved.progress = series.tell
    rows, whole = _own_logprobs(resolved, front, ways)
    series.over(resolved.cost())
    scores = []
    for number, query in enumerate(queries):
        one = Scored(listed[number], query, front, number + 1, ways[number], rows[number], resolved)
        try:
            if not whole:
                raise KeyboardInterrupt
            scores.append(_scored(model, one, prompt, tolerance, batch_size, series))
        except KeyboardInterrupt:
            whole = False
            scores.append(one.score("interrupted"))
    return scores


def _own_logprobs(
    execution: QueryExecution, front: tuple[int, ...], ways: list[tuple[int, ...]]
) -> tuple[list[list[float]], bool]:
    """Returns the log-probabilities of each string's own encoding, and True if not interrupted."""
    chains = SequenceScores(
        execution.session,
        front,
        ways,
        execution.answer,
        ended=execution.complete,
        certain=not execution.decoding.is_plain,
        batch_size=execution.batch_size,
    )
    try:
        for _ in chains.run():
            execution.report(0, 0, None)
    except KeyboardInterrupt:
        return chains.rows, False
    return chains.rows, True


def _encoded(
    session: Session, front: tuple[int, ...], text: str, tokenization: str
) -> tuple[int, ...]:
    """Returns the tokenizer's own tokens: of the string alone, or of the string after the
    prompt.
    """
    if tokenization == "canonical":
        return tuple(canonical_tokens(session.vocabulary, front, text.encode()))
    return tuple(session.vocabulary.encode(text)) if text else ()


def _scored(
    model: LanguageModel,
    one: Scored,
    prompt: Prompt,
    tolerance: float,
    batch_size: int,
    series: Series,
) -> Score:
    """Returns the score of a string, and records in it what is proven on the way."""
    count = 0

    def counted(_: bytes) -> object:
        nonlocal count
        count += 1
        return None

    if one.query.tokenization == "canonical" and one.execution.session.shown_tokens is None:
        own = math.fsum(one.logprobs)
        if own > -math.inf:  # the only tokenization there is
            slack = one.execution.session.row_error * len(one.logprobs) + 1e-15 * (16 - own)
            one.marginal, one.tokenizations = Interval(own - slack, min(0.0, own + slack)), 1
            return one.score("exact", None, True, one.way)
    # The language is the string itself, so an accepted text was spelled by whole tokens.
    session = Session(model)
    one.execution = _execution(session, one.query, prompt, batch_size)
    one.execution.progress = series.tell
    bounds = ProbabilityBounds(one.execution, str(one.query.event), counted)
    truncated = None
    try:
        for _ in bounds.run():
            # Between two batches, no mass is in transit between two sums.
            one.marginal, one.tokenizations = _marginal(bounds), count
            if bounds.undecided <= tolerance:
                break
    except LimitReached as reached:
        truncated = str(reached)
    one.marginal, one.tokenizations = _marginal(bounds), count
    if truncated is None and bounds.undecided > tolerance:
        truncated = "unseen" if bounds.hidden else "length"
    series.over(one.execution.cost())
    found = _witness(model, one.query, prompt, batch_size, series)
    status: BoundStatus = "reached" if bounds.undecided else "exact"
    return one.score(status if truncated is None else "truncated", truncated, *found)


def _marginal(bounds: ProbabilityBounds) -> Interval:
    decided = bounds.low(None)
    slack = bounds.relative_error + 1e-15
    low, high = decided * (1 - slack), min(1.0, decided * (1 + slack) + bounds.undecided)
    return Interval(log_of(low), log_of(high))


def _witness(
    model: LanguageModel, query: Query, prompt: Prompt, batch_size: int, series: Series
) -> tuple[bool | None, tuple[int, ...] | None]:
    """Returns whether the rule leaves any token sequence, and the most probable one."""
    limits = replace(query.limits, hits=1)
    options: dict[str, Any] = {"batch_size": batch_size, "progress": series.tell}
    found = search(model, query, prompt=prompt, limits=limits, **options)
    hit = next(found, None)
    series.over(found.cost)
    if found.status == "interrupted":
        raise KeyboardInterrupt
    if hit is not None:
        return True, hit.token_ids
    return (False if found.status == "exhausted" else None), None


def _execution(session: Session, query: Query, prompt: Prompt, batch_size: int) -> QueryExecution:
    tokenization: Any = query.tokenization
    constraint = Constraint(query.effective_language, session.vocabulary, tokenization=tokenization)
    contexts = query_contexts(session, constraint, query, prompt, shares=True)
    complete = query.event == "complete"
    return QueryExecution.of(
        query, session, constraint, contexts, complete=complete, batch_size=batch_size
    )


def _checked_texts(texts: object) -> list[str]:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise ArgumentError(f"texts must be a list of strings, got {type(texts).__name__}")
    for text in texts:
        if not isinstance(text, str):
            raise ArgumentError(f"texts must be strings, got {type(text).__name__}")
    return list(texts)
