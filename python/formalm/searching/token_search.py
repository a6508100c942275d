"""Best-first search over token sequences (Dijkstra's algorithm), optionally with a beam.

A step never adds probability, so the best entry of the queue bounds everything still to come
(Dijkstra's rule). A finished sequence at the head of the queue is the next hit. Nodes further back
may be evaluated early to fill a batch: that changes the work and never the order.

A beam keeps for each length the sequences that leave the queue first. Those are the best of that
length: extensions of kept sequences come after them, and nothing better is still to come. This
also holds within a batch, as long as none of it is longer than the sequences taken before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from formalm.execution.frontier import Frontier
from formalm.execution.query_execution import LimitReached, QueryExecution, RawHit
from formalm.execution.sequence_trie import END, NodeQueue
from formalm.models import Position

__all__ = ["TokenSearch"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]


class TokenSearch:
    """One search over token sequences that spell members, most probable first.

    Ties go to the shorter, then the smaller sequence.

    Attributes
    ----------
    frontier
        The trie and the queue.
    hits
        The queued nodes that will be yielded.
    kept
        Number of sequences of each length that left the queue; counted only with a beam.
    is_consistent
        True if no step is in progress, so that the search can be saved.
    """

    def __init__(self, execution: QueryExecution) -> None:
        self.execution = execution
        self.frontier = Frontier(execution)
        self.hits: set[int] = set()
        self.kept: Counter[int] = Counter()
        self.is_consistent = True
        if execution.complete and len(execution.session.vocabulary.end_token_ids) > 1:
            # One end token that was shown says too little about all of them.
            execution.needs_all("a listing of complete texts, with several ends of sequence,")
        for node in self.frontier.root_nodes:
            self.frontier.queue.push(node)

    def restart(self, queue: list[int], hits: set[int], kept: Counter[int]) -> None:
        """Continues with the queue of another search, whose trie is already in place."""
        self.frontier.queue = NodeQueue(self.frontier.trie)
        self.requeue(queue)
        self.hits, self.kept = hits, kept

    def run(self) -> Iterator[RawHit | None]:
        """Yields the hits, and None after each batch."""
        frontier, queue = self.frontier, self.frontier.queue
        while queue:
            if queue.top() in self.hits:
                if frontier.best_unseen > frontier.trie.logprob[queue.top()]:
                    raise LimitReached("unseen")
                yield self.found(queue.pop())
                continue
            room = frontier.room()
            positions = self.evaluated(room)
            for node, position in positions:
                self.expand(node, *frontier.follow(node, position))
            self.is_consistent = True
            yield None
        if frontier.best_unseen > -np.inf:
            raise LimitReached("unseen")

    def evaluated(self, room: int) -> list[tuple[int, Position]]:
        """Evaluates and returns the best nodes; requeues them if that fails."""
        self.is_consistent = False
        batch: list[int] = []
        try:
            self.collect(room, batch)
            self.is_consistent = True
            positions = self.frontier.answer_cache.evaluate(batch)
        except BaseException as error:
            self.put_back(batch)
            self.is_consistent = self.is_consistent or isinstance(error, LimitReached)
            raise
        self.is_consistent = False
        return list(zip(batch, positions, strict=True))

    def collect(self, room: int, batch: list[int]) -> None:
        """Takes the best nodes to evaluate, and queues those that are also hits as hits."""
        frontier, execution, trie = self.frontier, self.execution, self.frontier.trie
        beams, longest = execution.limits.beams, None
        hits: list[int] = []
        while frontier.queue and len(batch) < room:
            if longest is not None and trie.depth[frontier.queue.top()] > longest:
                break
            if batch and not self.is_due(frontier.queue.top()):
                break
            node = frontier.queue.pop()
            if node in self.hits:
                hits.append(node)
                continue
            depth, parent = trie.depth[node], trie.parent[node]
            if beams is not None:
                if self.kept[depth] >= beams:
                    execution.cut_by_beam = True
                    continue  # and so are its siblings, which are worse
                self.kept[depth] += 1
            if parent >= 0:
                try:
                    frontier.queue_next(parent)
                except LimitReached:
                    self.put_back([node])
                    self.requeue(hits)
                    raise
            state = frontier.state(node)
            if not execution.complete and frontier.states.accepting[state]:
                self.hits.add(node)
                hits.append(node)
            over = not execution.complete and frontier.states.is_finished(state)
            if not over and execution.may_extend(depth, frontier.context(node)):
                batch.append(node)
                longest = None if beams is None else depth
        self.requeue(hits)

    def is_due(self, node: int) -> bool:
        """Returns whether a node may fill a batch: True unless better ones are still to come."""
        return True

    def requeue(self, nodes: list[int]) -> None:
        """Queues nodes that were taken out."""
        for node in nodes:
            self.frontier.queue.push(node)

    def put_back(self, batch: list[int]) -> None:
        """Undoes :meth:`collect` for nodes that were not evaluated."""
        for node in batch:
            if self.execution.limits.beams is not None:
                self.kept[self.frontier.trie.depth[node]] -= 1
            if node in self.hits:
                self.hits.discard(node)  # it is already queued
            else:
                self.frontier.queue.push(node)

    def expand(self, node: int, ids: Ids, totals: Floats, end: float) -> None:
        """Queues the continuations of an evaluated sequence: its best child, and its end."""
        frontier, execution = self.frontier, self.execution
        if execution.complete and end > -np.inf:
            ending = frontier.trie.add(node, END, end)
            self.hits.add(ending)
            frontier.queue.push(ending)
        if execution.max_tokens is None or frontier.trie.depth[node] < execution.max_tokens:
            frontier.queue_children(node, ids, totals)

    def found(self, node: int) -> RawHit:
        """Returns the result for a node."""
        self.hits.discard(node)
        frontier = self.frontier
        token_ids = tuple(token for token in frontier.trie.path(node) if token != END)
        logprob, given = frontier.trie.logprob[node], frontier.context(node).data
        context_index, steps = frontier.trie.root(node), tuple(frontier.trie.steps(node))
        data = frontier.data(node)
        return RawHit(
            data, token_ids, logprob, given=given, context_index=context_index, token_logprobs=steps
        )
