"""Constraints for the continuous batching of transformers: ``model.generate_batch`` and managers.

It imports ``transformers`` at its top.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from transformers.generation.continuous_batching.cb_logits_processors import (
    CLASSIC_TO_CB_PROCESSORS_MAP,
    ContinuousBatchingLogitsProcessor,
)

from formalm.bitmask import apply_bitmask, fill_bitmasks, new_bitmask
from formalm.constraint import Constraint, Matcher
from formalm.errors import ArgumentError, TokenError
from formalm.generation.region_budget import RegionBudget, SequenceCounters, region_budgets
from formalm.integrations.hook_arguments import check_model, constraints_of
from formalm.languages import Language
from formalm.models.transformers.model_metadata import check_fits, ends_of, vocabulary_of, width_of

__all__ = ["continuous_constraints"]

REQUESTS = 1 << 16
"""Requests whose positions are kept; transformers does not say when one is over. A position takes
about 1 kB."""


class _RequestPosition:
    """The position of one request in its constraint, and in its regions."""

    def __init__(
        self, constraint: Constraint, prompt: Sequence[int], budgets: Sequence[RegionBudget]
    ) -> None:
        self.prompt_length = len(prompt)
        self.counters = SequenceCounters(budgets)
        after = [] if constraint.tokenization == "all" else list(prompt)
        self.matcher = constraint.matcher(after=after)

    def read(self, token_ids: Sequence[int]) -> Matcher:
        """Returns the matcher after a text that grew by one token, or is new or as before."""
        matcher = self.matcher
        known = matcher.token_ids
        if list(token_ids[: len(known)]) != list(known):
            matcher.rollback(len(known))
            known = []
        rest = list(token_ids[len(known) :])
        if matcher.advance_many(rest) != len(rest):
            raise TokenError(
                "a token of a request is not allowed by its constraint, so another component chose"
                " it",
                hint="no other processor may put tokens back that the constraint removed",
            )
        text = matcher.token_ids
        self.counters.follow(text[: len(text) - matcher.is_terminated], len(known))
        return matcher


class ConstraintProcessor(ContinuousBatchingLogitsProcessor):  # type: ignore[misc]
    """The masks of the requests in a batch; :func:`continuous_constraints` installs it."""

    supported_kwargs: dict[str, type] = {"constraint": Constraint}  # noqa: RUF012
    ignored_kwargs: tuple[str, ...] = ()

    def __init__(
        self,
        default: Constraint | None,
        vocabulary: Any,
        width: int,
        budgets: Sequence[RegionBudget] = (),
    ) -> None:
        self._default = default
        self._budgets = budgets
        self._vocabulary = vocabulary
        self._width = width
        self._positions: OrderedDict[str, _RequestPosition] = OrderedDict()
        self._lengths: dict[str, int] = {}
        self._words: Any = None
        self._rows: list[int] = []

    def fill_defaults(self, int32_tensor: torch.Tensor) -> None:
        """Fills in what stands for no request."""
        int32_tensor.fill_(-1)

    def prepare_tensor_args(self, requests_with_new_token: Sequence[Any]) -> torch.Tensor:
        """Computes the masks of the next batch; its rows are those of the requests, in order.

        Raises
        ------
        ArgumentError
            If batches are prepared before the last tokens are known, or a constraint has another
            vocabulary.
        """
        positions, matchers, rows, lengths = [], [], [], {}
        for row, request in enumerate(requests_with_new_token):
            state = request.state
            constraint = state.logit_processor_kwargs.get("constraint", self._default)
            tokens = [*state.initial_tokens, *state.generated_tokens]
            if self._lengths.get(state.request_id) == len(tokens):
                raise ArgumentError(
                    "use_async_batching must be False with constraints, which need the last token"
                    " before the next batch is prepared",
                    hint="pass ContinuousBatchingConfig(use_async_batching=False)",
                )
            lengths[state.request_id] = len(tokens)
            if constraint is None:
                continue
            position = self._position(state, constraint)
            matchers.append(position.read(tokens[position.prompt_length :]))
            positions.append(position)
            rows.append(row)
        self._lengths = lengths
        self._rows = rows
        self._words = new_bitmask(len(rows), self._width) if rows else None
        if rows:
            fill_bitmasks(matchers, self._words)
            for line, position in enumerate(positions):
                words = self._words[line]
                words[:] = position.counters.restricted(words)
        return torch.arange(len(requests_with_new_token), dtype=torch.int32)

    def _position(self, state: Any, constraint: Constraint) -> _RequestPosition:
        position = self._positions.get(state.request_id)
        if position is None:
            if constraint.vocabulary != self._vocabulary:
                raise ArgumentError(
                    "constraint must have the tokenizer's vocabulary, got a different one"
                )
            budgets = self._budgets if constraint is self._default else ()
            position = _RequestPosition(constraint, state.initial_tokens, budgets)
            self._positions[state.request_id] = position
            if len(self._positions) > REQUESTS:
                self._positions.popitem(last=False)
        self._positions.move_to_end(state.request_id)
        return position

    def __call__(self, scores: torch.Tensor, tensor_arg: torch.Tensor) -> torch.Tensor:
        """Returns masked scores ``(tokens, width)``."""
        if scores.is_cuda and torch.cuda.is_current_stream_capturing():
            raise ArgumentError(
                "use_cuda_graph must be False with constraints, whose masks change at each step",
                hint="pass ContinuousBatchingConfig(use_cuda_graph=False)",
            )
        if not self._rows:
            return scores
        masked = scores.clone()
        apply_bitmask(masked, self._words, rows=self._rows)
        return masked


class _Placeholder:
    """What the model's list of processors has: transformers replaces it by the processor of
    requests, for which it then reserves room.
    """

    supports_continuous_batching = True

    def __init__(self, processor: ConstraintProcessor) -> None:
        self.processor = processor

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        raise ArgumentError(
            "per_request_processors must be True with constraints",
            hint="pass ContinuousBatchingConfig(per_request_processors=True)",
        )


CLASSIC_TO_CB_PROCESSORS_MAP[_Placeholder] = lambda placeholder: placeholder.processor


@contextmanager
def continuous_constraints(
    model: Any,
    tokenizer: Any,
    language: Language | Constraint | Sequence[str] | None = None,
    *,
    max_reasoning_tokens: int | None = None,
    max_free_tokens: int | None = None,
) -> Iterator[None]:
    """Keeps the requests of continuous batching inside languages, within a ``with`` block.

    In the block, ``model.generate_batch`` and managers constrain every request to ``language``. A
    request of a manager may have its own, ``manager.add_request(ids, constraint=Constraint(…))``,
    over the tokenizer's vocabulary. Requests must have processors of their own, and asynchronous
    batching and CUDA graphs must be off: ``ContinuousBatchingConfig(per_request_processors=True,
    use_async_batching=False, use_cuda_graph=False)``.

    Parameters
    ----------
    model
        The model of transformers, whose generation configuration names the end tokens.
    tokenizer
        Its tokenizer, or a :class:`~formalm.Vocabulary`.
    language
        The language of requests without their own: a language, a list of strings or a constraint;
        None leaves them free.
    max_reasoning_tokens, max_free_tokens
        Budgets of the regions of ``language``, a :class:`~formalm.Structure`, as in
        :func:`formalm.generate`. Requests with a constraint of their own have none.

    Raises
    ------
    ArgumentError
        If this is not a model of transformers, the end tokens differ, or a budget does not apply to
        the language.
    ModelError
        If the vocabulary has more tokens than the model has logits.
    """
    check_model(model)
    vocabulary = vocabulary_of(tokenizer, *ends_of(model, tokenizer))
    default = None
    if language is not None:
        (default,) = constraints_of(language, vocabulary, None)
    width = width_of(model)
    check_fits(vocabulary, width)
    budgets = region_budgets(default, max_reasoning_tokens, max_free_tokens)
    inner = model._get_logits_processor

    def with_constraints(*arguments: Any, **options: Any) -> Any:
        processors = inner(*arguments, **options)
        made = ConstraintProcessor(default, vocabulary, width, budgets)
        processors.append(_Placeholder(made))
        return processors

    model._get_logits_processor = with_constraints
    try:
        yield
    finally:
        del model._get_logits_processor
