"""Logits processors of engines that call one function per sequence: llama.cpp and MLX.

Both pass all tokens so far, the prompt first, and may take tokens back when a draft is rejected.
Neither engine is imported here: arrays of MLX come from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.bitmask import apply_bitmask
from formalm.constraint import Constraint, Matcher
from formalm.errors import ArgumentError, ModelError
from formalm.generation.region_budget import SequenceCounters, region_budgets
from formalm.languages import Language
from formalm.vocabulary import Vocabulary

__all__ = ["LlamaCppLogitsProcessor", "MlxLogitsProcessor"]


class SequenceMasks:
    """The masks of one sequence of tokens, which grows and may be cut back.

    Parameters
    ----------
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`.
    vocabulary
        The model's vocabulary; not needed with a constraint.
    end_token_ids
        Ids that end the sequence, if they differ from the vocabulary's.
    max_reasoning_tokens, max_free_tokens
        Budgets of the regions of a :class:`~formalm.Structure`, as in :func:`formalm.generate`.
    """

    def __init__(
        self,
        language: Language | Constraint | Sequence[str],
        vocabulary: Vocabulary | None = None,
        *,
        end_token_ids: Iterable[int] | None = None,
        max_reasoning_tokens: int | None = None,
        max_free_tokens: int | None = None,
    ) -> None:
        if isinstance(language, Constraint):
            if vocabulary is not None and vocabulary != language.vocabulary:
                raise ModelError(
                    "the constraint must have the model's vocabulary, got a different one",
                    hint="build it with Constraint(language, vocabulary)",
                )
            self.constraint = language
        elif vocabulary is None:
            raise ArgumentError(
                "vocabulary must be a Vocabulary if a language is given, got None",
                hint="Vocabulary.from_gguf and Vocabulary.from_pretrained read one",
            )
        else:
            self.constraint = Constraint(language, vocabulary)
        self._ends = None if end_token_ids is None else list(end_token_ids)
        if not (self._ends or self.constraint.vocabulary.end_token_ids):
            raise ArgumentError(
                "the vocabulary must have an end token, so that the engine can stop",
                hint="pass end_token_ids",
            )
        budgets = region_budgets(self.constraint, max_reasoning_tokens, max_free_tokens)
        self._counters = SequenceCounters(budgets)
        self._prompt: npt.NDArray[np.int64] | None = None
        self._matcher: Matcher | None = None

    def bitmask(self, token_ids: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
        """Returns the mask after tokens, an int32 array ``(ceil(width / 32),)``.

        The tokens of the first call are the prompt. After a token that is not allowed, which only
        another component can have chosen, and after an end token, it is the last mask before that.

        Raises
        ------
        ArgumentError
            If the tokens do not begin with the prompt of the first call.
        TokenError
            If a budget is used up, and no token leads out of its region.
        """
        if self._prompt is None or self._matcher is None:
            self._prompt = token_ids.copy()
            matcher = self.constraint.matcher(after=self._context(), end_token_ids=self._ends)
            self._matcher = matcher
            return self._counters.restricted(matcher.bitmask())
        length = len(self._prompt)
        if len(token_ids) < length or not np.array_equal(token_ids[:length], self._prompt):
            raise ArgumentError(
                "the tokens must begin with the prompt of the first call",
                hint="create a processor for each call of the engine",
            )
        matcher, text = self._matcher, token_ids[length:].tolist()
        read = matcher.token_ids
        same = next(
            (at for at, (one, two) in enumerate(zip(read, text, strict=False)) if one != two),
            min(len(read), len(text)),
        )
        matcher.rollback(len(read) - same)
        matcher.advance_many(text[same : same + matcher.validate_tokens(text[same:])])
        if matcher.is_terminated:
            # A draft may go on after an end token; its rows must allow something.
            matcher.rollback()
        self._counters.follow(matcher.token_ids, same)
        return self._counters.restricted(matcher.bitmask())

    def _context(self) -> list[int]:
        """Returns the prompt, if it matters."""
        if self._prompt is None or self.constraint.tokenization == "all":
            return []
        ids: list[int] = self._prompt.tolist()
        return ids


class LlamaCppLogitsProcessor(SequenceMasks):
    """Keeps one call of llama-cpp-python inside a language.

    Pass it in a list as ``logits_processor`` of ``Llama.generate``, ``create_completion`` or
    ``create_chat_completion``. Make one for each call: the tokens of its first call are the prompt.
    llama-cpp-python generates one sequence at a time, and applies its penalties after the mask.

    Parameters
    ----------
    language, vocabulary, end_token_ids, max_reasoning_tokens, max_free_tokens
        As in :class:`MlxLogitsProcessor`; :meth:`formalm.Vocabulary.from_gguf` reads the
        vocabulary of the model's file.

    Examples
    --------
    >>> import numpy as np
    >>> from formalm import Choice, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])
    >>> processor = LlamaCppLogitsProcessor(Choice(["ab"]), vocabulary)
    >>> processor(np.array([1, 1], np.intc), np.zeros(3, np.float32)).tolist()
    [0.0, -inf, -inf]
    """

    def __call__(
        self, input_ids: npt.NDArray[np.intc], scores: npt.NDArray[np.single]
    ) -> npt.NDArray[np.single]:
        """Returns a masked copy of the scores ``(width,)``."""
        mask = self.bitmask(np.asarray(input_ids).astype(np.int64))
        # A view of the engine's own records, which are not contiguous.
        masked = np.array(scores, dtype=np.single, order="C")
        apply_bitmask(masked, mask)
        return masked


class MlxLogitsProcessor(SequenceMasks):
    """Keeps one sequence of MLX LM inside a language.

    Pass it in a list as ``logits_processors`` of ``generate_step``, ``stream_generate`` or
    ``speculative_generate_step``, or in the list of a sequence of ``BatchGenerator``. Make one for
    each sequence: the tokens of its first call are the prompt. Reading the tokens makes MLX
    evaluate them, so the next step is not prepared meanwhile.

    Parameters
    ----------
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`.
    vocabulary
        The model's vocabulary; not needed with a constraint.
    end_token_ids
        Ids that end the sequence, if they differ from the vocabulary's. They must be those at which
        the engine stops.
    max_reasoning_tokens, max_free_tokens
        Budgets of the regions of a :class:`~formalm.Structure`, as in :func:`formalm.generate`.

    Raises
    ------
    ArgumentError
        If the vocabulary or its end tokens are missing, or a budget does not apply to the language.
    ModelError
        If the constraint has another vocabulary.
    """

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """Returns masked logits ``(1, width)``; those given do not change."""
        import mlx.core as mx

        mask = self.bitmask(np.array(tokens).astype(np.int64).reshape(-1))
        width = logits.shape[-1]
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:width].astype(np.bool_)
        allowed = np.zeros(width, np.bool_)
        allowed[: len(bits)] = bits
        return mx.where(mx.array(allowed), logits, mx.array(-np.inf, logits.dtype))
