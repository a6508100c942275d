"""The constraints of an engine's process: one vocabulary, one width, shared by its requests."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.constraint import Constraint, Matcher
from formalm.constraint_cache import ConstraintCache
from formalm.engines.request_languages import RequestKind, request_language
from formalm.errors import ArgumentError, FormalmError, VocabularyError
from formalm.vocabulary import Vocabulary

__all__ = ["BACKEND_NAME", "EngineConstraints", "end_mask"]

#: The name under which engines offer the backend.
BACKEND_NAME = "formalm"

#: The environment variable with the memory limit of a process's constraints, in MB of 2^20 bytes,
#: and the limit without it. Chosen, not measured.
MEMORY_VARIABLE = "FORMALM_CACHE_MB"
MEMORY_LIMIT_BYTES = 256 << 20
#: Maximum time to compile one request's constraint, so that no request holds up the others for
#: long. Chosen, not measured.
COMPILE_SECONDS = 10.0
#: Maximum time of one mask, or of reading the tokens of one step, for the same reason. The slowest
#: mask in records/ takes 0.1 s.
STEP_SECONDS = 5.0


def memory_limit() -> int:
    """Returns the memory limit of the constraints of a process, in bytes.

    Raises
    ------
    ArgumentError
        If the environment variable is not a positive integer.
    """
    given = os.environ.get(MEMORY_VARIABLE)
    if given is None:
        return MEMORY_LIMIT_BYTES
    if not given.isascii() or not given.isdigit() or int(given[:12]) == 0:
        raise ArgumentError(
            f"the environment variable {MEMORY_VARIABLE} must be a positive integer, got"
            f" {given!r:.40}",
            hint="it is the memory of constraints in MB, such as 256",
        )
    return int(given[:12]) << 20


def end_mask(end_token_ids: Iterable[int], words: int) -> npt.NDArray[np.int32]:
    """Returns the mask of a request that may only end, an int32 array ``(words,)``.

    Examples
    --------
    >>> end_mask([1, 33], words=2).tolist()
    [2, 2]
    """
    mask = np.zeros(words, dtype=np.uint32)
    for token_id in end_token_ids:
        mask[token_id >> 5] |= np.uint32(1 << (token_id & 31))
    return mask.view(np.int32)


class EngineConstraints:
    """Constraints for the requests of one engine, each compiled once.

    Threads may share it.

    Parameters
    ----------
    tokenizer
        The engine's tokenizer object, which is read once; or a :class:`~formalm.Vocabulary`.
    width
        Number of logits of the model. It may exceed the number of tokens, because engines pad it;
        the ids beyond are never allowed. If the tokenizer has more tokens than that, masks cover
        all of them.
    memory_limit_bytes
        Memory limit of all constraints together; by default what the environment variable
        ``FORMALM_CACHE_MB`` says in MB, and 256 MB without it.
    timeout_seconds
        Maximum time to compile one constraint.
    warm_up_seconds
        Time for which a compiled constraint computes masks ahead of its first request, in the
        thread that compiled it; see :meth:`~formalm.Constraint.warm_up`.

    Raises
    ------
    VocabularyError
        If the bytes of the tokens cannot be read from the tokenizer.
    ArgumentError
        If the environment variable is not a positive integer.

    Examples
    --------
    >>> from formalm import Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"1", b"2", None], end_token_ids=[2])
    >>> constraints = EngineConstraints(vocabulary, width=8)
    >>> matcher = constraints.matcher("regex", "1+", end_token_ids=[1])
    >>> matcher.advance(0)
    >>> matcher.mask().tolist()
    [True, True, False, False, False, False, False, False]
    """

    def __init__(
        self,
        tokenizer: Any,
        width: int,
        *,
        memory_limit_bytes: int | None = None,
        timeout_seconds: float | None = COMPILE_SECONDS,
        warm_up_seconds: float = 0.0,
    ) -> None:
        self.vocabulary = _vocabulary_of(tokenizer)
        self.width = max(width, len(self.vocabulary))
        self.cache = ConstraintCache(
            self.vocabulary,
            memory_limit_bytes=memory_limit() if memory_limit_bytes is None else memory_limit_bytes,
            timeout_seconds=timeout_seconds,
            warm_up_seconds=warm_up_seconds,
        )

    @property
    def words(self) -> int:
        """Number of int32 words of a row of a bitmask."""
        return -(-self.width // 32)

    def constraint(
        self,
        kind: RequestKind,
        specification: str,
        *,
        any_whitespace: bool = True,
        additional_properties: bool = True,
    ) -> Constraint:
        """Returns the constraint of a request; see :func:`request_language`.

        Raises
        ------
        FormalmError
            If the request is invalid, or exceeds a limit.
        """
        language = request_language(
            kind,
            specification,
            any_whitespace=any_whitespace,
            additional_properties=additional_properties,
        )
        return self.cache.constraint(language, width=self.width)

    def matcher(
        self,
        kind: RequestKind,
        specification: str,
        *,
        end_token_ids: Iterable[int] | None = None,
        any_whitespace: bool = True,
        additional_properties: bool = True,
    ) -> Matcher:
        """Returns a matcher for a request.

        Parameters
        ----------
        kind, specification, any_whitespace, additional_properties
            As for :func:`request_language`.
        end_token_ids
            The tokens at which the engine stops this request; none given means the tokenizer's.

        Returns
        -------
        Matcher
            One whose calls raise a DeadlineError after 5 seconds, so that no request holds up the
            others for long.

        Raises
        ------
        FormalmError
            If the request is invalid, or exceeds a limit.
        """
        constraint = self.constraint(
            kind,
            specification,
            any_whitespace=any_whitespace,
            additional_properties=additional_properties,
        )
        return constraint.matcher(
            end_token_ids=self.end_token_ids(end_token_ids), timeout_seconds=STEP_SECONDS
        )

    def end_token_ids(self, given: Iterable[int] | None) -> list[int] | None:
        """Returns the end tokens of a request; None if they are the vocabulary's.

        Raises
        ------
        ArgumentError
            If there are none at all, or one is not a token.
        """
        own = self.vocabulary.end_token_ids
        ends = sorted(set(given or ()))
        if not ends:
            if own:
                return None
            raise ArgumentError(
                "the request must have a stop token, because the tokenizer names no end token",
                hint="pass stop_token_ids",
            )
        for token_id in ends:
            if not 0 <= token_id < len(self.vocabulary):
                raise ArgumentError(
                    f"stop token ids must be below the size of the vocabulary"
                    f" ({len(self.vocabulary)}), got {token_id}"
                )
        return None if ends == sorted(own) else ends


def _vocabulary_of(tokenizer: Any) -> Vocabulary:
    if isinstance(tokenizer, Vocabulary):
        return tokenizer
    try:
        return Vocabulary.from_tokenizer(tokenizer)
    except FormalmError as error:
        raise VocabularyError(
            f"the bytes of the engine's tokens cannot be read: {error.message}",
            hint="serve the model with its fast tokenizer of Hugging Face",
        ) from error
