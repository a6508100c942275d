"""``sample``: draw members from a model under one of four target distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from formalm.automata.text_of_bytes import shown_text
from formalm.constraint import Constraint
from formalm.cost import Cost, Progress, checked_progress
from formalm.errors import ArgumentError, LanguageError
from formalm.execution.arguments import UNSET, Prompt, positive
from formalm.execution.query_contexts import query_contexts
from formalm.execution.query_execution import LimitReached, QueryExecution
from formalm.execution.query_setup import (
    constraint_of,
    refuse_keep,
    refuse_search_limits,
    require_end_token,
    required_event,
    resolved_query,
    with_event,
)
from formalm.languages import Language
from formalm.models import LanguageModel, Session
from formalm.query.decoding_rules import chosen_seed
from formalm.query.events import any_string, event_language
from formalm.query.limits import Limits
from formalm.query.prefixes import anything
from formalm.query.query import Event, Query, Target
from formalm.records.record import Origin, Record
from formalm.sampling.draws import Draw, gumbel_order, local_draws, posterior_draws
from formalm.sampling.mean_estimate import (
    Estimate,
    bounded_mean,
    checked_confidence,
    effective_size,
)
from formalm.sampling.random_walks import RandomWalks
from formalm.sampling.uniform_sampling import uniform_draws

__all__ = ["Sample", "SampleStatus", "Samples", "sample"]

SampleStatus = Literal["done", "exhausted", "truncated", "interrupted"]


@dataclass(frozen=True)
class Sample:
    """A member that was drawn.

    Attributes
    ----------
    text
        The member, including ``given``; bytes that are not UTF-8 show as U+FFFD. For a local walk
        that ended outside the language, the text up to there.
    data
        The text as bytes.
    given
        The part that was given.
    token_ids
        The tokens after ``given``, without the end.
    logprob
        The model's log-probability of these tokens and the end after them, in nats, including the
        share of the given prefix; minus infinity outside the language, or if ``decoding`` excludes
        it.
    log_weight
        The log weight, in nats. Local: the log of the model's probability over that of the draw.
        Posterior and uniform: 0. Without replacement: the log of its probability over that of being
        drawn.
    rank
        Its number among the draws, from 1.
    origin
        The context from which :meth:`record` makes a record.
    """

    text: str
    data: bytes = field(repr=False)
    given: str = field(repr=False)
    token_ids: tuple[int, ...] = field(repr=False)
    logprob: float
    log_weight: float
    rank: int = field(repr=False, compare=False)
    origin: Origin = field(repr=False, compare=False)

    def record(self) -> Record:
        """Returns a record with everything known about the draw."""
        return self.origin.record(
            self.rank,
            self.data,
            self.token_ids,
            self.logprob,
            log_weight=self.log_weight,
        )


@dataclass(frozen=True)
class Samples(Sequence[Sample]):
    """Draws, and estimates from them.

    Attributes
    ----------
    draws
        The samples in the order drawn.
    event
        The event.
    target
        The target distribution.
    status
        ``"done"``; ``"exhausted"``: there are no more members; ``"truncated"``: a limit stopped it;
        ``"interrupted"``: the user stopped it.
    truncated_by
        The limit, or ``"context"`` if members beyond the model's context were omitted.
    seed
        The seed of the random numbers.
    attempts
        Number of walks started, including rejected ones.
    dropped
        Number of members that the query's function ``keep`` dropped, each counted once.
    cost
        The cost of all draws.
    """

    draws: tuple[Sample, ...]
    event: Event
    target: Target
    status: SampleStatus
    truncated_by: str | None
    seed: int
    attempts: int
    dropped: int
    cost: Cost = field(repr=False, compare=False)

    @property
    def forwards(self) -> int:
        """Prefixes that the model evaluated."""
        return self.cost.forwards

    @property
    def calls(self) -> int:
        """Calls of the model; each evaluates a batch of prefixes."""
        return self.cost.calls

    def __len__(self) -> int:
        return len(self.draws)

    def __getitem__(self, place: int) -> Sample:  # type: ignore[override]
        return self.draws[place]

    def __iter__(self) -> Iterator[Sample]:
        return iter(self.draws)

    @property
    def log_weights(self) -> npt.NDArray[np.float64]:
        """Log weights of all draws, ``(len(self),)``."""
        return np.array([draw.log_weight for draw in self.draws])

    @property
    def effective_size(self) -> float:
        """Kish's effective size: the number of posterior draws that these are worth."""
        return effective_size(self.log_weights)

    def mass(self, confidence: float = 0.95) -> Estimate:
        """Estimates the probability of the language without bias from local draws.

        Raises
        ------
        ArgumentError
            For other targets: posterior draws do not determine it, and sums without replacement
            have no interval; :func:`~formalm.mass` proves one.
        """
        return self._weighted(np.exp(self.log_weights), confidence)

    def mean(self, function: Callable[[str], float], confidence: float = 0.95) -> Estimate:
        """Estimates the mean of a function from 0 to 1 under P(string | string is a member).

        For uniform draws it is the mean over the members, independent of the model. For local draws
        the value is a ratio of two weighted estimates, and the interval covers both together.

        Raises
        ------
        ArgumentError
            If a value is not a number from 0 to 1, or for draws without replacement.
        """
        confidence = checked_confidence(confidence)
        if not callable(function):
            raise ArgumentError(
                f"function must be a callable that takes a string, got {function!r:.60}"
            )
        values = np.array(
            [
                _value(function, draw.text) if draw.log_weight > -math.inf else 0.0
                for draw in self.draws
            ]
        )
        if self.target in ("posterior", "uniform"):
            low, high = bounded_mean(values, confidence)
            value = float(values.mean()) if len(values) else math.nan
            return Estimate(value, low, high, confidence, float(len(values)))
        weights = np.exp(self.log_weights)
        each = (1 + confidence) / 2
        above, below = self._weighted(weights * values, each), self._weighted(weights, each)
        value = above.value / below.value if below.value else math.nan
        low = above.low / below.high if below.high else 0.0
        high = min(1.0, above.high / below.low) if below.low else 1.0
        return Estimate(value, low, high, confidence, self.effective_size)

    def _weighted(self, values: npt.NDArray[np.float64], confidence: float) -> Estimate:
        if self.target != "local":
            raise ArgumentError(
                f"mass estimates require target='local', got {self.target!r}",
                hint="sample with target='local', or compute bounds with formalm.mass",
            )
        low, high = bounded_mean(values, confidence)
        value = float(values.mean()) if len(values) else math.nan
        return Estimate(value, low, high, confidence, self.effective_size)


