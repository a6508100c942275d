"""Batched random walks through a trie of token sequences, from its roots to members.

Walkers advance together, so the evaluations they need next form batches. All walkers share the
evaluated nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from formalm.execution.frontier import Frontier
from formalm.execution.model_answer_cache import ByteBudgetLru
from formalm.execution.next_step import ListedStep, NextStep, RowStep
from formalm.execution.query_execution import QueryExecution, log_of
from formalm.models import Position

__all__ = ["RandomWalks"]

STEP_BYTES = 64 << 20
NO_IDS: npt.NDArray[np.int64] = np.empty(0, np.int64)
NO_MASSES: npt.NDArray[np.float64] = np.empty(0)


class RandomWalks:
    """The trie of several random walks, and the steps that can be taken from its nodes.

    Attributes
    ----------
    frontier
        The trie; its queue stays empty.
    alive
        For each evaluated node: the share of its probability that may still lead to members.
    """

    def __init__(self, execution: QueryExecution) -> None:
        execution.needs_all("a sample")
        # A step checks the row that it reads.
        execution.session.defers_checks = execution.decoding.is_plain
        self.execution = execution
        self.frontier = Frontier(execution)
        self.alive: dict[int, float] = {}
        self._children: dict[int, dict[int, int]] = {}
        self._steps: ByteBudgetLru[NextStep] = ByteBudgetLru(
            STEP_BYTES, lambda step: step.memory_bytes
        )
        self._size = len(execution.constraint.spelled)
        self._ends = execution.session.vocabulary.end_token_ids
        # What results report, which need no row later.
        self._taken: dict[int, float] = {}
        self._end_of: dict[int, float] = {}
        self._ended: dict[int, float] = {}
        self._kept: dict[int, float] = {}

    def child(self, node: int, token_id: int) -> int:
        """Returns the node after a token."""
        children = self._children.setdefault(node, {})
        found = children.get(token_id)
        if found is None:
            found = children[token_id] = self.frontier.trie.add(node, token_id, 0.0)
            step = self._steps.get(node)
            if step is not None:
                self._taken[found] = step.logprob(token_id)
        return found

    def children(self, node: int) -> Iterable[tuple[int, int]]:
        """Returns token and node of each visited child."""
        return self._children.get(node, {}).items()

    def can_be_evaluated(self, node: int) -> bool:
        """Returns True if the model can read that far; longer members have no probability."""
        if self._is_decided(node):
            return True
        return self.execution.fits(self.frontier.trie.depth[node], self.frontier.context(node))

    def evaluate(self, nodes: list[int]) -> None:
        """Evaluates the model at nodes not yet evaluated, in batches.

        Raises
        ------
        LimitReached
            If a limit is reached.
        """
        wanted = []
        for node in dict.fromkeys(nodes):
            if node in self.alive:
                continue
            if self._is_decided(node):
                kept = self._keeps(node)
                self.alive[node] = kept
                self._steps.keep(node, ListedStep(NO_IDS, NO_MASSES, kept))
            else:
                wanted.append(node)
        while wanted:
            batch = wanted[: self.frontier.room()]
            wanted = wanted[len(batch) :]
            positions = self.frontier.answer_cache.evaluate(batch)
            for node, position in zip(batch, positions, strict=True):
                self.execution.expansions += 1
                step = self._cache_step(node, position)
                self.alive[node] = step.children + step.end

    def step(self, node: int) -> NextStep:
        """Returns the possible continuations of an evaluated node."""
        step = self._steps.get(node)
        if step is None and self._is_decided(node):
            return ListedStep(NO_IDS, NO_MASSES, self._keeps(node))
        if step is None:
            return self._cache_step(node, self.frontier.answer_cache.recall(node))
        return step

    def _is_decided(self, node: int) -> bool:
        """Returns True if the event has happened whatever follows: the walk ends without a model
        call.
        """
        frontier = self.frontier
        return not self.execution.complete and frontier.states.accepting[frontier.state(node)]

    def _keeps(self, node: int) -> float:
        """Returns 1, or 0 for a member that the query's ``keep`` drops: ending there leads
        nowhere.
        """
        if self.execution.keep is None:
            return 1.0
        if node not in self._kept:
            data = self.frontier.context(node).data + self.frontier.data(node)
            self._kept[node] = float(self.execution.keeps(data))
        return self._kept[node]

    def logprob(self, node: int) -> float:
        """Returns the log-probability of ending at a node, including the share of its root."""
        if node not in self._ended:
            trie = self.frontier.trie
            share = trie.logprob[trie.root(node)]
            self._ended[node] = sum(self.logprobs(node, ended=True)) + share
        return self._ended[node]

    def logprobs(self, node: int, *, ended: bool) -> list[float]:
        """Returns the log-probability of each token on the way to a node, and of ending there."""
        found = []
        if ended:
            end = self._end_of.get(node)
            found.append(log_of(self.step(node).end if end is None else end))
        trie = self.frontier.trie
        while trie.parent[node] >= 0:
            taken = self._taken.get(node)
            if taken is None:
                taken = self.step(trie.parent[node]).logprob(trie.token[node])
            found.append(taken)
            node = trie.parent[node]
        return found[::-1]

    def _cache_step(self, node: int, position: Position) -> NextStep:
        step = self._read_step(node, position)
        self._steps.keep(node, step)
        self._end_of[node] = step.end
        return step

    def _read_step(self, node: int, position: Position) -> NextStep:
        frontier, execution = self.frontier, self.execution
        depth, limit = frontier.trie.depth[node], execution.max_tokens
        is_longest = limit is not None and depth >= limit
        if not execution.decoding.is_plain:
            # Nodes of walks except roots have a total of 0, so totals are single steps.
            ids, totals, end = frontier.follow(node, position, again=True)
            if is_longest:
                ids, totals = ids[:0], totals[:0]
            before = frontier.trie.logprob[node]
            ended = math.exp(end - before)
            kept = ended * self._keeps(node) if ended else 0.0
            return ListedStep(ids, np.exp(totals - before), kept)
        state = frontier.state(node)
        ends = self._ends if frontier.states.accepting[state] else ()
        size = 0 if is_longest else self._size
        step = RowStep(position.row, frontier.states.words(state), size, ends)
        if step.end:
            step.end *= self._keeps(node)
        return step
