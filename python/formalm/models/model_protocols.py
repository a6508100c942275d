"""The protocols of language models: next-token log-probabilities, cached states, token runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError, LimitError, ModelError
from formalm.models.logit_rows import LogProbs
from formalm.vocabulary import Vocabulary
from formalm.vocabulary.vocabulary import check_vocabulary

__all__ = [
    "IncrementalModel",
    "LanguageModel",
    "LogProbs",
    "ModelState",
    "RunModel",
    "check_batch_size",
    "check_model_arguments",
    "check_runs",
    "check_tokens",
    "check_width",
    "log_softmax",
]

State = TypeVar("State", bound="ModelState")


@runtime_checkable
class LanguageModel(Protocol):
    """A distribution over the next token, for any token prefix.

    A model that needs a first token although its texts do not begin with one may name an
    ``empty_prompt_token_id``: with ``bos="auto"`` it is put before an empty prompt.

    A model that shows only a part of each distribution is *partial*. It reports the number of
    tokens as ``shown_tokens``. A row has minus infinity for tokens not shown and sums to the
    probability shown. A row with that many tokens has the most probable ones; one with fewer may
    have any. Drivers account for the rest separately, or refuse. A partial model may return the
    log-probabilities of given tokens from ``sequence_logprobs(sequences)``, as
    :class:`~formalm.models.http.HttpModel` does.

    A model that computes logits may also return them from ``next_logits(prefixes)``, in place of
    log-probabilities: a NumPy array of float16, bfloat16 (of ``ml_dtypes``), float32 or float64, or
    a torch tensor on any device, ``(len(prefixes), width)``. They are then read where they are, and
    nothing is normalized that is not asked for. Generation and queries prefer them.

    A model may identify its current weights by ``weights_fingerprint()``, a string that another
    model has only if it computes the same. Its answers can then be stored under that string.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the token ids."""
        ...

    @property
    def bos_token_id(self) -> int | None:
        """The token that ``bos="auto"`` puts before a text; None for none."""
        ...

    @property
    def context_length(self) -> int | None:
        """The longest prefix that can be evaluated, in tokens; None if there is no bound."""
        ...

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """Returns log-probabilities of the next token after each prefix.

        Parameters
        ----------
        prefixes
            Token ids; the prefixes may differ in length, and may be empty if the model can start
            from nothing.

        Returns
        -------
        LogProbs
            ``(len(prefixes), width)``, natural logarithms of probabilities that sum to one in each
            row; ``width`` is at least ``len(vocabulary)``.
        """
        ...


class ModelState(Protocol):
    """A prefix that a model has read. It is an immutable value; using it twice forks it.

    A state may report its size as ``memory_bytes``, without its log-probabilities and without
    memory shared with the state it was extended from; a budget for states counts that size. It may
    also have a method ``bare()`` that returns the same state with empty log-probabilities. Searches
    keep that state to continue from. A state may have ``logits``, ``(width,)``, an array or tensor
    as ``next_logits`` of :class:`LanguageModel` returns; drivers then do not read ``logprobs``.
    """

    @property
    def logprobs(self) -> LogProbs:
        """``(width,)``: log-probabilities of the next token after this prefix."""
        ...

    @property
    def length(self) -> int:
        """Number of tokens read."""
        ...


@runtime_checkable
class IncrementalModel(LanguageModel, Protocol[State]):
    """A model that can continue from a prefix it has read, instead of reading it again."""

    def start(self, prefix: Sequence[int]) -> State:
        """Reads a prefix."""
        ...

    def extend(self, states: Sequence[State], token_ids: Sequence[int]) -> list[State]:
        """Reads one more token after each state, in one batch; ``states`` stay valid."""
        ...


@runtime_checkable
class RunModel(IncrementalModel[State], Protocol[State]):
    """An incremental model that reads several tokens after a state in one forward pass."""

    def extend_many(self, states: Sequence[State], runs: Sequence[Sequence[int]]) -> list[State]:
        """Reads one or more tokens after each state, in one batch; ``states`` stay valid."""
        ...


def log_softmax(logits: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Returns normalized natural logarithms over the last axis, in float64.

    Examples
    --------
    >>> import numpy as np
    >>> np.exp(log_softmax([0.0, 0.0, -np.inf])).tolist()
    [0.5, 0.5, 0.0]
    """
    values = np.asarray(logits, dtype=np.float64)
    shifted = values - values.max(axis=-1, keepdims=True)
    result: npt.NDArray[np.float64] = shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))
    return result


def check_model_arguments(vocabulary: object, bos_token_id: object, context_length: object) -> None:
    """Refuses an invalid vocabulary, token id or length.

    Raises
    ------
    ArgumentError
        With the value.
    """
    check_vocabulary(vocabulary)
    assert isinstance(vocabulary, Vocabulary)
    if bos_token_id is not None and (
        type(bos_token_id) is not int or not 0 <= bos_token_id < len(vocabulary)
    ):
        raise ArgumentError(
            f"bos_token_id must be a token id below {len(vocabulary)} or None, got {bos_token_id!r}"
        )
    if context_length is not None and (type(context_length) is not int or context_length < 1):
        raise ArgumentError(
            f"context_length must be a positive integer or None, got {context_length!r}"
        )


def check_batch_size(batch_size: object) -> None:
    """Refuses a number of prefixes in one call that is not positive, by an ``ArgumentError``."""
    if type(batch_size) is not int or batch_size < 1:
        raise ArgumentError(f"batch_size must be a positive integer, got {batch_size!r}")


def check_tokens(
    token_ids: Sequence[int], length: int, width: int, context_length: int | None
) -> None:
    """Refuses the last tokens of a prefix of ``length`` tokens, by a ``ModelError``, or a
    ``LimitError`` beyond the context.
    """
    if length == 0:
        raise ModelError(
            "a prefix must have at least one token",
            hint="start it with a token id, such as bos=...",
        )
    if context_length is not None and length > context_length:
        raise LimitError("tokens of context", length, context_length, "shorten the prompt")
    if min(token_ids) < 0 or max(token_ids) >= width:
        raise ModelError(f"token ids must be from 0 to {width - 1}")


def check_runs(states: Sequence[object], runs: Sequence[Sequence[int]]) -> None:
    """Refuses runs that do not fit the states, by a ``ModelError``."""
    if len(states) != len(runs):
        raise ModelError(
            f"runs must have one run for each of {len(states)} states, got {len(runs)}"
        )
    if not all(len(run) for run in runs):
        raise ModelError("each run must have at least one token")


def check_width(vocabulary: Vocabulary, width: int) -> None:
    """Refuses a model with fewer logits than tokens, by a ``ModelError``."""
    if width < len(vocabulary):
        raise ModelError(
            f"the model must have a logit for each of the {len(vocabulary):,} tokens, got"
            f" {width:,}",
            hint="pass the vocabulary of this model",
        )
