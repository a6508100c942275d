"""``sample``: draw members from a model under one of four target distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import get_args

import numpy as np

from formalm.automata.encoding import shown_text
from formalm.constraint import Constraint
from formalm.cost import Progress, checked_progress
from formalm.errors import ArgumentError, LanguageError
from formalm.execution.arguments import UNSET, positive
from formalm.execution.prompts import Prompt
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
from formalm.query.decoding import chosen_seed
from formalm.query.events import any_string, event_language
from formalm.query.limits import Limits
from formalm.query.prefixes import anything
from formalm.query.query import Event, Query
from formalm.records.record import Origin
from formalm.sampling.draws import Draw, gumbel_order, local_draws, posterior_draws
from formalm.sampling.random_walks import RandomWalks
from formalm.sampling.sample_result import Sample, Samples, SampleStatus, Target
from formalm.sampling.uniform_sampling import uniform_draws

__all__ = ["sample"]

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
        return uniform_draws(walks, resolved.asked, n, seed)
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
    context = walks.frontier.context(draw.node)
    return context.given, context.data + walks.frontier.data(draw.node)


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
    frontier = walks.frontier
    samples = []
    for rank, draw in enumerate(draws, 1):
        context = frontier.context(draw.node)
        data = context.data + frontier.data(draw.node)
        samples.append(
            Sample(
                shown_text(data),
                data,
                context.given.decode(errors="replace"),
                tuple(frontier.trie.path(draw.node)),
                walks.logprob(draw.node) if draw.log_weight > -math.inf else -math.inf,
                draw.log_weight,
                rank,
                _origin(walks, resolved, draw),
            )
        )
    return tuple(samples)


def _origin(walks: RandomWalks, resolved: Query, draw: Draw) -> Origin:
    execution, context = walks.execution, walks.frontier.context(draw.node)
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
        resolved.asked, "contains" if event == "never" else event, resolved.tokenization
    )
    if event == "never":
        every = any_string() if resolved.tokenization == "canonical" else anything()
        if resolved.asked.matches(b""):
            raise LanguageError(
                "the language must not contain the empty string, which every output contains"
            )
        language = every - language
    constraint = constraint_of(query, resolved, session.vocabulary, language)
    return QueryExecution(
        session,
        constraint,
        query_contexts(session, constraint, resolved, prompt, shares=True),
        *resolved.behind,
        event in ("complete", "never"),
        batch_size,
        resolved.max_tokens,
        resolved.limits,
        normalize=True,
        keep=resolved.keep,
    )
