"""A comparison made at load: does this model give in a batch, and in steps, what it gives alone?

What a class of models promises and what it does with padding or with its cache are two things, and
a wrong answer would look like a probability. A handful of tokens decide.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from formalm.errors import FormalmError, ModelError
from formalm.models.transformers.cache import is_recurrent

if TYPE_CHECKING:
    from formalm.models.transformers.model import TransformersModel
    from formalm.models.transformers.network import Network

__all__ = ["compare"]

LENGTHS = (3, 7)
# Largest difference of log-probabilities that rounding explains, by the bytes of a number. Models
# of many layers in half precision differ by some hundredths between batches of different sizes.
TOLERANCES = {8: 1e-6, 4: 1e-4, 2: 0.1}

Answer = TypeVar("Answer")
Rows = npt.NDArray[np.floating[Any]]


def compare(model: TransformersModel, network: Network) -> None:
    """Set ``is_padded``, ``is_cached`` and ``notes`` of a model by what it does.

    Raises
    ------
    ModelError
        If it cannot be evaluated at all, or a token changes what was said before it.
    """
    length = min(LENGTHS[1], model.context_length or LENGTHS[1])
    ids = np.random.default_rng(0).integers(len(model.vocabulary), size=length).tolist()
    prefixes = [ids[: LENGTHS[0]], ids]
    model.is_padded = model.is_cached = False
    alone = _evaluated(lambda: np.concatenate([model.next_logprobs([ids]) for ids in prefixes]))
    inside = _evaluated(lambda: network.within(ids, len(prefixes[0])))
    if _far(model, inside, alone[:1]):
        raise ModelError(
            f"{type(model.model).__name__} is not causal: later tokens change what it says earlier",
            hint="a model of the BERT family reads one way only with is_decoder=True",
        )
    model.is_cached = True
    cache = _evaluated(lambda: model.start(prefixes[0])).block
    notes = []
    if cache is None:
        notes.append("it remembers nothing that could be taken apart, so prefixes are read anew")
        model.is_cached = False
    elif length == LENGTHS[1]:
        why = _difference(model, lambda: _steps(model, prefixes), alone)
        if why is not None:
            notes.append(f"going on from its cache {why}, so prefixes are read anew")
            model.is_cached = False
    if getattr(model.model, "_is_stateful", False) or cache is None or is_recurrent(cache.cache):
        notes.append("it may be recurrent, so a batch has prefixes of one length")
    else:
        model.is_padded = True
        why = _difference(model, lambda: model.next_logprobs(prefixes), alone)
        if why is not None:
            notes.append(f"padding {why}, so a batch has prefixes of one length")
            model.is_padded = False
    model.notes = (*model.notes, *notes)


def _evaluated(work: Callable[[], Answer]) -> Answer:
    """What ``work`` returns; whatever a model's own code raises becomes a ModelError."""
    try:
        return work()
    except FormalmError:
        raise
    except Exception as error:
        kind = type(error).__name__
        raise ModelError(f"the model cannot evaluate a few tokens: {kind}: {error}") from error


def _steps(model: TransformersModel, prefixes: list[list[int]]) -> Rows:
    """The rows after the prefixes by single steps, among forks that must not disturb them."""
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


def _difference(model: TransformersModel, rows: Callable[[], Rows], alone: Rows) -> str | None:
    """What is wrong with the answers of ``rows``; None if nothing is."""
    try:
        answer = rows()
    except Exception as error:  # whatever a model's own code raises when it is called so
        return f"fails ({type(error).__name__}: {error!s:.80})"
    return "changes its answers" if _far(model, answer, alone) else None


def _far(model: TransformersModel, one: Rows, two: Rows) -> bool:
    tolerance = TOLERANCES.get(model.model.dtype.itemsize, TOLERANCES[2])
    # Rounding is judged where there is probability: far below, logits may overflow their format.
    likely = two > two.max(axis=1, keepdims=True) - 20
    return bool(np.max(np.abs(np.where(likely, one - two, 0.0))) > tolerance)
