"""Batched random walks through a tree of token sequences, from its roots to members.

Walkers advance together, so the evaluations they need next form batches. All walkers share the
evaluated nodes. The tree is native (``walk_tree.rs``): a round of draws is one call.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from formalm._core import WalkFrontier
from formalm.execution.model_rows import ModelRows, frontier_contexts
from formalm.execution.query_contexts import QueryContext
from formalm.execution.query_execution import QueryExecution, log_of
from formalm.models import Position

__all__ = ["END", "REJECTED", "RandomWalks"]

END = -1
"""The move of a walk that ends at its node."""
REJECTED = -2
"""The move of a walk that leaves the language."""
STEP_BYTES = 64 << 20
"""Maximum memory of rows that draws read."""


class RandomWalks:
    """The tree of several random walks, and the steps that can be taken from its nodes.

    Attributes
    ----------
    frontier
        The tree. The nodes of the contexts come first, in their order.
    """

    def __init__(self, execution: QueryExecution) -> None:
        execution.needs_all("a sample")
        # A draw checks the row that it reads.
        execution.session.defers_checks = execution.decoding.is_plain
        self.execution = execution
        self.frontier = WalkFrontier(
            execution.constraint.spelled.core,
            frontier_contexts(execution),
            end_token_ids=execution.session.vocabulary.end_token_ids,
            complete=execution.complete,
            max_tokens=execution.max_tokens,
            step_bytes=STEP_BYTES,
        )
        self._rows = ModelRows(execution, self.frontier, answer_bytes=None)
        self._reads_rows = execution.decoding.is_plain
        self._kept: dict[int, float] = {}
        self._logprobs: dict[int, float] = {}

    @property
    def root_nodes(self) -> range:
        """The nodes of the contexts."""
        return range(len(self.execution.contexts))

    def context(self, node: int) -> QueryContext:
        """Returns the context of a node."""
        return self.execution.contexts[self.frontier.root(node)]

    def data(self, node: int) -> bytes:
        """Returns the bytes of a node, with the context's own."""
        context = self.context(node)
        return context.data + self.frontier.data(node)[context.skip :]

    def can_be_evaluated(self, nodes: Sequence[int]) -> list[bool]:
        """Returns for each node whether the model can read that far; longer members have no
        probability.
        """
        found = self.frontier.can_be_evaluated(nodes)
        self.execution.cut_by_context |= self.frontier.cut_by_context
        return found

    def evaluate(self, nodes: Sequence[int]) -> None:
        """Evaluates the model at nodes not yet evaluated, in batches.

        Raises
        ------
        LimitReached
            If a limit is reached.
        """
        wanted, decided = self.frontier.unevaluated(nodes)
        for node in decided:
            self.frontier.decide(node, self._keeps(node))
        while wanted:
            batch = wanted[: self._room()]
            wanted = wanted[len(batch) :]
            positions = self._rows.evaluate(batch, [])
            self.execution.expansions += len(batch)
            self._record(batch, positions)

    def draw(
        self, nodes: list[int], uniforms: list[float], *, learned: bool = False
    ) -> tuple[list[int], list[float]]:
        """Draws a continuation of each evaluated node.

        Parameters
        ----------
        nodes, uniforms
            The nodes, and a number from 0 to below 1 for each.
        learned
            If False, a draw is among what the language allows. If True, it is the model's own and
            may be rejected; at nodes that earlier rounds evaluated, it is among what may still
            lead to members.

        Returns
        -------
        moves : list of int
            The next node of each walk, ``END`` or ``REJECTED``.
        totals : list of float
            The total probability that each draw was among.
        """
        moves, totals = self.frontier.draw(nodes, uniforms, learned)
        while len(moves) < len(nodes):
            done = len(moves)
            self._recall(nodes[done])
            more = self.frontier.draw(nodes[done:], uniforms[done:], learned)
            moves, totals = moves + more[0], totals + more[1]
        return moves, totals

    def listed(self, node: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float]:
        """Returns the allowed tokens of an evaluated node, ascending, their probabilities, and that
        of an end.
        """
        found = self.frontier.listed(node)
        while found is None:
            self._recall(node)
            found = self.frontier.listed(node)
        end = self.frontier.end(node)
        assert end is not None
        return *found, end

    def learn(self) -> None:
        """Updates the live shares of the nodes that this round evaluated, and of all above them."""
        nodes = self.frontier.to_learn()
        while (done := self.frontier.learn(nodes)) < len(nodes):
            nodes = nodes[done:]
            self._recall(nodes[0])

    def logprob(self, node: int) -> float:
        """Returns the log-probability of ending at a node, including the share of its root."""
        if node not in self._logprobs:
            self._logprobs[node] = sum(self.logprobs(node, ended=True)) + self.context(node).logprob
        return self._logprobs[node]

    def logprobs(self, node: int, *, ended: bool) -> list[float]:
        """Returns the log-probability of each token on the way to a node, and of ending there."""
        found = self.frontier.step_logprobs(node)
        at = node
        for place in range(len(found) - 1, -1, -1):
            parent = self.frontier.parent_of(at)
            if math.isnan(found[place]):
                found[place] = self._token_logprob(parent, self.frontier.token_of(at))
            at = parent
        if ended:
            end = self.frontier.end(node)
            found.append(log_of(0.0 if end is None else end))
        return found

    def _token_logprob(self, node: int, token_id: int) -> float:
        found = self.frontier.token_logprob(node, token_id)
        while found is None:
            self._recall(node)
            found = self.frontier.token_logprob(node, token_id)
        return found

    def _room(self) -> int:
        """Reports progress and returns the maximum size of the next batch."""
        frontier = self.frontier
        return self.execution.room_for(len(frontier), 0, None, frontier.memory_bytes)

    def _recall(self, node: int) -> None:
        """Records the answer at a node again, whose step was evicted."""
        self._record([node], [self._rows.answer_cache.recall(node)])

    def _record(self, nodes: list[int], positions: list[Position]) -> None:
        if not self._reads_rows:
            for node, position in zip(nodes, positions, strict=True):
                self._record_listed(node, position)
            return
        rows = [position.row for position in positions]
        values, normalized = [row.values for row in rows], [row.is_normalized for row in rows]
        has_filter = self.execution.keep is not None
        found = self.frontier.record_rows(nodes, values, normalized, has_filter)
        for row, (log_sum, code) in zip(rows, found, strict=True):
            row.accept(log_sum, code)
        if has_filter:
            for node in nodes:
                self.frontier.settle(node, self._keeps(node) if self.frontier.end(node) else 1.0)

    def _record_listed(self, node: int, position: Position) -> None:
        """Records the tokens that ``decoding`` and the language leave."""
        allowed, accepting = self.frontier.allowed(node)
        ids, logprobs, end = self.execution.split(position, allowed, accepting)
        ended = math.exp(end)
        self.frontier.record_listed(node, ids.astype(np.uint32), np.exp(logprobs), ended)
        self.frontier.settle(node, self._keeps(node) if ended else 1.0)

    def _keeps(self, node: int) -> float:
        """Returns 1, or 0 for a member that the query's ``keep`` drops: ending there leads
        nowhere.
        """
        if self.execution.keep is None:
            return 1.0
        if node not in self._kept:
            self._kept[node] = float(self.execution.keeps(self.data(node)))
        return self._kept[node]
