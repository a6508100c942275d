"""``Session``: uniform access to any model, with counting and validation of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from formalm import _core
from formalm.errors import ArgumentError, ModelError
from formalm.models.logit_rows import (
    TOLERANCE,
    TOLERANCE_HALF,
    LogitRow,
    LogitRows,
    LogProbs,
    is_readable,
)
from formalm.models.model_protocols import (
    IncrementalModel,
    LanguageModel,
    ModelState,
    RunModel,
    check_width,
)

__all__ = ["Position", "Session"]

SERVED_ERROR = 1e-6
"""Maximum deviation that rounding may cause in the sum of a served row."""


@dataclass(eq=False, slots=True)
class Position:
    """A prefix and the model's answer to it, never modified.

    A frozen dataclass would take four times as long to create, at every forward.

    Attributes
    ----------
    token_ids
        The prefix.
    row
        The model's row after the prefix. An array ``(width,)`` of log-probabilities becomes one.
    state
        The state from which an incremental model continues.
    unseen
        Upper bound on the total of the tokens that a partial model did not show.
    unseen_each
        Upper bound on each of them.
    """

    token_ids: tuple[int, ...]
    row: LogitRow
    state: ModelState | None
    unseen: float = 0.0
    unseen_each: float = 0.0

    @property
    def logprobs(self) -> LogProbs:
        """``(width,)``, log-probabilities of the next token: as the model returned them, or of its
        logits in float64, a new array.
        """
        return self.row.logprobs

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
    row_error
        Upper bound on the error of the log-sum-exp of any row that a query used so far, in nats.
    defers_checks
        If True, a row is checked when its sum is first needed, which may be never for a row that is
        not used. If False, every row is checked at once.

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
        self._size = len(self.vocabulary)
        self._check_facts()
        self.tokens_computed = 0
        self.cache_hits = 0
        # Instance checks of protocols take microseconds.
        self._stateful = model if isinstance(model, IncrementalModel) else None
        self._runs = model if isinstance(model, RunModel) else None
        self.incremental = self._stateful is not None
        self.shown_tokens: int | None = getattr(model, "shown_tokens", None)
        self.width: int | None = None
        self.forwards = 0
        self.calls = 0
        self.defers_checks = False
        self.row_error = 0.0
        self._next_logits = _logits_of(model)

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
        if self._stateful is not None:
            self.calls += len(rows)
            states = [self._stateful.start(row) for row in rows]
            return self._positions(rows, states)
        self.calls += 1
        return self._evaluated(rows)

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
        self._checked_rows(LogitRows(answers, is_normalized=True), len(rows), now=True)
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
        if self._stateful is None:
            self.calls += 1
            self.forwards += len(prefixes)
            self.tokens_computed += sum(map(len, prefixes))
            return self._evaluated(prefixes)
        states = [position.state for position in positions if position.state is not None]
        self.tokens_computed += sum(map(len, rows))
        self.cache_hits += len(rows)
        if self._runs is not None:
            states = self._answered(self._runs.extend_many(states, rows), len(rows))
        else:
            for step in range(max(map(len, rows))):
                places = [place for place, row in enumerate(rows) if len(row) > step]
                before, tokens = [states[p] for p in places], [rows[p][step] for p in places]
                answered = self._answered(self._stateful.extend(before, tokens), len(places))
                for place, state in zip(places, answered, strict=True):
                    states[place] = state
        return self._positions(prefixes, states)

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

    def _evaluated(self, prefixes: list[tuple[int, ...]]) -> list[Position]:
        """Returns positions whose rows a plain model computes."""
        if self._next_logits is not None:
            answers = LogitRows(self._next_logits(prefixes), is_normalized=False)
        else:
            answers = LogitRows(self.model.next_logprobs(prefixes), is_normalized=True)
        rows = self._checked_rows(answers, len(prefixes))
        if self.shown_tokens is None:
            return [Position(p, row, None) for p, row in zip(prefixes, rows, strict=True)]
        return [self._position(p, row) for p, row in zip(prefixes, rows, strict=True)]

    def _positions(
        self, prefixes: list[tuple[int, ...]], states: Sequence[ModelState]
    ) -> list[Position]:
        """Returns the positions of states, whose rows are read now."""
        rows = []
        shape = (self.width,)
        for state in states:  # row by row: one array of all would copy them all
            logits = getattr(state, "logits", None)
            answer = np.asarray(state.logprobs) if logits is None else logits
            if type(answer) is np.ndarray and answer.shape == shape and is_readable(answer):
                rows.append(LogitRow(answer, is_normalized=logits is None))
                continue
            answers = LogitRows(answer[None], is_normalized=logits is None)
            self._check_shape(answers.shape, 1)
            rows.append(answers[0])
        if not self.defers_checks:
            self._check(rows)
        return [
            Position(prefix, row, state)
            for prefix, row, state in zip(prefixes, rows, states, strict=True)
        ]

    def _position(self, token_ids: tuple[int, ...], row: LogitRow) -> Position:
        """Returns the position of a partial model."""
        assert self.shown_tokens is not None
        logprobs = row.logprobs
        shown = np.exp(logprobs[logprobs > -np.inf], dtype=np.float64)
        if len(shown) >= len(self.vocabulary):
            return Position(token_ids, row, None)
        # Servers write float32 values, or some of their digits.
        unseen = max(0.0, 1.0 - float(shown.sum())) + SERVED_ERROR
        each = float(shown.min()) if len(shown) >= self.shown_tokens else unseen
        return Position(token_ids, row, None, unseen, min(unseen, each))

    def _answered(self, states: Sequence[ModelState], count: int) -> list[ModelState]:
        """Counts the states that an incremental model returned."""
        self.calls += 1
        self.forwards += count
        if len(states) != count:
            raise ModelError(f"the model must return {count} states, got {len(states)}")
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
        result = tuple(map(int, token_ids))
        if not result:
            return result
        size = self._size
        if len(result) == 1 and 0 <= result[0] < size:  # most runs
            return result
        if min(result) < 0 or max(result) >= size:
            for token_id in result:
                if 0 <= token_id < size:
                    continue
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

    def _checked_rows(self, answers: LogitRows, count: int, *, now: bool = False) -> list[LogitRow]:
        """Returns the rows of an answer after its shape is checked, and the rows themselves if they
        are to be checked now.
        """
        self._check_shape(answers.shape, count)
        rows = [answers[at] for at in range(count)]
        if now or not self.defers_checks or self.shown_tokens is not None:
            self._check(rows)
        return rows

    def _check_shape(self, shape: tuple[int, ...], count: int) -> None:
        if len(shape) != 2 or shape[0] != count:
            raise ModelError(f"log-probabilities must have shape ({count}, width), got {shape}")
        width = shape[1]
        if width == self.width:
            return
        check_width(self.vocabulary, width)
        if self.width is not None:
            raise ModelError(
                f"the number of logits must not change, got {width} after {self.width}"
            )
        self.width = width

    def _check(self, rows: list[LogitRow]) -> None:
        """Refuses rows that are no distributions."""
        if not rows:
            return
        is_normalized = rows[0].is_normalized
        is_partial = self.shown_tokens is not None
        found = _core.log_sums([row.values for row in rows], is_normalized and not is_partial)
        for row, (log_sum, code) in zip(rows, found, strict=True):
            if is_partial and code == 3:  # it shows nothing
                row.accept_sum(-np.inf)
                continue
            tolerance = TOLERANCE_HALF if row.values.itemsize == 2 else TOLERANCE
            exceeds = is_partial and code == 0 and np.exp(log_sum) > 1.0 + tolerance
            row.accept(log_sum, 4 if exceeds else code)


def _logits_of(model: object) -> Any:
    """Returns the method ``next_logits`` of a model; None if it has none, or if a subclass or a
    wrapper replaces only ``next_logprobs``.
    """
    own = getattr(model, "__dict__", {})
    for names in (own, *(base.__dict__ for base in type(model).__mro__)):
        if "next_logits" in names:
            method: Any = model
            return method.next_logits
        if "next_logprobs" in names:
            return None
    return None


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
