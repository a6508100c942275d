"""The backend in vLLM's terms: subclasses of its abstract classes, and the check of a request."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import check_json_nesting
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key

from formalm.engines.engine_constraints import BACKEND_NAME, EngineConstraints, memory_limit
from formalm.engines.request_languages import RequestKind
from formalm.engines.request_masks import RequestMasks
from formalm.errors import ArgumentError, FormalmError

__all__ = ["FormalmBackend", "FormalmGrammar", "check_request"]

KINDS: dict[StructuredOutputOptions, RequestKind] = {
    StructuredOutputOptions.JSON: "json",
    StructuredOutputOptions.JSON_OBJECT: "json_object",
    StructuredOutputOptions.REGEX: "regex",
    StructuredOutputOptions.GRAMMAR: "grammar",
    StructuredOutputOptions.CHOICE: "choice",
    StructuredOutputOptions.STRUCTURAL_TAG: "structural_tag",
}

#: Largest memory limit of the constraints that the server's process keeps to check requests with.
#: Chosen, not measured.
CHECK_MEMORY_LIMIT_BYTES = 64 << 20


class FormalmGrammar(RequestMasks, StructuredOutputGrammar):  # type: ignore[misc]
    """One request: a matcher, which ends at the request's own stop tokens.

    vLLM calls it in its scheduling loop. A request that fails there refuses its next tokens, and
    vLLM ends it with an error.
    """

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Reads tokens, and returns False if one is not allowed, or if the request has failed.
        Tokens after the end are ignored.
        """
        core = self.matcher.core
        if self.has_failed:
            return False
        try:
            read = core.advance_many(tokens)
        except ArgumentError:
            # An id beyond the vocabulary, which no mask allows.
            return False
        except FormalmError as error:
            self.fail(error)
            return False
        return read == len(tokens) or core.is_terminated

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Returns the longest prefix that is allowed; nothing is read."""
        if self.has_failed:
            return []
        try:
            return tokens[: self.matcher.core.validate_tokens(tokens)]
        except FormalmError as error:
            self.fail(error)
            return []

    def rollback(self, num_tokens: int) -> None:
        """Undoes the last steps, an end token among them."""
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Writes the mask into one row."""
        self.fill(bitmask, batch_index)

    def is_terminated(self) -> bool:
        """Returns True if an end token was read."""
        return self.matcher.core.is_terminated

    def reset(self) -> None:
        """Returns to the beginning."""
        self.matcher.reset()


@dataclass
class FormalmBackend(StructuredOutputBackend):  # type: ignore[misc]
    """The constraints of an engine process."""

    def __post_init__(self) -> None:
        self.constraints = EngineConstraints(self.tokenizer, self.vocab_size)
        config = self.vllm_config.structured_outputs_config
        self._is_compact = config.disable_any_whitespace
        self._is_closed = config.disable_additional_properties

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: set[int] | None = None,
    ) -> FormalmGrammar:
        """Returns the matcher of a specification, with the options of the engine."""
        return self._compiled(
            request_type, grammar_spec, stop_token_ids, compact=False, closed=False
        )

    def compile_request(self, request: Any) -> FormalmGrammar:
        """Returns the matcher of a request, with its own options and those of the engine."""
        wanted = request.structured_output_request
        request_type, specification = wanted.structured_output_key
        ends = request.sampling_params.all_stop_token_ids
        return self._compiled(
            request_type,
            specification,
            ends,
            compact=wanted.params.disable_any_whitespace,
            closed=wanted.params.disable_additional_properties,
        )

    def _compiled(
        self,
        request_type: StructuredOutputOptions,
        specification: str,
        ends: Iterable[int] | None,
        *,
        compact: bool,
        closed: bool,
    ) -> FormalmGrammar:
        matcher = self.constraints.matcher(
            KINDS[request_type],
            specification,
            end_token_ids=ends,
            any_whitespace=not (compact or self._is_compact),
            additional_properties=not (closed or self._is_closed),
        )
        return FormalmGrammar(matcher)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Returns rows that allow everything."""
        return torch.full((max_num_seqs, self.constraints.words), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Drops the constraints."""
        self.constraints.cache.clear()


#: The constraints that requests are checked with, by the identity of the tokenizer.
_CHECKING: dict[int, tuple[weakref.ref[Any], EngineConstraints]] = {}
#: The server checks requests in threads.
_LOCK = threading.Lock()


def _checking(tokenizer: Any, width: int) -> EngineConstraints:
    with _LOCK:
        known = _CHECKING.get(id(tokenizer))
        if known is not None and known[0]() is tokenizer:
            return known[1]
        limit = min(memory_limit(), CHECK_MEMORY_LIMIT_BYTES)
        made = EngineConstraints(tokenizer, width, memory_limit_bytes=limit)
        for key in [key for key, (of, _) in _CHECKING.items() if of() is None]:
            del _CHECKING[key]
        _CHECKING[id(tokenizer)] = (weakref.ref(tokenizer), made)
        return made


def check_request(params: Any, model_config: Any, tokenizer: Any) -> None:
    """Checks the constraint of a request, and marks it for our backend.

    Raises
    ------
    VLLMValidationError
        With our message and hint, if the constraint is invalid or not supported. The server answers
        with status 400.
    """
    wanted = params.structured_outputs
    if model_config.is_diffusion:
        raise VLLMValidationError(
            "structured outputs are not supported for diffusion language models: their tokens are"
            " not written from left to right"
        )
    if tokenizer is None:
        raise VLLMValidationError(
            "structured outputs require a tokenizer, got skip_tokenizer_init=True"
        )
    if wanted._backend and wanted._backend != BACKEND_NAME:
        raise VLLMValidationError(
            f"the backend of a request must be that of the engine, {BACKEND_NAME!r}, got"
            f" {wanted._backend!r}"
        )
    if wanted.json_object is False:
        raise VLLMValidationError(
            "json_object must be True or absent, got False; omit structured_outputs for free text"
        )
    if wanted.whitespace_pattern is not None:
        raise VLLMValidationError(
            "whitespace_pattern is not supported by the backend formalm; JSON has at most one"
            " whitespace character between tokens, and none with disable_any_whitespace"
        )
    # A schema that nests too deeply could not even be written as JSON.
    check_json_nesting(wanted.json)
    try:
        kind, specification = get_structured_output_key(wanted)
        constraints = _checking(tokenizer, model_config.get_vocab_size())
        constraints.constraint(
            KINDS[kind],
            specification,
            any_whitespace=not wanted.disable_any_whitespace,
            additional_properties=not wanted.disable_additional_properties,
        )
        constraints.end_token_ids(params.all_stop_token_ids)
    except FormalmError as error:
        raise VLLMValidationError(f"invalid structured output: {error}") from error
    wanted._backend = BACKEND_NAME
