"""``distortion``: the distance between masked distributions and the model's own over a language."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from formalm.automata.text_of_bytes import shown_text
from formalm.constraint import Constraint
from formalm.cost import Cost, Progress, Series
from formalm.errors import ArgumentError, LimitError, TokenError, VocabularyError
from formalm.execution.arguments import UNSET, Prompt, compiled, positive, prefix_token_ids
from formalm.execution.query_contexts import QueryContext
from formalm.execution.query_execution import LimitReached, QueryExecution
from formalm.execution.query_setup import require_end_token, required_event, resolved_query
from formalm.languages import Language
from formalm.models import LanguageModel, Session
from formalm.probability.bounds import Interval
from formalm.probability.divergence import (
    Distortion,
    Divergence,
    between,
    estimated_kl,
    estimated_variation,
    unfinished,
)
from formalm.probability.exhaustive_mass import MemberMasses, enumerate_masses
from formalm.query.decoding_rules import chosen_seed
from formalm.query.limits import Limits
from formalm.query.plan import Counts
from formalm.query.query import Query, TokenEvent
from formalm.sampling.draws import Draw, local_draws
from formalm.sampling.mean_estimate import bounded_mean, checked_confidence
from formalm.sampling.random_walks import RandomWalks

__all__ = ["Distortion", "distortion"]

Floats = npt.NDArray[np.float64]


def distortion(
    model: LanguageModel,
    query: Query | Language | Constraint | Sequence[str],
    *,
    prompt: Prompt = None,
    event: TokenEvent = UNSET,
    exact: bool | None = None,
    draws: int = 2000,
    confidence: float = 0.95,
    seed: int | None = None,
    limits: Limits | None = None,
    batch_size: int = 64,
    progress: Callable[[Progress], None] | None = None,
) -> Distortion:
    """Measures how far masks move a model from its own distribution over a language.

    The model's own distribution is P(string | string is a member), summed over all tokenizations. A
    mask that is renormalized at every step has another distribution, and a mask of canonical tokens
    a third. All of them are compared over strings if the language is finite and small enough for
    ``limits``.

    Otherwise the distances are estimated from ``draws`` of each mask, for complete outputs and over
    token sequences. They are then at least as large as the distances over strings, because two
    sequences may spell one string.

    Parameters
    ----------
    model, prompt
        As in :func:`~formalm.sample`.
    query
        The language, or a query. ``decoding`` changes the model first. A ``given`` prefix belongs
        in the prompt.
    event
        Required here or in the query. ``"complete"``: the output is a member and ends.
        ``"token_prefix"``: the output starts with the tokens of the member; no member may then be a
        prefix of another.
    exact
        True computes or fails, False estimates. None computes if that fits into ``limits``.
    draws, seed
        Number of draws and seed of an estimate.
    confidence
        Confidence of each estimated interval.
    limits
        Overrides the query's.
    batch_size
        Maximum number of prefixes in one call of the model.
    progress
        Called with a :class:`~formalm.cost.Progress` before each batch.

    Raises
    ------
    ArgumentError
        For an option out of range, or a field of the query that does not apply here.
    LimitError
        If a limit was reached before there was any result.

    Notes
    -----
    Ctrl-C returns a partial result with the status ``"interrupted"``: the finished comparisons and
    intervals from the draws so far; for an exact computation, the mass found so far.

    Examples
    --------
    A mask allows ``a`` as a beginning of ``ab``, though the model means another text by it:

    >>> from formalm import TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", b"c", None], end_token_ids=[4])
    >>> table = {(): [0.5, 0.1, 0.2, 0.2, 0], (0,): [0.99, 0.01, 0, 0, 0]}
    >>> model = TableModel(vocabulary, table, default={4: 1.0})
    >>> found = distortion(model, ["ab", "c"], event="complete")
    >>> shares = found.share("c")
    >>> round(shares["true"], 3), round(shares["local"], 3)
    (0.494, 0.222)
    """
    if exact not in (None, True, False):
        raise ArgumentError(f"exact must be True, False or None, got {exact!r:.60}")
    resolved = _checked(query, event, draws, batch_size, limits)
    session = Session(model)
    complete = resolved.event == "complete"
    if complete:
        require_end_token(session)
    front = prefix_token_ids(session, prompt, resolved.bos)
    confidence, series = checked_confidence(confidence), Series(progress)
    tasks: dict[str, QueryExecution] = {}
    notes: list[str] = []
    for way in ("all", "canonical"):
        try:
            tasks[way] = _execution(session, resolved, front, way, complete, batch_size)
            tasks[way].progress = series.tell
        except (VocabularyError, TokenError) as error:
            if way == "all":
                raise
            notes.append(f"the canonical distribution is not compared: {error.message}")
    if exact is not False and _is_small(tasks, notes, must=bool(exact)):
        try:
            return _exact(tasks, notes)
        except LimitReached as reached:
            if exact or str(reached) != "context":
                raise _limit_error(resolved.limits, reached, session) from None
            notes.append("not exact: some members are longer than the model's context")
    if not complete:
        raise ArgumentError(
            "event='token_prefix' supports only exact comparison"
            + ("" if exact is False else f"; this comparison is {notes[-1]}"),
            hint="pass event='complete' or raise the limits",
        )
    return _estimated(tasks, notes, draws, confidence, chosen_seed(seed))


def _exact(tasks: dict[str, QueryExecution], notes: list[str]) -> Distortion:
    found: dict[str, MemberMasses] = {}
    status: Literal["done", "interrupted"] = "done"
    try:
        for way, execution in _in_turn(tasks):
            found[way] = MemberMasses()
            enumerate_masses(execution, found[way])
    except KeyboardInterrupt:
        status = "interrupted"
        if "canonical" not in found:
            mass = math.fsum(map(math.fsum, found["all"].model.values())) if found else 0.0
            return unfinished(mass, _event(tasks), "canonical" in tasks, notes, _cost(tasks))
        notes.append("the canonical distribution is not compared: interrupted")
        del found["canonical"]
    totals = {data: math.fsum(terms) for data, terms in found["all"].model.items()}
    mass = math.fsum(totals.values())
    if mass <= 0:
        raise ArgumentError("the model assigns probability 0 to every member")
    order = sorted(totals, key=lambda data: (-totals[data], data))
    shares = {
        "true": np.array([totals[data] for data in order]) / mass,
        "local": _row(found["all"].local, order),
    }
    canonical_mass = None
    if "canonical" in found:
        own = _row(found["canonical"].model, order)
        total = math.fsum(own)
        canonical_mass = Interval(total, total)
        shares["canonical_local"] = _row(found["canonical"].local, order)
        if total > 0:
            shares["canonical"] = own / total
        else:
            notes.append("the model assigns probability 0 to every canonical sequence")
    ways = {way: between(shares["true"], row) for way, row in shares.items() if way != "true"}
    texts = tuple(shown_text(data) for data in order)
    counts = (texts, shares, tuple(notes), _cost(tasks), None)
    return Distortion(
        True, _event(tasks), ways, Interval(mass, mass), canonical_mass, *counts, status
    )


def _estimated(
    tasks: dict[str, QueryExecution],
    notes: list[str],
    draws: int,
    confidence: float,
    seed: int,
) -> Distortion:
    """Returns the estimates: half of the draws bound the masses, the other half the distances."""
    weights = {way: np.empty(0) for way in tasks}
    status: Literal["done", "interrupted"] = "done"
    for way, execution in _in_turn(tasks):
        weights[way], whole = _weights(execution, draws, seed)
        if not whole:
            status = "interrupted"
            notes.append(f"interrupted: {len(weights[way]):,} of {draws:,} draws of {way} tokens")
            break
    first, second = draws - draws // 2, draws // 2  # the planned number, whenever sampling stopped
    # In the worst case, four intervals must hold together for any one that is returned.
    each = 1 - (1 - confidence) / 4
    masses = {way: Interval(*bounded_mean(row[::2], each, first)) for way, row in weights.items()}
    mass = masses["all"]
    ways: dict[str, Divergence] = {}
    for way, row in weights.items():
        name = "local" if way == "all" else "canonical_local"
        kl = estimated_kl(row[1::2], mass, each, second) if way == "all" else None
        ways[name] = Divergence(estimated_variation(row[1::2], mass, each, second), kl)
    if "canonical" in masses:
        own = masses["canonical"]
        low = 1 - own.high / mass.low if mass.low > 0 else 0.0
        high = 1 - own.low / mass.high if mass.high > 0 else 1.0
        ways["canonical"] = Divergence(Interval(max(0.0, low), min(1.0, high)), None)
    counts = (tuple(notes), _cost(tasks), seed, status)
    return Distortion(False, _event(tasks), ways, mass, masses.get("canonical"), (), {}, *counts)


def _in_turn(tasks: dict[str, QueryExecution]) -> Iterator[tuple[str, QueryExecution]]:
    """Yields the tasks; each counts its expansions on from those of the previous one."""
    spent = max(execution.expansions for execution in tasks.values())
    for way, execution in tasks.items():
        execution.expansions = spent
        yield way, execution
        spent = execution.expansions


def _event(tasks: dict[str, QueryExecution]) -> TokenEvent:
    return "complete" if tasks["all"].complete else "token_prefix"


def _cost(tasks: dict[str, QueryExecution]) -> Cost:
    """Returns the cost of all tasks, which share a session."""
    expansions = max(execution.expansions for execution in tasks.values())
    return replace(tasks["all"].cost(), expansions=expansions)


def _weights(execution: QueryExecution, draws: int, seed: int) -> tuple[Floats, bool]:
    """Returns the weights of the finished draws, and True if all draws were finished."""
    found: list[Draw] = []
    whole = True
    try:
        for draw in local_draws(RandomWalks(execution), draws, seed):
            found.append(draw)
    except KeyboardInterrupt:
        whole = False
    except LimitReached as reached:
        raise _limit_error(execution.limits, reached, execution.session) from None
    return np.minimum(1.0, np.exp([draw.log_weight for draw in found])), whole


def _row(table: dict[bytes, list[float]], order: list[bytes]) -> Floats:
    return np.array([math.fsum(table.get(data, ())) for data in order])


def _is_small(tasks: dict[str, QueryExecution], notes: list[str], *, must: bool) -> bool:
    """Returns True if the whole language can be walked within the limits."""
    allowed = tasks["all"].limits.forwards
    needed: int | None
    try:
        needed = Counts.of(tasks["all"].constraint.to_automaton(state_limit=100_000)).prefixes
    except LimitError as error:
        if must:
            raise
        notes.append(f"not exact: {error.message}")
        return False
    if needed is not None and (allowed is None or needed * len(tasks) <= allowed):
        return True
    if must and needed is None:
        raise ArgumentError("exact=True requires a finite language")
    if must and needed is not None and allowed is not None:
        raise LimitError("forwards", needed * len(tasks), allowed)
    many = "infinitely many" if needed is None else f"{needed:,}"
    notes.append(f"not exact: the members have {many} token prefixes")
    return False


def _limit_error(limits: Limits, reached: LimitReached, session: Session) -> LimitError:
    allowed = getattr(limits, str(reached), None) or session.model.context_length or 0
    hint = "lower draws or raise the limits"
    return LimitError(str(reached), math.floor(allowed) + 1, math.floor(allowed), hint)


def _execution(
    session: Session, resolved: Query, front: tuple[int, ...], way: str, complete: bool, size: int
) -> QueryExecution:
    constraint = compiled(resolved.effective_language, session.vocabulary, way)
    context = QueryContext(front, b"", 0.0, constraint.matcher(after=front).core)
    rules = (resolved.decoding, resolved.renormalize, complete, size, None, resolved.limits)
    return QueryExecution(session, constraint, [context], *rules, normalize=True)


def _checked(
    query: object, event: object, draws: int, batch_size: int, limits: Limits | None
) -> Query:
    positive("draws", draws, least=2, optional=False)
    positive("batch_size", batch_size, optional=False)
    resolved = resolved_query(query, event=event, limits=UNSET if limits is None else limits)
    required_event(resolved, "a distortion", ("complete", "token_prefix"))
    if resolved.given is not None:
        raise ArgumentError("given must be None for a distortion", hint="append it to the prompt")
    if resolved.tokenization != "all":
        raise ArgumentError(
            "tokenization must be 'all' for a distortion, which compares 'all' with 'canonical'"
        )
    if resolved.unique == "tokens":
        raise ArgumentError("unique must not be 'tokens' for a distortion, which compares strings")
    if resolved.keep is not None:
        raise ArgumentError(
            "keep must be None for a distortion, because a mask cannot call a function"
        )
    if resolved.max_tokens is not None:
        hint = "limit the length of the members instead: language & Regex('(?s).{0,20}')"
        raise ArgumentError(
            "max_tokens must be None for a distortion, because it would truncate members", hint=hint
        )
    if resolved.limits.hits is not None:
        raise ArgumentError("limits.hits must be None for a distortion; use draws")
    return resolved
