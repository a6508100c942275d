"""A question as it is carried out: what was checked, and what was spent on it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from formalm._core import Matcher
from formalm.constraint import Constraint
from formalm.drivers.positions import STATE_BYTES
from formalm.drivers.progress import Progress
from formalm.drivers.roots import Root
from formalm.drivers.work import Work
from formalm.errors import ArgumentError, ModelError
from formalm.models import Position, Session
from formalm.models.base import log_softmax
from formalm.query.decoding import Decoding
from formalm.query.limits import Limits

__all__ = ["Found", "Task", "Truncated"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class Truncated(Exception):  # noqa: N818
    """Ends a driver from within; its text names the limit."""


@dataclass(frozen=True)
class Found:
    """A hit before it has its text.

    Attributes
    ----------
    data
        The bytes after ``given``.
    token_ids
        The tokens that spell them, or the most probable ones that do.
    logprob
        In nats.
    tokenizations
        How many token sequences were added up.
    given
        The beginning it goes on from.
    root
        The number of that.
    token_logprobs
        Of each of the tokens, and of the end with ``"complete"``.
    """

    data: bytes
    token_ids: tuple[int, ...]
    logprob: float
    tokenizations: int = 1
    given: bytes = b""
    root: int = 0
    token_logprobs: tuple[float, ...] = ()


@dataclass
class Task:
    """What all drivers on a frontier need to know."""

    session: Session
    constraint: Constraint
    roots: list[Root]
    decoding: Decoding
    renormalise: bool
    complete: bool
    batch_size: int
    max_tokens: int | None
    limits: Limits
    tolerance: float = 0.0
    normalise: bool = False
    state_bytes: int = STATE_BYTES
    started: float = field(default_factory=time.monotonic)
    cut_by_context: bool = False
    cut_by_beam: bool = False
    expansions: int = 0
    keep: Callable[[str], object] | None = None
    dropped: int = 0
    progress: Callable[[Progress], None] | None = None
    covered: float | None = None

    def work(self) -> Work:
        """What was spent so far."""
        session, seconds = self.session, time.monotonic() - self.started
        read = (session.tokens_computed, session.cache_hits)
        return Work(session.forwards, session.calls, *read, self.expansions, seconds)

    def keeps(self, data: bytes) -> bool:
        """Whether the query's own function lets a member count; those it drops are counted."""
        if self.keep is None or self.keep(data.decode(errors="replace")):
            return True
        self.dropped += 1
        return False

    def report(self, nodes: int, frontier: int, best_logprob: float | None) -> None:
        """Tell who asked how far it has come."""
        if self.progress is not None:
            work = (self.session.forwards, self.session.calls)
            seconds = time.monotonic() - self.started
            self.progress(Progress(*work, nodes, frontier, best_logprob, self.covered, seconds))

    def __post_init__(self) -> None:
        shown, rules = self.session.shown_tokens, self.decoding
        if shown is None or rules.is_plain or rules.temperature == 0:
            return
        known = rules.temperature == 1 or self.renormalise
        if rules.top_k is None or rules.top_k > shown or not known:
            raise ArgumentError(
                f"the model shows its {shown} most probable tokens, and {rules} needs more",
                hint="top_k up to that, with renormalise=True if there is a temperature",
            )

    def needs_all(self, what: str) -> None:
        """Refuse a partial model, unless ``decoding`` leaves what it shows and nothing else."""
        shown = self.session.shown_tokens
        if shown is not None and self.decoding.is_plain:
            raise ArgumentError(
                f"{what} needs every token's probability, the model shows its {shown} most"
                " probable ones",
                hint=f"decoding=Decoding(top_k={shown}) asks about these alone; mass, score and"
                " search with duplicates='show' keep the rest apart",
            )

    def room(self) -> int:
        """How many prefixes the next batch may have.

        Raises
        ------
        Truncated
            If a limit is reached.
        """
        seconds = self.limits.seconds
        if seconds is not None and time.monotonic() - self.started >= seconds:
            raise Truncated("seconds")
        most = self.limits.tokens_computed
        if most is not None and self.session.tokens_computed >= most:
            raise Truncated("tokens_computed")
        if self.limits.forwards is None:
            return self.batch_size
        left = self.limits.forwards - self.session.forwards
        if left < 1:
            raise Truncated("forwards")
        return min(self.batch_size, left)

    def may_go_on(self, length: int, root: Root) -> bool:
        """Whether a sequence of ``length`` tokens may be evaluated and continued."""
        if self.max_tokens is not None and length + (not self.complete) > self.max_tokens:
            return False
        return self.fits(length, root)

    def fits(self, length: int, root: Root) -> bool:
        """Whether the model can read so much."""
        context = self.session.model.context_length
        if context is not None and len(root.token_ids) + length > context:
            self.cut_by_context = True
            return False
        return True

    def answer(self, position: Position) -> Floats:
        """The distribution that is asked about, ``(width,)``.

        The rules of ``decoding`` come before the mask. ``normalise`` makes the model's own row sum
        to one first, which float32 models miss by about 1e-7.
        """
        logprobs = np.minimum(np.asarray(position.logprobs, dtype=np.float64), 0.0)
        if position.unseen:
            self._check_shown(position, logprobs)
        elif self.normalise:
            logprobs = log_softmax(logprobs)
        return self.decoding.distribution(logprobs, renormalise=self.renormalise)

    def _check_shown(self, position: Position, logprobs: Floats) -> None:
        """Refuse a row that has not all that ``decoding`` chooses among."""
        if self.decoding.is_plain:
            return
        wanted = 1 if self.decoding.temperature == 0 else self.decoding.top_k or 0
        if not position.surely_best(logprobs, wanted):
            raise ModelError(
                f"of the {wanted} most probable tokens the model did not show all",
                hint="a server that names token ids, and shows as many as it is asked for",
            )

    def unseen(
        self, position: Position, answer: Floats, allowed: Ids, accepting: bool
    ) -> tuple[float, float]:
        """Of allowed tokens that were not shown: what they have together, and any one, at most.

        ``allowed`` has no end tokens.
        """
        if not position.unseen or not self.decoding.is_plain:
            return 0.0, 0.0
        missing = int(np.count_nonzero(answer[allowed] == -np.inf))
        if accepting and self.complete:
            ends = list(self.session.vocabulary.end_token_ids)
            missing += int(np.count_nonzero(answer[ends] == -np.inf))
        if not missing:
            return 0.0, 0.0
        return min(position.unseen, missing * position.unseen_each), position.unseen_each

    def split(self, answer: Floats, allowed: Ids, accepting: bool) -> tuple[Ids, Floats, float]:
        """The tokens that may follow, their logprobs, and the logprob of the end.

        ``allowed`` has no end tokens.
        """
        ends = list(self.session.vocabulary.end_token_ids)
        end = float(np.logaddexp.reduce(answer[ends])) if accepting and ends else -np.inf
        if not self.decoding.is_plain:  # few tokens are left, of many that may be allowed
            left = np.flatnonzero(answer > -np.inf)
            places = np.minimum(np.searchsorted(allowed, left), max(0, len(allowed) - 1))
            ids = left[allowed[places] == left] if len(allowed) else allowed
            return ids, answer[ids], end
        logprobs = answer[allowed]
        possible = logprobs > -np.inf
        if possible.all():
            return allowed, logprobs, end
        return allowed[possible], logprobs[possible], end

    def step(self, position: Position, matcher: Matcher) -> tuple[Ids, Floats, float]:
        """:meth:`split` of an answer, for a matcher."""
        allowed = matcher.allowed_token_ids().astype(np.int64)
        ends = np.array(self.session.vocabulary.end_token_ids, dtype=np.int64)
        allowed = allowed[~np.isin(allowed, ends)]
        return self.split(self.answer(position), allowed, matcher.is_accepting)