def _value(function: Callable[[str], float], text: str) -> float:
    """Returns a function's value for a text: a number from 0 to 1, or a bool."""
    value: object = function(text)
    try:
        number = math.nan if isinstance(value, (str, bytes)) else float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= 1:
        raise ArgumentError(
            f"function must return values from 0 to 1, got {value!r:.60} for {text!r:.60}"
        )
    return number


TARGETS: tuple[Target, ...] = get_args(Target)


def sample(
    model: LanguageModel,
    query: Query | Language | Constraint | Sequence[str],
    *,
    prompt: Prompt = None,
    event: Event = UNSET,
    n: int = 1,
    target: Target = "posterior",
    seed: int | None = None,
    limits: Limits | None = None,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
) -> Samples:
    """Draws members of a language, or outputs in which an event happens.

    Parameters
    ----------
    model, prompt
        As in :func:`~formalm.search`.
    query
        The language, or a query. An event is required, here or there. With several prefixes in
        ``given``, one is drawn first, by ``prefix_weights``; members and masses are those of the
        mixture.
    event
        Overrides the query's. ``"complete"`` draws members. ``"token_prefix"``, ``"prefix"`` and
        ``"contains"`` draw outputs up to the token that decides the event, ``"never"`` complete
        outputs without a member. ``target="uniform"`` takes only ``"complete"``, its default.
    n
        Number of draws.
    target
        ``"posterior"``: exactly from the model's distribution over members. ``"local"``: token by
        token, as :func:`~formalm.generate` does, with weights. ``"without_replacement"``: every
        token sequence at most once, or every string with ``unique="strings"``; the first draw is
        one of ``"posterior"``. ``"uniform"``: every string of a finite language with equal
        probability, in the tokenizer's own tokens; ``decoding`` changes ``logprob`` only.
    seed
        An integer of at least 0 makes the draws reproducible; None uses a new seed.
    limits
        Overrides the query's. Draws are made in groups of 64. A group that a limit cuts short is
        dropped as a whole, because the walks that end first are a biased selection.
    batch_size
        Maximum number of prefixes in one call of the model. It does not change the draws.
    progress
        Called with a :class:`~formalm.cost.Progress` before each batch.

    Returns
    -------
    Samples
        Fewer than ``n`` if a limit was reached, if there are no more members, or after Ctrl-C.

    Raises
    ------
    ArgumentError
        For an option out of range, or one that does not apply to a sample.

    Examples
    --------
    >>> from formalm import TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> drawn = sample(model, ["a", "b"], event="complete", n=300, seed=1)
    >>> 0.6 < sum(one.text == "a" for one in drawn) / 300 < 0.73
    True
    """
    resolved = _checked(query, event, n, target, limits, batch_size)
    execution = _execution(model, query, resolved, prompt, batch_size)
    execution.progress = checked_progress(progress)
    walks = RandomWalks(execution)
    seed = chosen_seed(seed)
    found: list[Draw] = []
    attempts = 0
    status: SampleStatus = "exhausted"
    limit: str | None = None
    # The last one is the threshold.
    wanted = n + 1 if target == "without_replacement" else n
    by_text = resolved.unique == "strings"
    seen: set[tuple[bytes, bytes]] = set()
    try:
        for draw in _draws(walks, resolved, target, n, seed):
            attempts += 1
            if draw is not None:
                found.append(draw)
                seen.add(_text(walks, draw) if by_text else (b"%d" % len(found), b""))
            if len(seen) >= wanted:
                status = "done"
                break
    except LimitReached as reached:
        status, limit = "truncated", str(reached)
    except KeyboardInterrupt:
        status = "interrupted"
    if target == "without_replacement":
        # The last draw is the threshold. Without one, all members were drawn with certainty, and
        # their weights are their probabilities.
        cut = status != "exhausted" and bool(found)
        found = _weighed(found[:-1], found[-1].perturbed) if cut else found
        found = _merged(walks, found) if by_text else found
    if limit is None and walks.execution.cut_by_context:
        limit = "context"
    counters = (seed, attempts, execution.dropped, execution.cost())
    samples = _samples(walks, resolved, found)
    return Samples(samples, required_event(resolved, "a sample"), target, status, limit, *counters)


