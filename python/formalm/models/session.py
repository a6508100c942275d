"""``Session``: uniform access to any model, with counting and validation of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from formalm.errors import ArgumentError, ModelError
from formalm.models.model_protocols import (
    IncrementalModel,
    LanguageModel,
    LogProbs,
    ModelState,
    RunModel,
)

__all__ = ["Position", "Session"]

SERVED_ERROR = 1e-6
"""Maximum deviation that rounding may cause in the sum of a served row."""


@dataclass(frozen=True, eq=False)
class Position:
    """A prefix and the model's answer to it. An immutable value.

    Attributes
    ----------
    token_ids
        The prefix.
    logprobs
        ``(width,)``, log-probabilities of the next token, as the model returned them.
    state
        The state from which an incremental model continues.
    unseen
        Upper bound on the total of the tokens that a partial model did not show.
    unseen_each
        Upper bound on each of them.
    """

    token_ids: tuple[int, ...]
    logprobs: LogProbs
    state: ModelState | None
    unseen: float = 0.0
    unseen_each: float = 0.0

    def surely_best(self, logprobs: LogProbs, count: int) -> bool:
        """Returns True if the ``count`` largest of these tokens are above everything not shown.

        ``logprobs`` ``(width,)`` may have minus infinity for tokens that are not considered.
        """
        known = logprobs[logprobs > -np.inf]
        if not self.unseen or count <= 0:
            return not self.unseen
        if len(known) < count:
            return False
        least = np.partition(known, len(known) - count)[len(known) - count]
        return bool(np.exp(least) >= self.unseen_each)


class Session:
    """A model as generation and queries use it.

    Incremental models continue from their states; others evaluate each prefix from the start. Every
    answer is checked: a driver that trusted a model's NaN would return wrong probabilities, not an
    error.

    Parameters
    ----------
    model
        A :class:`~formalm.models.LanguageModel`, incremental or not.

    Attributes
    ----------
    forwards
        Prefixes evaluated so far.
    calls
        Batches of them.
    tokens_computed
        Tokens passed to the model.
    cache_hits
        Prefixes evaluated from a state, without passing their earlier tokens again.
    shown_tokens
        Number of tokens that a partial model shows of each distribution; None if it shows all.

    Raises
    ------
    ModelError
        If the model lacks a part of the protocol, or returns invalid values.
    """

    def __init__(self, model: LanguageModel) -> None:
        if not isinstance(model, LanguageModel):
            raise ModelError(
                f"model must be a LanguageModel, got {type(model).__name__}", hint=_hint_for(model)
            )
        self.model = model
        self.vocabulary = model.vocabulary
        self._check_facts()
        self.tokens_computed = 0
        self.cache_hits = 0
        self.incremental = isinstance(model, IncrementalModel)
        self.shown_tokens: int | None = getattr(model, "shown_tokens", None)
        self.width: int | None = None
        self.forwards = 0
        self.calls = 0
        self._room: LogProbs = np.empty((0, 0))  # reused: fresh memory takes longer than the sums

    def start(self, prefix: Sequence[int]) -> Position:
        """Evaluates a prefix."""
        return self.start_many([prefix])[0]

    def start_many(self, prefixes: Sequence[Sequence[int]]) -> list[Position]:
        """Evaluates prefixes: in one call, or one by one if the model is incremental."""
        if not prefixes:
            return []
        rows = [self._checked_ids(prefix) for prefix in prefixes]
        self._checked_length(max(map(len, rows)))
        self.forwards += len(rows)
        self.tokens_computed += sum(map(len, rows))
        if isinstance(self.model, IncrementalModel):
            self.calls += len(rows)
            states = [self.model.start(row) for row in rows]
            for state in states:
                self._check(np.asarray(state.logprobs)[None], 1)
            return [
                Position(row, state.logprobs, state)
                for row, state in zip(rows, states, strict=True)
            ]
        self.calls += 1
        answers = np.asarray(self.model.next_logprobs(rows))
        self._check(answers, len(rows))
        return [self._position(row, answer) for row, answer in zip(rows, answers, strict=True)]

    def plain(self, prefixes: Sequence[Sequence[int]]) -> LogProbs:
        """Returns the answers to prefixes in one plain call, ``(len(prefixes), width)``, without
        states.
        """
        rows = [self._checked_ids(prefix) for prefix in prefixes]
        if not rows:
            return np.empty((0, self.width or 0))
        self._checked_length(max(map(len, rows)))
        self.calls += 1
        self.forwards += len(rows)
        self.tokens_computed += sum(map(len, rows))
        answers = np.asarray(self.model.next_logprobs(rows))
        self._check(answers, len(rows))
        return answers

    def extend(self, positions: Sequence[Position], token_ids: Sequence[int]) -> list[Position]:
        """Reads one more token after each position, in one call."""
        return self.extend_many(positions, [(token_id,) for token_id in token_ids])

    def extend_many(
        self, positions: Sequence[Position], runs: Sequence[Sequence[int]]
    ) -> list[Position]:
        """Reads one or more tokens after each position; one forward for each if the model can.

        It takes one call, unless an incremental model reads only one token at a time.
        """
        if not positions:
            return []
        rows = [self._checked_ids(run) for run in runs]
        prefixes = [
            (*position.token_ids, *row) for position, row in zip(positions, rows, strict=True)
        ]
        self._checked_length(max(map(len, prefixes)))
        if not isinstance(self.model, IncrementalModel):
            self.calls += 1
            self.forwards += len(prefixes)
            self.tokens_computed += sum(map(len, prefixes))
            answers = np.asarray(self.model.next_logprobs(prefixes))
            self._check(answers, len(prefixes))
            return [self._position(p, row) for p, row in zip(prefixes, answers, strict=True)]
        states = [position.state for position in positions if position.state is not None]
        self.tokens_computed += sum(map(len, rows))
        self.cache_hits += len(rows)
        if isinstance(self.model, RunModel):
            states = self._answered(self.model.extend_many(states, rows), len(rows))
        else:
            for step in range(max(map(len, rows))):
                places = [place for place, row in enumerate(rows) if len(row) > step]
                before, tokens = [states[p] for p in places], [rows[p][step] for p in places]
                answered = self._answered(self.model.extend(before, tokens), len(places))
                for place, state in zip(places, answered, strict=True):
                    states[place] = state
        return [
            Position(p, state.logprobs, state) for p, state in zip(prefixes, states, strict=True)
        ]

    def sequence_logprobs(self, sequences: Sequence[tuple[int, ...]]) -> list[list[float]]:
        """Returns a partial model's log-probability of each token of some sequences except the
        first.
        """
        compute = getattr(self.model, "sequence_logprobs", None)
        if compute is None:
            raise ModelError(
                f"{type(self.model).__name__} reports only {self.shown_tokens} next tokens, and"
                " must have"
                " sequence_logprobs to score others"
            )
        self.calls += 1
        self.forwards += len(sequences)
        self.tokens_computed += sum(map(len, sequences))
        answers: list[list[float]] = compute(sequences)
        return answers

    def _position(self, token_ids: tuple[int, ...], row: LogProbs) -> Position:
        if self.shown_tokens is None:
            return Position(token_ids, row, None)
        shown = np.exp(row[row > -np.inf], dtype=np.float64)
        if len(shown) >= len(self.vocabulary):
            return Position(token_ids, row, None)
        # Servers write float32 values, or some of their digits.
        unseen = max(0.0, 1.0 - float(shown.sum())) + SERVED_ERROR
        each = float(shown.min()) if len(shown) >= self.shown_tokens else unseen
        return Position(token_ids, row, None, unseen, min(unseen, each))

    def _answered(self, states: Sequence[ModelState], count: int) -> list[ModelState]:
        """Checks and counts the states that an incremental model returned."""
        self.calls += 1
        self.forwards += count
        if len(states) != count:
            raise ModelError(f"the model must return {count} states, got {len(states)}")
        for state in states:  # row by row: one sum over all would copy them all
            self._check(np.asarray(state.logprobs)[None], 1)
        return list(states)

    def _check_facts(self) -> None:
        """Refuses a model with an invalid number of shown tokens, first token or context length."""
        shown: object = getattr(self.model, "shown_tokens", None)
        if shown is not None and (type(shown) is not int or shown < 1):
            raise ModelError(f"shown_tokens must be a positive integer or None, got {shown!r}")
        if shown is not None and isinstance(self.model, IncrementalModel):
            raise ModelError("shown_tokens must be None for an incremental model")
        first: Any = self.model.bos_token_id
        size = len(self.vocabulary)
        wrong = isinstance(first, bool) or not hasattr(first, "__index__")
        if first is not None and (wrong or not 0 <= first < size):
            raise ModelError(f"bos_token_id must be a token id below {size} or None, got {first!r}")
        length: object = self.model.context_length
        if length is not None and (type(length) is not int or length < 1):
            raise ModelError(f"context_length must be a positive integer or None, got {length!r}")

    def _checked_ids(self, token_ids: Sequence[int]) -> tuple[int, ...]:
        result = tuple(int(token_id) for token_id in token_ids)
        for token_id in result:
            if not 0 <= token_id < len(self.vocabulary):
                raise ArgumentError(
                    "token ids must be below the size of the vocabulary"
                    f" ({len(self.vocabulary)}), got"
                    f" {token_id}"
                )
        return result

    def _checked_length(self, length: int) -> None:
        limit = self.model.context_length
        if limit is not None and length > limit:
            raise ArgumentError(
                f"a prefix must fit the model's context of {limit} tokens, got {length}"
            )

    def _check(self, rows: LogProbs, count: int) -> None:
        if rows.ndim != 2 or rows.shape[0] != count:
            raise ModelError(
                f"log-probabilities must have shape ({count}, width), got {rows.shape}"
            )
        if not np.issubdtype(rows.dtype, np.floating):
            raise ModelError(
                f"log-probabilities must have a floating-point dtype, got {rows.dtype}"
            )
        width = rows.shape[1]
        if width < len(self.vocabulary):
            raise ModelError(
                f"the model must have a logit for each of the {len(self.vocabulary):,} tokens,"
                f" got {width:,}",
                hint="pass the vocabulary of this model",
            )
        if self.width is None:
            self.width = width
        elif width != self.width:
            raise ModelError(
                f"the number of logits must not change, got {width} after {self.width}"
            )
        wide = np.promote_types(rows.dtype, np.float32)
        if self._room.shape != rows.shape or self._room.dtype != wide:
            self._room = np.empty(rows.shape, dtype=wide)
        mass = np.exp(rows, out=self._room, dtype=wide).sum(axis=1)
        tolerance = 2e-2 if rows.dtype.itemsize < 4 else 1e-3
        if self.shown_tokens is not None and np.all(mass <= 1.0 + tolerance):
            return
        if not np.all(np.abs(mass - 1.0) <= tolerance):
            worst = mass[np.argmax(np.where(np.isfinite(mass), np.abs(mass - 1.0), np.inf))]
            hint = "wrap logits in FunctionModel, which normalizes them"
            raise ModelError(f"next-token probabilities must sum to 1, got {worst:.6g}", hint=hint)


def _hint_for(value: object) -> str:
    """Returns a hint on how to make a language model from a value that is not one."""
    kind = type(value)
    if isinstance(value, (str, PathLike)):
        return "pass from_transformers(folder) for a model of transformers in a local folder"
    if hasattr(value, "model") and hasattr(value, "tokenizer"):
        return "pass from_transformers(pipeline.model, pipeline.tokenizer)"
    if hasattr(value, "generate") and hasattr(value, "config"):
        return "pass from_transformers(model, tokenizer)"
    if hasattr(value, "next_logprobs"):
        needed = ("vocabulary", "bos_token_id", "context_length")
        missing = [name for name in needed if not hasattr(value, name)]
        lacking = ", ".join(missing)
        return f"the protocol formalm.models.LanguageModel also requires {lacking}"
    if callable(getattr(kind, "get_vocab", None)):
        return "a tokenizer computes no probabilities: pass from_transformers(model, tokenizer)"
    return (
        "pass from_transformers(model, tokenizer) for a model of transformers, or"
        " FunctionModel(vocabulary, function) for any function that returns logits"
    )
