"""``CTranslate2Model``: a generator of CTranslate2 as a model that scores whole prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from formalm.errors import ArgumentError, ModelError
from formalm.models.local_engines.prefix_model import Floats
from formalm.models.model_protocols import (
    LogProbs,
    check_batch_size,
    check_model_arguments,
    check_width,
    log_softmax,
)
from formalm.vocabulary import Vocabulary

__all__ = ["CTranslate2Model"]

BATCH_SIZE = 16


class CTranslate2Model:
    """A generator of CTranslate2 that evaluates every prefix from its start.

    The engine's own loop takes no masks, and it continues from nothing. Use the model to score, and
    to generate short texts.

    Parameters
    ----------
    generator
        The ``ctranslate2.Generator`` of a causal model.
    vocabulary
        The tokens of the ids.
    bos_token_id
        The token before a text, if the tokenizer puts one there.
    empty_prompt_token_id
        The token in place of an empty prompt.
    context_length
        Maximum length of a prefix, in tokens; None if nothing bounds it. The engine does not say.
    batch_size
        Maximum number of prefixes in one call. The engine returns the logits of all their
        positions.

    Raises
    ------
    ArgumentError
        For an option out of range, or another object.
    ModelError
        If CTranslate2 is missing, or the model has fewer logits than tokens.
    """

    libraries = ("ctranslate2",)

    def __init__(
        self,
        generator: Any,
        vocabulary: Vocabulary,
        *,
        bos_token_id: int | None = None,
        empty_prompt_token_id: int | None = None,
        context_length: int | None = None,
        batch_size: int = BATCH_SIZE,
    ) -> None:
        check_model_arguments(vocabulary, bos_token_id, context_length)
        check_batch_size(batch_size)
        try:
            import ctranslate2 as engine
        except ImportError:
            raise ModelError(
                "models of CTranslate2 require the package ctranslate2",
                hint="pip install ctranslate2",
            ) from None
        if not isinstance(generator, engine.Generator):
            raise ArgumentError(
                f"generator must be a ctranslate2.Generator, got {type(generator).__name__}"
            )
        self._engine = engine
        self.generator = generator
        self.vocabulary = vocabulary
        self.bos_token_id = bos_token_id
        self.empty_prompt_token_id = empty_prompt_token_id
        self.context_length = context_length
        self.batch_size = batch_size

    def __repr__(self) -> str:
        return f"<CTranslate2Model {self.generator.compute_type}>"

    def __reduce__(self) -> NoReturn:
        raise ModelError(
            "a model of CTranslate2 cannot be pickled or copied",
            hint="create the generator in the other process",
        )

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """See :meth:`formalm.models.LanguageModel.next_logprobs`."""
        return log_softmax(self.next_logits(prefixes))

    def next_logits(self, prefixes: Sequence[Sequence[int]]) -> Floats:
        """Returns the logits after prefixes, ``(len(prefixes), width)``, float32.

        Raises
        ------
        ModelError
            If a prefix is empty, or the model has fewer logits than tokens.
        """
        if not all(len(prefix) for prefix in prefixes):
            raise ModelError(
                "a prefix must have at least one token",
                hint="start it with a token id, such as bos=...",
            )
        parts = [
            self._read(prefixes[start : start + self.batch_size])
            for start in range(0, len(prefixes), self.batch_size)
        ]
        return np.concatenate(parts) if parts else np.empty((0, len(self.vocabulary)), np.float32)

    def _read(self, prefixes: Sequence[Sequence[int]]) -> Floats:
        view = self._engine.StorageView
        lengths = np.array([len(prefix) for prefix in prefixes], dtype=np.int32)
        ids = np.zeros((len(prefixes), int(lengths.max())), dtype=np.int32)
        for row, prefix in enumerate(prefixes):
            ids[row, : len(prefix)] = prefix
        answer = self.generator.forward_batch(view.from_array(ids), view.from_array(lengths))
        answer = answer.to_device(self._engine.Device.cpu).to(self._engine.DataType.float32)
        logits: Floats = np.asarray(answer)[np.arange(len(prefixes)), lengths - 1]
        check_width(self.vocabulary, logits.shape[1])
        return logits