def _draws(
    walks: RandomWalks, resolved: Query, target: str, n: int, seed: int
) -> Iterator[Draw | None]:
    if target == "uniform":
        return uniform_draws(walks, resolved.effective_language, n, seed)
    if target == "local":
        return iter(local_draws(walks, n, seed))
    return posterior_draws(walks, seed) if target == "posterior" else gumbel_order(walks, seed)


def _weighed(draws: list[Draw], threshold: float) -> list[Draw]:
    """Divides each probability by that of coming before the threshold (Kool et al., 2019)."""
    weighed = []
    for draw in draws:
        drawn = -math.expm1(-math.exp(min(700.0, draw.log_weight - threshold)))
        weighed.append(Draw(draw.node, draw.log_weight - math.log(drawn), draw.perturbed))
    return weighed


def _text(walks: RandomWalks, draw: Draw) -> tuple[bytes, bytes]:
    """Returns the given prefix, whatever its tokens, and all bytes that a draw spells."""
    return walks.context(draw.node).given, walks.data(draw.node)


def _merged(walks: RandomWalks, draws: list[Draw]) -> list[Draw]:
    """Returns each string once, at its first draw, with the total weight of all its sequences.

    The maximum of several Gumbel variables is a Gumbel variable around the sum of their
    probabilities. The order in which strings first appear is therefore that of drawing strings. The
    threshold is that of another string, so a sequence comes before it with the same probability as
    if it had been drawn alone.
    """
    texts: dict[tuple[bytes, bytes], Draw] = {}
    for draw in draws:
        key = _text(walks, draw)
        first = texts.get(key)
        if first is None:
            texts[key] = draw
        else:
            weight = float(np.logaddexp(first.log_weight, draw.log_weight))
            texts[key] = Draw(first.node, weight, first.perturbed)
    return list(texts.values())


