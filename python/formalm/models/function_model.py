"""``FunctionModel``: a language model from a vocabulary and a function that returns logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from formalm.errors import ArgumentError, ModelError
from formalm.models.model_protocols import LogProbs, check_model_arguments, log_softmax
from formalm.vocabulary import Vocabulary

__all__ = ["FunctionModel"]


class FunctionModel:
    """A language model from a function that returns logits.

    Parameters
    ----------
    vocabulary
        The vocabulary of the token ids.
    function
        Maps a list of prefixes (tuples of token ids) to logits ``(len(prefixes), width)``:
        floating-point numbers, minus infinity allowed. They are normalized here.
    bos_token_id, context_length
        As in :class:`~formalm.models.LanguageModel`.

    Raises
    ------
    ArgumentError
        For a wrong type, a token id outside the vocabulary, or a length below 1.

    Examples
    --------
    A model that likes to repeat itself:

    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b"])
    >>> def logits(prefixes):
    ...     return [[prefix.count(token) for token in range(2)] for prefix in prefixes]
    >>> model = FunctionModel(vocabulary, logits)
    >>> model.next_logprobs([(), (0, 0)]).argmax(axis=1).tolist()
    [0, 0]
    """

    def __init__(
        self,
        vocabulary: Vocabulary,
        function: Callable[[list[tuple[int, ...]]], npt.ArrayLike],
        *,
        bos_token_id: int | None = None,
        context_length: int | None = None,
    ) -> None:
        check_model_arguments(vocabulary, bos_token_id, context_length)
        if not callable(function):
            raise ArgumentError(f"function must be callable, got {type(function).__name__}")
        self.vocabulary = vocabulary
        self.function = function
        self.bos_token_id = bos_token_id
        self.context_length = context_length

    def next_logprobs(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """See :meth:`formalm.models.LanguageModel.next_logprobs`."""
        logits = self.next_logits(prefixes)
        top = logits.max(axis=1)
        if not np.all(np.isfinite(top)):
            raise ModelError(
                "logits must be finite or minus infinity, with a finite one in each row",
                hint="function must not return NaN or infinity",
            )
        return log_softmax(logits)

    def next_logits(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """Returns the function's logits; see :class:`formalm.models.LanguageModel`.

        Numbers of other types become float64.
        """
        answer = self.function([tuple(prefix) for prefix in prefixes])
        try:
            logits = np.asarray(answer)
            if logits.dtype.kind != "f" or logits.dtype.itemsize > 8:
                logits = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"function must return an array of logits: {error}") from None
        if logits.ndim != 2 or logits.shape[0] != len(prefixes) or logits.shape[1] == 0:
            raise ModelError(f"logits must have shape ({len(prefixes)}, width), got {logits.shape}")
        return logits
