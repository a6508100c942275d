"""Models whose states are plain prefixes, because the engine keeps what it has read by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.models.model_protocols import (
    LogProbs,
    check_model_arguments,
    check_runs,
    check_tokens,
    check_width,
    log_softmax,
)
from formalm.vocabulary import Vocabulary

__all__ = ["Floats", "PrefixModel", "PrefixState"]

Floats = npt.NDArray[np.float32]


class PrefixState:
    """A prefix that was read. It is an immutable value; using it twice forks it.

    Attributes
    ----------
    token_ids
        The prefix.
    logits
        ``(width,)``, float32: the model's logits of the next token.
    kept
        What the state itself keeps of the engine, or None.
    memory_bytes
        Memory of that.
    """

    __slots__ = ("kept", "logits", "memory_bytes", "token_ids")

    def __init__(
        self, token_ids: tuple[int, ...], logits: Floats, kept: Any = None, memory_bytes: int = 0
    ) -> None:
        self.token_ids = token_ids
        self.logits = logits
        self.kept = kept
        self.memory_bytes = memory_bytes

    @property
    def logprobs(self) -> LogProbs:
        """``(width,)``, float64: log-probabilities of the next token, a new array."""
        if not len(self.logits):  # see bare()
            return np.empty(0)
        return log_softmax(self.logits)

    @property
    def length(self) -> int:
        """Number of tokens read."""
        return len(self.token_ids)

    def bare(self) -> PrefixState:
        """Returns the same prefix without its logits, to continue from."""
        return PrefixState(self.token_ids, self.logits[:0].copy(), self.kept, self.memory_bytes)

    def __repr__(self) -> str:
        return f"<PrefixState after {len(self.token_ids)} tokens>"


class PrefixModel:
    """A model that answers prefixes; a subclass says how in :meth:`_rows`.

    A subclass that keeps what it has read finds it by the tokens. A state is then just a prefix,
    and stays valid whatever the engine evicts.
    """

    libraries: tuple[str, ...] = ()

    def __init__(
        self,
        vocabulary: Vocabulary,
        *,
        width: int,
        bos_token_id: int | None,
        empty_prompt_token_id: int | None,
        context_length: int | None,
    ) -> None:
        check_model_arguments(vocabulary, bos_token_id, context_length)
        check_width(vocabulary, width)
        self.vocabulary = vocabulary
        self.width = width
        self.bos_token_id = bos_token_id
        self.empty_prompt_token_id = empty_prompt_token_id
        self.context_length = context_length

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """See :meth:`formalm.models.LanguageModel.next_logprobs`; errors as :meth:`next_logits`."""
        logits = self.next_logits(prefixes)
        return log_softmax(logits) if len(logits) else np.empty((0, self.width))

    def next_logits(self, prefixes: Sequence[Sequence[int]]) -> Floats:
        """Returns the logits after prefixes, ``(len(prefixes), width)``, float32.

        Raises
        ------
        LimitError
            If a prefix is longer than the context.
        ModelError
            If a prefix is empty, or a token id is out of range.
        """
        rows = [self._checked(prefix) for prefix in prefixes]
        if not rows:
            return np.empty((0, self.width), dtype=np.float32)
        return np.stack(self._rows(rows))

    def start(self, prefix: Sequence[int]) -> PrefixState:
        """Reads a prefix; errors as :meth:`next_logits`."""
        ids = self._checked(prefix)
        return PrefixState(ids, self._rows([ids])[0])

    def extend(self, states: Sequence[PrefixState], token_ids: Sequence[int]) -> list[PrefixState]:
        """Reads one more token after each state; ``states`` stay valid."""
        return self.extend_many(states, [(token_id,) for token_id in token_ids])

    def extend_many(
        self, states: Sequence[PrefixState], runs: Sequence[Sequence[int]]
    ) -> list[PrefixState]:
        """Reads one or more tokens after each state; ``states`` stay valid.

        Raises
        ------
        LimitError
            If a prefix becomes longer than the context.
        ModelError
            If there are not as many runs as states, a run is empty, or a token id is out of range.
        """
        check_runs(states, runs)
        if not states:
            return []
        prefixes = [
            self._checked((*state.token_ids, *run)) for state, run in zip(states, runs, strict=True)
        ]
        rows = self._rows(prefixes)
        return [PrefixState(ids, row) for ids, row in zip(prefixes, rows, strict=True)]

    def _rows(self, prefixes: Sequence[tuple[int, ...]]) -> list[Floats]:
        """Returns the logits after checked prefixes, each a row of its own memory."""
        raise NotImplementedError

    def _checked(self, prefix: Sequence[int]) -> tuple[int, ...]:
        """Returns a prefix as a tuple, or refuses it."""
        ids = tuple(map(int, prefix))
        check_tokens(ids, len(ids), self.width, self.context_length)
        return ids