def _samples(walks: RandomWalks, resolved: Query, draws: list[Draw]) -> tuple[Sample, ...]:
    samples = []
    for rank, draw in enumerate(draws, 1):
        context, data = walks.context(draw.node), walks.data(draw.node)
        samples.append(
            Sample(
                shown_text(data),
                data,
                context.given.decode(errors="replace"),
                tuple(walks.frontier.path(draw.node)),
                walks.logprob(draw.node) if draw.log_weight > -math.inf else -math.inf,
                draw.log_weight,
                rank,
                _origin(walks, resolved, draw),
            )
        )
    return tuple(samples)


def _origin(walks: RandomWalks, resolved: Query, draw: Draw) -> Origin:
    execution, context = walks.execution, walks.context(draw.node)
    ended = execution.complete and draw.log_weight > -math.inf
    return Origin(
        "sample",
        resolved,
        execution.session.vocabulary,
        context.prompt_token_ids,
        context.given_token_ids,
        context.given,
        context.logprob,
        tuple(walks.logprobs(draw.node, ended=ended)),
        ended,
        execution.cost(),
    )


def _checked(
    query: object,
    event: object,
    n: object,
    target: object,
    limits: Limits | None,
    batch_size: int,
) -> Query:
    positive("n", n, optional=False)
    positive("batch_size", batch_size, optional=False)
    if target not in TARGETS:
        known = ", ".join(map(repr, TARGETS))
        raise ArgumentError(f"target must be one of {known}, got {target!r:.60}")
    resolved = resolved_query(query, event=event, limits=UNSET if limits is None else limits)
    if target == "uniform" and resolved.event is None:
        resolved = with_event(resolved, "complete")  # it draws members
    if required_event(resolved, "a sample") != "complete" and target == "uniform":
        raise ArgumentError(
            f"event must be 'complete' with target='uniform', got {resolved.event!r}"
        )
    refuse_keep(resolved)
    if resolved.unique is not None and target != "without_replacement":
        raise ArgumentError(f"unique must be None with target={target!r}, because draws may repeat")
    if resolved.prefix_cost != "conditional":
        raise ArgumentError(
            "prefix_cost must be 'conditional' for a sample; use prefix_weights to weight the"
            " prefixes"
        )
    refuse_search_limits(resolved.limits, "a sample of n draws")
    if target == "uniform" and resolved.boundary == "heal":
        raise ArgumentError(
            "boundary must be 'split' with target='uniform', which uses the tokenizer's tokens"
        )
    if target == "uniform" and resolved.keep is not None:
        hint = "exclude the strings by a language: without=..."
        raise ArgumentError(
            "keep must be None with target='uniform', which counts the members", hint=hint
        )
    if target == "uniform" and resolved.max_tokens is not None:
        hint = "limit the length of the members instead: language & Regex('(?s).{0,20}')"
        raise ArgumentError(
            "max_tokens must be None with target='uniform', which draws strings", hint=hint
        )
    return resolved


def _execution(
    model: LanguageModel, query: object, resolved: Query, prompt: Prompt, batch_size: int
) -> QueryExecution:
    session = Session(model)
    event = required_event(resolved, "a sample")
    if event in ("complete", "never"):
        require_end_token(session)
    language = event_language(
        resolved.effective_language,
        "contains" if event == "never" else event,
        resolved.tokenization,
    )
    if event == "never":
        every = any_string() if resolved.tokenization == "canonical" else anything()
        if resolved.effective_language.matches(b""):
            raise LanguageError(
                "the language must not contain the empty string, which every output contains"
            )
        language = every - language
    constraint = constraint_of(query, resolved, session.vocabulary, language)
    contexts = query_contexts(session, constraint, resolved, prompt, shares=True)
    complete = event in ("complete", "never")
    return QueryExecution.of(
        resolved, session, constraint, contexts, complete=complete, batch_size=batch_size
    )
