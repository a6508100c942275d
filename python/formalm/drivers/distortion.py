"""``distortion``: the distance between masked distributions and the model's own over a language."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from formalm.automata.texts import shown_text
from formalm.constraint import Constraint
from formalm.drivers.arguments import UNSET, compiled, positive
from formalm.drivers.asking import asked_query, needs_an_end, required_event
from formalm.drivers.cost import Cost
from formalm.drivers.divergence import (
    Distortion,
    Divergence,
    between,
    estimated_kl,
    estimated_variation,
    unfinished,
)
from formalm.drivers.estimate import bounded_mean, checked_confidence
from formalm.drivers.lattice import Tally, tally
from formalm.drivers.progress import Progress, Series
from formalm.drivers.prompts import Prompt, prefix_token_ids
from formalm.drivers.roots import Root
from formalm.drivers.sampler import Draw, local_draws
from formalm.drivers.sampling import chosen_seed
from formalm.drivers.table import Interval
from formalm.drivers.task import Task, Truncated
from formalm.drivers.walks import Walks
from formalm.errors import ArgumentError, LimitError, TokenError, VocabularyError
from formalm.languages import Language
from formalm.models import LanguageModel, Session
from formalm.query.limits import Limits
from formalm.query.plan import Counts
from formalm.query.query import Query, TokenEvent

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
        raise ArgumentError(f"exact is True, False or None, not {exact!r:.60}")
    asked = _checked(query, event, draws, batch_size, limits)
    session = Session(model)
    complete = asked.event == "complete"
    if complete:
        needs_an_end(session)
    front = prefix_token_ids(session, prompt, asked.bos)
    confidence, series = checked_confidence(confidence), Series(progress)
    tasks: dict[str, Task] = {}
    notes: list[str] = []
    for way in ("all", "canonical"):
        try:
            tasks[way] = _task(session, asked, front, way, complete, batch_size)
            tasks[way].progress = series.tell
        except (VocabularyError, TokenError) as error:
            if way == "all":
                raise
            notes.append(f"nothing canonical is compared: {error.message}")
    if exact is not False and _is_small(tasks, notes, must=bool(exact)):
        try:
            return _exact(tasks, notes)
        except Truncated as reached:
            if exact or str(reached) != "context":
                raise _limit_error(asked.limits, reached, session) from None
            notes.append("not exact: some members are longer than the model's context")
    if not complete:
        raise ArgumentError(
            "event='token_prefix' is compared exactly or not at all"
            + ("" if exact is False else f", and this is {notes[-1]}"),
            hint="event='complete', or higher limits",
        )
    return _estimated(tasks, notes, draws, confidence, chosen_seed(seed))


def _exact(tasks: dict[str, Task], notes: list[str]) -> Distortion:
    found: dict[str, Tally] = {}
    status: Literal["done", "interrupted"] = "done"
    try:
        for way, task in _in_turn(tasks):
            found[way] = Tally()
            tally(task, found[way])
    except KeyboardInterrupt:
        status = "interrupted"
        if "canonical" not in found:
            mass = math.fsum(map(math.fsum, found["all"].model.values())) if found else 0.0
            return unfinished(mass, _event(tasks), "canonical" in tasks, notes, _cost(tasks))
        notes.append("nothing canonical is compared: interrupted")
        del found["canonical"]
    totals = {data: math.fsum(terms) for data, terms in found["all"].model.items()}
    mass = math.fsum(totals.values())
    if mass <= 0:
        raise ArgumentError("the model gives no probability to any member")
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
            notes.append("the model gives no probability to any canonical sequence")
    ways = {way: between(shares["true"], row) for way, row in shares.items() if way != "true"}
    texts = tuple(shown_text(data) for data in order)
    counts = (texts, shares, tuple(notes), _cost(tasks), None)
    return Distortion(
        True, _event(tasks), ways, Interval(mass, mass), canonical_mass, *counts, status
    )


def _estimated(
    tasks: dict[str, Task],
    notes: list[str],
    draws: int,
    confidence: float,
    seed: int,
) -> Distortion:
    """Returns the estimates: half of the draws bound the masses, the other half the distances."""
    weights = {way: np.empty(0) for way in tasks}
    status: Literal["done", "interrupted"] = "done"
    for way, task in _in_turn(tasks):
        weights[way], whole = _weights(task, draws, seed)
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


def _in_turn(tasks: dict[str, Task]) -> Iterator[tuple[str, Task]]:
    """Yields the tasks; each counts its expansions on from those of the previous one."""
    spent = max(task.expansions for task in tasks.values())
    for way, task in tasks.items():
        task.expansions = spent
        yield way, task
        spent = task.expansions


def _event(tasks: dict[str, Task]) -> TokenEvent:
    return "complete" if tasks["all"].complete else "token_prefix"


def _cost(tasks: dict[str, Task]) -> Cost:
    """Returns the cost of all tasks, which share a session."""
    expansions = max(task.expansions for task in tasks.values())
    return replace(tasks["all"].cost(), expansions=expansions)


def _weights(task: Task, draws: int, seed: int) -> tuple[Floats, bool]:
    """Returns the weights of the finished draws, and True if all draws were finished."""
    found: list[Draw] = []
    whole = True
    try:
        for draw in local_draws(Walks(task), draws, seed):
            found.append(draw)
    except KeyboardInterrupt:
        whole = False
    except Truncated as reached:
        raise _limit_error(task.limits, reached, task.session) from None
    return np.minimum(1.0, np.exp([draw.log_weight for draw in found])), whole


def _row(table: dict[bytes, list[float]], order: list[bytes]) -> Floats:
    return np.array([math.fsum(table.get(data, ())) for data in order])


def _is_small(tasks: dict[str, Task], notes: list[str], *, must: bool) -> bool:
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
        raise ArgumentError("an infinite language is not compared exactly: leave out exact=True")
    if must and needed is not None and allowed is not None:
        raise LimitError("forwards", needed * len(tasks), allowed)
    many = "infinitely many" if needed is None else f"{needed:,}"
    notes.append(f"not exact: members have {many} beginnings in tokens")
    return False


def _limit_error(limits: Limits, reached: Truncated, session: Session) -> LimitError:
    allowed = getattr(limits, str(reached), None) or session.model.context_length or 0
    hint = "fewer draws, or higher limits"
    return LimitError(str(reached), math.floor(allowed) + 1, math.floor(allowed), hint)


def _task(
    session: Session, asked: Query, front: tuple[int, ...], way: str, complete: bool, size: int
) -> Task:
    constraint = compiled(asked.asked, session.vocabulary, way)
    root = Root(front, b"", 0.0, constraint.matcher(after=front).core)
    rules = (asked.decoding, asked.renormalize, complete, size, None, asked.limits)
    return Task(session, constraint, [root], *rules, normalize=True)


def _checked(
    query: object, event: object, draws: int, batch_size: int, limits: Limits | None
) -> Query:
    positive("draws", draws, least=2, optional=False)
    positive("batch_size", batch_size, optional=False)
    asked = asked_query(query, event=event, limits=UNSET if limits is None else limits)
    required_event(asked, "a distortion", ("complete", "token_prefix"))
    if asked.given is not None:
        raise ArgumentError("given has no use here", hint="write it into the prompt")
    if asked.tokenization != "all":
        raise ArgumentError("tokenization is what is compared: leave it out")
    if asked.unique == "tokens":
        raise ArgumentError("unique is about listings; texts are compared")
    if asked.keep is not None:
        raise ArgumentError("a mask cannot ask a function: say keep as a language, in without=")
    if asked.max_tokens is not None:
        hint = "bound the texts: language & Regex('(?s).{0,20}')"
        raise ArgumentError("max_tokens would cut members off", hint=hint)
    if asked.limits.hits is not None:
        raise ArgumentError("limits.hits is about listings; say draws")
    return asked
