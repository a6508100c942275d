"""The model's answers as native frontiers take them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm._core import Frontier, Matcher
from formalm.execution.model_answer_cache import STATE_BYTES, ModelAnswerCache
from formalm.execution.query_contexts import QueryContext
from formalm.execution.query_execution import QueryExecution
from formalm.models import Position

__all__ = [
    "ANSWER_BYTES",
    "ModelRows",
    "cache_bytes",
    "frontier_contexts",
    "native_top_k",
    "room_after",
]

CACHE_BYTES = 40 << 20
"""Maximum memory of cached children or rows."""
ANSWER_BYTES = 4 << 20
"""Maximum memory of the model's answers, of which a checkpoint stores a few."""
KeptTokens = tuple[npt.NDArray[np.uint32], npt.NDArray[np.float64]]
Answer = tuple[npt.NDArray[Any], float] | KeptTokens
"""A row and the logarithm of its sum, or some tokens and their log-probabilities."""


def frontier_contexts(execution: QueryExecution) -> list[tuple[Matcher, float, int | None]]:
    """Returns the matcher, the log-probability, and the tokens that the model can read after each
    context.
    """
    return [
        (context.matcher, context.logprob, room_after(execution, context))
        for context in execution.contexts
    ]


def room_after(execution: QueryExecution, context: QueryContext) -> int | None:
    """Returns the number of tokens that the model can read after a context; None if any."""
    length = execution.session.model.context_length
    return None if length is None else max(0, length - len(context.token_ids))


def native_top_k(execution: QueryExecution) -> tuple[int, bool] | None:
    """Returns the rule of the query's decoding that the frontier applies by itself, if any."""
    rule = execution.decoding
    is_top_k = rule.temperature == 1 and rule.top_p is None and rule.min_p is None
    if rule.top_k is None or not is_top_k:
        return None
    return rule.top_k, execution.renormalize


def cache_bytes(execution: QueryExecution) -> int:
    """Returns the maximum memory of what the frontier can compute again."""
    limits = (execution.limits.state_bytes, execution.limits.memory_bytes)
    return min([CACHE_BYTES, *(limit // 2 for limit in limits if limit is not None)])


class ModelRows:
    """Evaluates nodes of a frontier, and prepares their rows.

    Parameters
    ----------
    execution, frontier
        The query and its frontier.
    answer_bytes
        Maximum memory of the model's answers, at most half of the limit of ``state_bytes``. None
        caches all answers of a batch, within that half.

    Attributes
    ----------
    answer_cache
        The model's states, and its latest answers.
    """

    def __init__(
        self,
        execution: QueryExecution,
        frontier: Frontier,
        answer_bytes: int | None = ANSWER_BYTES,
    ) -> None:
        self.execution = execution
        self._prefixes = prefixes = [context.token_ids for context in execution.contexts]
        budget = execution.limits.state_bytes or STATE_BYTES
        self.answer_cache = ModelAnswerCache(
            execution.session,
            frontier,
            prefixes,
            budget,
            answer_bytes=None if answer_bytes is None else min(budget // 2, answer_bytes),
        )
        self._native = execution.decoding.is_plain or native_top_k(execution) is not None

    def add_context(self, context: QueryContext, root: int, position: Position | None) -> None:
        """Adds a context that was found while the search runs to the query.

        Parameters
        ----------
        context
            The context.
        root
            Its node.
        position
            The model's position there if it was evaluated, which is then not done again.
        """
        self.execution.contexts.append(context)
        self._prefixes.append(context.token_ids)
        if position is not None:
            self.answer_cache.know(root, position)

    def has(self, node: int) -> bool:
        """Returns True if a node's answer is cached."""
        return self.answer_cache.has(node)

    def evaluate(self, nodes: list[int], again: list[int]) -> list[Position]:
        """Evaluates nodes, and others whose answers are needed again, in one call if possible.

        Returns the positions of both. Cached answers of the others serve.
        """
        kept = {node: self.answer_cache.recall(node) for node in again if self.has(node)}
        missing = [node for node in again if node not in kept]
        self.answer_cache.recomputed += len(missing)
        both = nodes + missing
        found = dict(zip(both, self.answer_cache.evaluate(both), strict=True)) | kept
        return [found[node] for node in (*nodes, *again)]

    def of(self, positions: Sequence[Position]) -> list[Answer]:
        """Returns the row of each answer, or the tokens that the query's decoding keeps."""
        return [self._row(position) for position in positions]

    def _row(self, position: Position) -> Answer:
        if self._native:
            self.execution.check_shown(position)
            return position.row.values, position.row.offset
        return self.kept(position)

    def kept(self, position: Position) -> KeptTokens:
        """Returns :meth:`QueryExecution.kept` of an answer, as frontiers take it."""
        ids, logprobs = self.execution.kept(position)
        return ids.astype(np.uint32), np.ascontiguousarray(logprobs, dtype=np.float64)
