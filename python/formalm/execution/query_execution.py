"""The context of a running query: model, constraint, options, limits and cost."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formalm._core import Matcher
from formalm.automata.text_of_bytes import shown_text
from formalm.constraint import Constraint
from formalm.cost import Cost, Progress, checked_progress
from formalm.errors import ArgumentError, ModelError
from formalm.execution.query_contexts import QueryContext
from formalm.execution.sequence_scores import TokenLogprobs
from formalm.models import Position, Session
from formalm.models.model_protocols import log_softmax
from formalm.query.decoding_rules import Decoding
from formalm.query.limits import Limits
from formalm.query.query import Query

__all__ = ["LimitReached", "QueryExecution", "RawHit", "log_of"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class LimitReached(Exception):  # noqa: N818
    """Stops a driver from inside; its message is the name of the limit."""


@dataclass(frozen=True)
class RawHit:
    """A hit before its text is decoded.

    Attributes
    ----------
    data
        The bytes after ``given``.
    token_ids
        The tokens that spell them, or the most probable ones that do.
    logprob
        In nats.
    tokenizations
        Number of token sequences that were summed.
    given
        The given prefix that it continues.
    context
        The index of that prefix.
    token_logprobs
        Log-probabilities of the tokens, and of the end with ``"complete"``.
    """

    data: bytes
    token_ids: tuple[int, ...]
    logprob: float
    tokenizations: int = 1
    given: bytes = b""
    context_index: int = 0
    token_logprobs: tuple[float, ...] = ()


@dataclass
class QueryExecution:
    """The settings of a running query, and the counters of its work."""

    session: Session
    constraint: Constraint
    contexts: list[QueryContext]
    decoding: Decoding
    renormalize: bool
    complete: bool
    batch_size: int
    max_tokens: int | None
    limits: Limits
    tolerance: float = 0.0
    normalize: bool = False
    started: float = field(default_factory=time.monotonic)
    cut_by_context: bool = False
    cut_by_beam: bool = False
    expansions: int = 0
    keep: Callable[[str], object] | None = None
    dropped: int = 0
    progress: Callable[[Progress], None] | None = None
    covered: float | None = None

    @classmethod
    def of(
        cls,
        query: Query,
        session: Session,
        constraint: Constraint,
        contexts: list[QueryContext],
        *,
        complete: bool,
        batch_size: int,
        tolerance: float = 0.0,
        normalize: bool = True,
        progress: Callable[[Progress], None] | None = None,
    ) -> QueryExecution:
        """Returns the execution of a query whose contexts are known."""
        decoding, renormalize = query.suffix_decoding
        return cls(
            session,
            constraint,
            contexts,
            decoding,
            renormalize,
            complete,
            batch_size,
            query.max_tokens,
            query.limits,
            tolerance,
            normalize,
            keep=query.keep,
            progress=checked_progress(progress),
        )

    def cost(self) -> Cost:
        """Returns the cost so far."""
        session, seconds = self.session, time.monotonic() - self.started
        read = (session.tokens_computed, session.cache_hits)
        return Cost(session.forwards, session.calls, *read, self.expansions, seconds)

    def keeps(self, data: bytes) -> bool:
        """Returns True if the query's ``keep`` accepts a member; counts the members it drops."""
        if self.keep is None or self.keep(shown_text(data)):
            return True
        self.dropped += 1
        return False

    def report(self, nodes: int, frontier: int, best_logprob: float | None) -> None:
        """Reports progress."""
        if self.progress is not None:
            self.progress(Progress(self.cost(), nodes, frontier, best_logprob, self.covered))

    def __post_init__(self) -> None:
        shown, rules = self.session.shown_tokens, self.decoding
        if shown is None or rules.is_plain or rules.temperature == 0:
            return
        known = rules.temperature == 1 or self.renormalize
        if rules.top_k is None or rules.top_k > shown or not known:
            raise ArgumentError(
                f"{rules} needs more than the {shown} most probable tokens that the model reports",
                hint=f"pass top_k <= {shown}; add renormalize=True if temperature is not 1",
            )

    def needs_all(self, what: str) -> None:
        """Refuses a partial model, unless ``decoding`` keeps only tokens that it shows."""
        shown = self.session.shown_tokens
        if shown is not None and self.decoding.is_plain:
            raise ArgumentError(
                f"{what} needs the probability of every token, but the model reports only its"
                f" {shown} most"
                " probable ones",
                hint=f"pass decoding=Decoding(top_k={shown}) to consider only these; mass, score"
                " and"
                " search with unique='tokens' bound the rest",
            )

    def room(self) -> int:
        """Returns the maximum number of prefixes in the next batch.

        Raises
        ------
        LimitReached
            If a limit is reached.
        """
        seconds = self.limits.seconds
        if seconds is not None and time.monotonic() - self.started >= seconds:
            raise LimitReached("seconds")
        most = self.limits.tokens_computed
        if most is not None and self.session.tokens_computed >= most:
            raise LimitReached("tokens_computed")
        if self.limits.forwards is None:
            return self.batch_size
        left = self.limits.forwards - self.session.forwards
        if left < 1:
            raise LimitReached("forwards")
        return min(self.batch_size, left)

    def room_for(
        self, nodes: int, frontier: int, best_logprob: float | None, memory_bytes: int
    ) -> int:
        """Reports progress and returns :meth:`room`, also within the limit of memory."""
        self.report(nodes, frontier, best_logprob)
        limit = self.limits.memory_bytes
        if limit is not None and memory_bytes > limit:
            raise LimitReached("memory_bytes")
        return self.room()

    def fits(self, length: int, context: QueryContext) -> bool:
        """Returns True if the model can read that many tokens."""
        context_length = self.session.model.context_length
        if context_length is not None and len(context.token_ids) + length > context_length:
            self.cut_by_context = True
            return False
        return True

    def answer(self, position: Position) -> TokenLogprobs:
        """Returns the log-probabilities of given tokens in the distribution that the query is
        about.
        """
        self.check_shown(position)
        if self.decoding.is_plain:
            row = position.row
            offset = row.log_sum if self.normalize and not position.unseen else row.offset
            self.session.row_error = max(self.session.row_error, row.error)
            return lambda token_ids: np.minimum(row.take(token_ids) - offset, 0.0)
        found = self.decoding.distribution(self._row(position), renormalize=self.renormalize)
        return lambda token_ids: found[list(token_ids)]

    def _row(self, position: Position) -> Floats:
        """Returns the model's row in float64.

        ``normalize`` makes the row sum to one first, which float32 models miss by about 1e-7.
        """
        row = np.minimum(np.asarray(position.logprobs, dtype=np.float64), 0.0)
        return log_softmax(row) if self.normalize and not position.unseen else row

    def check_shown(self, position: Position) -> None:
        """Refuses an answer that lacks tokens among which ``decoding`` chooses."""
        if not position.unseen or self.decoding.is_plain:
            return
        wanted = 1 if self.decoding.temperature == 0 else self.decoding.top_k or 0
        if not position.surely_best(position.logprobs, wanted):
            raise ModelError(
                f"the model must report the {wanted} most probable tokens, but some are missing",
                hint="use a server that returns token ids and as many tokens as requested",
            )

    def unseen(self, position: Position, allowed: Ids, accepting: bool) -> tuple[float, float]:
        """Returns upper bounds on the total of the allowed tokens not shown, and on each of them.

        ``allowed`` has no end tokens.
        """
        if not position.unseen or not self.decoding.is_plain:
            return 0.0, 0.0
        missing = int(np.count_nonzero(position.logprobs[allowed] == -np.inf))
        if accepting and self.complete:
            ends = list(self.session.vocabulary.end_token_ids)
            missing += int(np.count_nonzero(position.logprobs[ends] == -np.inf))
        if not missing:
            return 0.0, 0.0
        return min(position.unseen, missing * position.unseen_each), position.unseen_each

    def split(self, position: Position, allowed: Ids, accepting: bool) -> tuple[Ids, Floats, float]:
        """Returns the tokens that may follow, their log-probabilities, and that of the end.

        The rules of ``decoding`` apply before the mask.

        Parameters
        ----------
        position
            The model's answer.
        allowed
            The tokens that the language allows, ascending, without end tokens.
        accepting
            True if the language allows an end.
        """
        if not self.decoding.is_plain:  # few of many allowed tokens are left
            return self._split_few(position, allowed, accepting)
        answer = self._row(position)
        end = (
            _log_sum(answer[list(self.session.vocabulary.end_token_ids)]) if accepting else -np.inf
        )
        values = answer[allowed]
        possible = values > -np.inf
        if possible.all():
            return allowed, values, end
        return allowed[possible], values[possible], end

    def kept(self, position: Position) -> tuple[Ids, Floats]:
        """Returns the tokens that ``decoding`` leaves of an answer, ascending, and their
        log-probabilities; without rules, those that the model shows.
        """
        if self.decoding.is_plain:
            shown = self._row(position)
            left = np.flatnonzero(shown > -np.inf)
            return left, shown[left]
        self.check_shown(position)
        row = self._row(position) if self.normalize else position.logprobs
        left, values = self.decoding.kept(row, renormalize=self.renormalize)
        order = np.argsort(left)
        return left[order], np.minimum(values, 0.0)[order]

    def _split_few(
        self, position: Position, allowed: Ids, accepting: bool
    ) -> tuple[Ids, Floats, float]:
        left, values = self.kept(position)
        end = -np.inf
        if accepting and self.session.vocabulary.end_token_ids:
            ends = self.session.vocabulary.end_token_ids
            end = _log_sum(np.concatenate([values[left == token_id] for token_id in ends]))
        if not len(allowed):
            return allowed, values[:0], end
        places = np.minimum(np.searchsorted(allowed, left), len(allowed) - 1)
        may = (allowed[places] == left) & (values > -np.inf)
        return left[may], values[may], end

    def step(self, position: Position, matcher: Matcher) -> tuple[Ids, Floats, float]:
        """Returns :meth:`split` of an answer, for a matcher."""
        allowed = matcher.allowed_token_ids().astype(np.int64)
        ends = np.array(self.session.vocabulary.end_token_ids, dtype=np.int64)
        allowed = allowed[~np.isin(allowed, ends)]
        return self.split(position, allowed, matcher.is_accepting)


def log_of(probability: float) -> float:
    """Returns the logarithm of a probability; minus infinity for 0."""
    return math.log(probability) if probability > 0 else -math.inf


def _log_sum(logprobs: Floats) -> float:
    return float(np.logaddexp.reduce(logprobs)) if len(logprobs) else -np.inf
