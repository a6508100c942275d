"""``canary``: the embedded language model, whose training facts and probabilities are known.

A GPT-2 of about two million parameters, trained on a corpus in which every document has a known
probability and facts are planted a known number of times. Searches, samples and mass bounds can be
checked against it offline. ``facts()`` returns what it was taught.

Every query starts with the end-of-text token: the model has never seen a document start without it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from formalm.errors import LimitError, ModelError
from formalm.models.canary.network import Gpt2, State

if TYPE_CHECKING:
    from formalm.models.model_protocols import ModelState
    from formalm.vocabulary import Vocabulary

__all__ = ["CanaryModel", "canary", "facts", "load"]

WEIGHTS = Path(__file__).with_name("weights")
END_TOKEN_ID = 0


class CanaryModel:
    """A GPT-2 model in NumPy, loaded from a directory, as a language model.

    Parameters
    ----------
    directory
        Contains ``config.json``, ``model.safetensors`` and ``tokenizer.json``.

    Attributes
    ----------
    network
        The NumPy network.
    bos_token_id
        The end-of-text token, which also starts every document.
    context_length
        Maximum number of tokens in a prefix.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.network = Gpt2.load(directory)
        self.bos_token_id: int | None = END_TOKEN_ID
        self.context_length: int | None = self.network.context_length
        self._vocabulary: Vocabulary | None = None

    def __repr__(self) -> str:
        return f"CanaryModel({self.directory.name!r})"

    # To pyright, a cached_property does not satisfy the attribute of a protocol.
    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens, read from ``tokenizer.json``."""
        if self._vocabulary is None:
            from formalm.vocabulary import Vocabulary

            path = self.directory / "tokenizer.json"
            self._vocabulary = Vocabulary.from_tokenizer_json(path, end_token_ids=[END_TOKEN_ID])
        return self._vocabulary

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> NDArray[np.float64]:
        """Returns the next-token distribution after each prefix.

        Parameters
        ----------
        prefixes
            Non-empty token id sequences; their lengths may differ.

        Returns
        -------
        ndarray
            Normalized natural log-probabilities, ``(len(prefixes), width)``, float64.

        Raises
        ------
        LimitError
            If a prefix is longer than the context.
        ModelError
            If a prefix is empty or a token id is out of range.
        """
        for prefix in prefixes:
            self._check(prefix, len(prefix))
        return self.network.next_logprobs(prefixes)

    def start(self, prefix: Sequence[int]) -> State:
        """Evaluates a whole prefix once; errors as in :meth:`next_logprobs`."""
        self._check(prefix, len(prefix))
        return self.network.start(prefix)

    def extend(self, states: Sequence[ModelState], token_ids: Sequence[int]) -> list[State]:
        """Appends one token to each state in one batch; the given states stay valid."""
        return self.extend_many(states, [(token_id,) for token_id in token_ids])

    def extend_many(
        self, states: Sequence[ModelState], runs: Sequence[Sequence[int]]
    ) -> list[State]:
        """Appends one or more tokens to each state."""
        own = [state for state in states if isinstance(state, State)]
        if not len(own) == len(states) == len(runs):
            raise ModelError("states must be states of this model, with one run of tokens each")
        for state, run in zip(own, runs, strict=True):
            if not run:
                raise ModelError("each run must have at least one token")
            self._check(run, state.length + len(run))
        return self.network.extend(own, runs)

    def weights_fingerprint(self) -> str:
        """Returns a hex digest of the current weights."""
        return self.network.fingerprint()

    def _check(self, token_ids: Sequence[int], length: int) -> None:
        if length == 0:
            raise ModelError("a prefix must have at least one token; start it with bos_token_id")
        allowed = self.network.context_length
        if length > allowed:
            raise LimitError("tokens of context", length, allowed, "shorten the prompt")
        if min(token_ids) < 0 or max(token_ids) >= self.network.width:
            raise ModelError(f"token ids must be from 0 to {self.network.width - 1}")


def load(directory: str | Path) -> CanaryModel:
    """Loads a model with the same layout, such as the null twin.

    Raises
    ------
    ModelError
        If a file cannot be read, or the files do not belong together.
    """
    return CanaryModel(Path(directory))


@lru_cache(maxsize=1)
def canary() -> CanaryModel:
    """Returns the embedded model, which is loaded on the first call."""
    return load(WEIGHTS)


@lru_cache(maxsize=1)
def facts() -> dict[str, Any]:
    """Returns what the embedded model was taught, with exposures and true log-probabilities.

    The model card in the folder of the weights describes the keys.
    """
    content: dict[str, Any] = json.loads((WEIGHTS / "facts.json").read_text(encoding="utf-8"))
    return content
