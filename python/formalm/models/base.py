"""What a language model has to offer: next-token log-probabilities for token prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

from formalm.vocabulary import Vocabulary

__all__ = [
    "IncrementalModel",
    "LanguageModel",
    "LogProbs",
    "ModelState",
    "RunModel",
    "log_softmax",
]

LogProbs = npt.NDArray[np.floating[Any]]
State = TypeVar("State", bound="ModelState")


@runtime_checkable
class LanguageModel(Protocol):
    """A distribution over the next token, for any token prefix.

    A model that cannot start from nothing, and whose texts have no token in front, may also name an
    ``empty_prompt_token_id``: with ``bos="auto"`` it is put in front of an empty prompt.

    A model that shows a part of each distribution only is *partial*: it names the number of tokens
    as ``shown_tokens``, and a row has minus infinity for what was not shown and sums to what was. A
    row with that many tokens has the most probable ones; one with fewer may have any. Drivers keep
    what was not shown apart, or refuse. It may tell the log-probabilities of given tokens by
    ``sequence_logprobs(sequences)``, as :class:`~formalm.models.http.HttpModel` does.

    A model may tell its weights as they are now by ``weights_fingerprint()``, a text that another
    model has only if it computes the same; answers of a model that does are kept under it.
    """

    @property
    def vocabulary(self) -> Vocabulary:
        """What the token ids stand for."""
        ...

    @property
    def bos_token_id(self) -> int | None:
        """The token that stands in front of a text with ``bos="auto"``; None for none."""
        ...

    @property
    def context_length(self) -> int | None:
        """The longest prefix that can be evaluated, in tokens; None if there is no bound."""
        ...

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """Log-probabilities of the next token after each prefix.

        Parameters
        ----------
        prefixes
            Token ids; the prefixes may differ in length and may be empty if the model can start so.

        Returns
        -------
        LogProbs
            ``(len(prefixes), width)``, natural logarithms that sum to one in each row; ``width``
            is at least ``len(vocabulary)``.
        """
        ...


class ModelState(Protocol):
    """A prefix that a model has read. An immutable value: forking is using it twice.

    A state may tell its size as ``memory_bytes``, without its log-probabilities and without what it
    shares with the state it was extended from; a budget for states counts what is told. It may also
    have a method ``bare()``: the same state with empty log-probabilities, which is what searches
    keep of it to go on from.
    """

    @property
    def logprobs(self) -> LogProbs:
        """``(width,)``: the next token after this prefix."""
        ...

    @property
    def length(self) -> int:
        """Number of tokens read."""
        ...


@runtime_checkable
class IncrementalModel(LanguageModel, Protocol[State]):
    """A model that can go on from a prefix it has read, instead of reading it again."""

    def start(self, prefix: Sequence[int]) -> State:
        """Read a prefix."""
        ...

    def extend(self, states: Sequence[State], token_ids: Sequence[int]) -> list[State]:
        """Read one more token after each state, in one batch; ``states`` stay valid."""
        ...


@runtime_checkable
class RunModel(IncrementalModel[State], Protocol[State]):
    """An incremental model that reads several tokens after a state in one forward pass."""

    def extend_many(self, states: Sequence[State], runs: Sequence[Sequence[int]]) -> list[State]:
        """Read one or more tokens after each state, in one batch; ``states`` stay valid."""
        ...


def log_softmax(logits: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Normalised natural logarithms of the last axis, in float64.

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
