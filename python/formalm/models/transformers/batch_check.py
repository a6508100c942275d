"""A comparison at load time: does the model compute the same in batches and steps as alone?

The documented behavior of a class of models and its actual behavior with padding or a cache can
differ, and a wrong answer would look like a probability. A handful of tokens decide, and a few more
if the model computes differently beyond some length.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from formalm.errors import FormalmError, ModelError
from formalm.models.transformers.kv_cache import is_recurrent
from formalm.models.transformers.kv_pool import PoolSlots
from formalm.models.transformers.length_limits import NARROW, AttentionWindows, windows_of
from formalm.models.transformers.model_metadata import text_config
from formalm.models.transformers.prefix_state import cache_of

if TYPE_CHECKING:
    from formalm.models.transformers.forward_pass import ForwardPass
    from formalm.models.transformers.model import TransformersModel

__all__ = ["compare"]

LENGTHS = (3, 7)
# Largest difference of log-probabilities that rounding explains, by bytes per number. Models
# with many layers in half precision differ by some hundredths between batches of different sizes.
TOLERANCES = {8: 1e-6, 4: 1e-4, 2: 0.1}
# Largest difference between two runs of one computation.
EQUAL = 1e-5

Answer = TypeVar("Answer")
Rows = npt.NDArray[np.floating[Any]]


def compare(model: TransformersModel, network: ForwardPass) -> None:
    """Sets a model's ``is_…`` attributes and ``notes`` according to its behavior.

    Raises
    ------
    ModelError
        If the model cannot be evaluated at all, or if a token changes an answer before it.
    """
    notes = _number(model, network)
    windows = windows_of(model.model, model.context_length)
    with windows.narrow():
        notes += _compare(model, network, windows)
    notes += [
        f"its {name} of {length:,} was checked as {NARROW}"
        for name, length in windows.narrowed.items()
    ]
    notes += [
        f"its behavior beyond its {name} of {length:,} was not checked"
        for name, length in windows.unseen.items()
    ]
    model.notes = (*model.notes, *notes)


def _number(model: TransformersModel, network: ForwardPass) -> list[str]:
    """Determines whether the model counts positions from 0; if not, leaves positions to the
    model.
    """
    if not network.is_numbered:
        return []
    pad, limit = _pad(model), model.context_length or LENGTHS[1]
    ids = [token_id for token_id in _random(model, LENGTHS[1]) if token_id != pad]
    ids = ids[: min(LENGTHS[0], limit)]
    network.is_numbered = False
    try:
        own = network.read([ids])
    except Exception:  # a model that needs positions passed to it
        network.is_numbered = True
        return []
    zero = _distance(partial(network.numbered_from, 0, ids), own)
    first = 0 if pad is None else pad + 1
    # An accelerator would not recover from an access beyond the table of positions.
    if zero > EQUAL and first + len(ids) <= limit:
        shifted = _distance(partial(network.numbered_from, first, ids), own)
        if shifted < zero and shifted <= _tolerance(model):
            model.context_length = model.context_length and model.context_length - first
            return [f"its positions start at {first}, which shortens its context by {first}"]
    network.is_numbered = zero <= _tolerance(model)
    return [] if network.is_numbered else ["it computes positions in its own way"]


def _compare(
    model: TransformersModel, network: ForwardPass, windows: AttentionWindows
) -> list[str]:
    """Compares batches and steps with prefixes evaluated alone; returns what was wrong."""
    limit = model.context_length
    lengths = {*LENGTHS, *windows.lengths} if limit is None or limit > LENGTHS[0] else {1, limit}
    lengths = {min(length, limit or length) for length in lengths}
    ids = _random(model, max(lengths))
    pad = _pad(model)
    if not network.is_numbered and pad is not None:
        ids[0] = pad  # such models do not count positions, and their caches may
    prefixes = [ids[:length] for length in sorted(lengths)]
    model.is_padded = model.is_cached = False
    alone = _evaluated(lambda: np.concatenate([model.next_logprobs([ids]) for ids in prefixes]))
    if windows.is_sparse:
        return ["its attention depends on padding, so each length is evaluated separately"]
    _check_causal(model, network, prefixes, alone)
    cache, notes = _cache(model, prefixes, alone)
    if getattr(model.model, "_is_stateful", False) or cache is None or is_recurrent(cache):
        notes.append("it may be recurrent, so each batch has prefixes of one length")
    else:
        model.is_padded = True
        why = _difference(model, lambda: model.next_logprobs(prefixes), alone)
        if why is not None:
            notes.append(f"padding {why}, so each batch has prefixes of one length")
            model.is_padded = False
    return notes


def _check_causal(
    model: TransformersModel, network: ForwardPass, prefixes: list[list[int]], alone: Rows
) -> None:
    if len(prefixes) == 1:
        return
    short, more = prefixes[:2]
    if any(len(short) <= length < len(more) for length in model.switches):
        return
    inside = _evaluated(lambda: network.within(more, len(short)))
    if _far(model, inside, alone[:1]):
        raise ModelError(
            f"{type(model.model).__name__} is not causal: later tokens change its earlier"
            " predictions",
            hint="a model of the BERT family is causal only with is_decoder=True",
        )


def _cache(
    model: TransformersModel, prefixes: list[list[int]], alone: Rows
) -> tuple[Any, list[str]]:
    """Returns a cache of the model, and why it is not used; sets ``is_cached``."""
    model.is_cached, cache = True, None
    long = [place for place, prefix in enumerate(prefixes) if len(prefix) >= LENGTHS[0]]
    try:
        state = model.start(prefixes[0])
    except Exception as error:  # it could be evaluated without one
        why = f"evaluating with a cache {_failure(error)}"
    else:
        cache = cache_of(state)
        why = "its cache cannot be split by sequence"
        if cache is not None and not long:
            why = "its context is too short to check single steps"
        elif cache is not None:
            steps = [prefixes[place] for place in long]
            wrong = _difference(model, lambda: _steps(model, steps), alone[long])
            if wrong is None:
                _mix(model, steps, alone[long])
                return cache, _many(model, cache, steps, alone[long])
            why = f"continuing from its cache {wrong}"
    model.is_cached = False
    return cache, [f"{why}, so prefixes are recomputed"]


def _many(
    model: TransformersModel, cache: Any, prefixes: list[list[int]], alone: Rows
) -> list[str]:
    """Returns why several tokens are not read at once; sets ``is_stepwise``."""
    model.is_stepwise = is_recurrent(cache)
    if model.is_stepwise:
        return []
    wrong = _difference(model, lambda: _runs(model, prefixes), alone)
    model.is_stepwise = wrong is not None
    return (
        [f"evaluating several tokens at once {wrong}, so it evaluates one at a time"]
        if wrong
        else []
    )


def _mix(model: TransformersModel, prefixes: list[list[int]], alone: Rows) -> None:
    """Sets ``is_mixed``: whether prefixes of different lengths can be continued in one pass."""
    model.is_mixed = isinstance(model.start(prefixes[0]).kept, PoolSlots)
    if model.is_mixed:
        wrong = _difference(model, lambda: _mixed(model, prefixes), alone)
        model.is_mixed = wrong is None


def _random(model: TransformersModel, length: int) -> list[int]:
    ids: list[int] = np.random.default_rng(0).integers(len(model.vocabulary), size=length).tolist()
    return ids


def _pad(model: TransformersModel) -> int | None:
    pad = getattr(text_config(model.model), "pad_token_id", None)
    return pad if isinstance(pad, int) and 0 <= pad < model.width else None


def _evaluated(work: Callable[[], Answer]) -> Answer:
    """Returns the result of ``work``; any exception of the model's own code becomes a
    ModelError.
    """
    try:
        return work()
    except FormalmError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise ModelError(f"the model cannot evaluate a few tokens: {kind}: {error}") from error


def _steps(model: TransformersModel, prefixes: list[list[int]]) -> Rows:
    """Returns the rows after the prefixes by single steps, among forks that must not disturb
    them.
    """
    rows = []
    for prefix in prefixes:
        stem, last = model.start(prefix[:-2]), prefix[-1]
        model.extend([stem, stem], [0, 0])
        fork = model.extend([stem, stem], [0, prefix[-2]])
        other = model.extend([stem], [prefix[-2]])
        model.extend([fork[1], fork[0]], [0, 0])
        # Rows of two caches joined, out of order.
        rows.append(model.extend([fork[1], other[0], fork[0]], [last, last, 0])[:2])
    both = [np.stack([state.logprobs for state in states]) for states in zip(*rows, strict=True)]
    if _far(model, both[0], both[1]):
        raise ArithmeticError("forked states differ")
    return both[0]


def _runs(model: TransformersModel, prefixes: list[list[int]]) -> Rows:
    """Returns the rows after the prefixes, with all tokens but the first read at once, twice."""
    rows = []
    for prefix in prefixes:
        stem, run = model.start(prefix[:1]), prefix[1:]
        rows.append(model.extend_many([stem, stem], [[0] * len(run), run])[1].logprobs)
    return np.stack(rows)


def _mixed(model: TransformersModel, prefixes: list[list[int]]) -> Rows:
    """Returns the rows after the prefixes, with the last two tokens of all of them read
    together.
    """
    states = [model.start(prefix[:-2]) for prefix in prefixes]
    for place in (-2, -1):
        states = model.extend(states, [prefix[place] for prefix in prefixes])
    return np.stack([state.logprobs for state in states])


def _difference(model: TransformersModel, rows: Callable[[], Rows], alone: Rows) -> str | None:
    """Returns what is wrong with the answers of ``rows``; None if nothing is."""
    try:
        answer = rows()
    except Exception as error:  # any exception of the model's own code under such a call
        return _failure(error)
    return "changes its results" if _far(model, answer, alone) else None


def _failure(error: Exception) -> str:
    return f"fails ({type(error).__name__}: {error!s:.80})"


def _distance(rows: Callable[[], Rows], other: Rows) -> float:
    try:
        return _gap(rows(), other)
    except Exception:  # any exception of the model's own code under such a call
        return np.inf


def _far(model: TransformersModel, one: Rows, two: Rows) -> bool:
    return _gap(one, two) > _tolerance(model)


def _gap(one: Rows, two: Rows) -> float:
    # Rounding is judged at probable tokens: far below, logits may overflow their format.
    likely = two > two.max(axis=1, keepdims=True) - 20
    return float(np.max(np.abs(np.where(likely, one - two, 0.0))))


def _tolerance(model: TransformersModel) -> float:
    return TOLERANCES.get(model.model.dtype.itemsize, TOLERANCES[2])
