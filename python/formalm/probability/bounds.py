"""Proven bounds for the probability of an event, refined batch by batch.

The frontier holds all token sequences whose event is undecided, each with its probability as its
mass. A decided sequence adds its mass to the event or to nothing. An evaluated sequence passes its
mass to its children. The probability lies between the decided mass and the decided plus the
undecided mass.

``token_prefix`` is decided at the first node whose tokens spell a member. ``prefix`` and
``contains`` become languages whose members stay members whatever follows, so a node is decided as
soon as its text is accepted, wherever its last token ends. ``never`` is the complement of
``contains``. With canonical tokens, a node is decided once its own tokens are canonical.

Rounding is outward: every sum carries a bound of its own error, and every token the stated error of
its row's log-sum-exp. "The probability" is that of the model's row normalized exactly.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Literal, NamedTuple

from formalm.execution.frontier import Frontier
from formalm.execution.query_execution import LimitReached, QueryExecution

__all__ = ["BoundStatus", "Classify", "Interval", "ProbabilityBounds"]

EPSILON = 2.0**-52
LOOKED_AT = 5_000
"""Maximum number of token steps in the check that an event is possible at all."""
Classify = Callable[[bytes], object]
BoundStatus = Literal["running", "exact", "reached", "truncated", "interrupted"]


class Interval(NamedTuple):
    """An interval that contains the exact value."""

    low: float
    high: float

    @property
    def width(self) -> float:
        """The distance between the ends."""
        return self.high - self.low


class ProbabilityBounds:
    """The bounds of one query, refined by :meth:`run`.

    Parameters
    ----------
    execution
        The search context; the masses of its roots add up to one probability.
    event
        ``"complete"``, ``"token_prefix"``, ``"prefix"`` or ``"contains"``.
    classify
        Maps the text that decided the event to a cell. Masses are kept separately for each cell.

    Attributes
    ----------
    cells
        The decided masses of each cell.
    relative_error
        Upper bound on the relative rounding error of any sum of them.
    hidden
        True if some mass stays undecided because the model does not show all tokens.
    """

    def __init__(
        self, execution: QueryExecution, event: str, classify: Classify | None = None
    ) -> None:
        self.execution = execution
        self.event = event
        self.frontier = Frontier(execution)
        if execution.decoding.is_plain:  # an expansion checks the row that it reads
            execution.session.defers_checks = True
        self.cells: dict[object, list[float]] = defaultdict(list)
        self._classify = classify
        self._error = 0.0
        self.relative_error = 0.0
        self._open = 0.0
        self._open_error = 0.0
        self._finished = False
        self._parked: list[float] = []
        self._parked_error = 0.0
        self.hidden = False
        for node in self.frontier.root_nodes:
            if event == "contains" and _is_out_of_reach(self.frontier, node):
                continue  # otherwise every output of the model would stay undecided
            self._gain(math.exp(self.frontier.trie.logprob[node]))
            self.frontier.queue.push(node)

    @property
    def error(self) -> float:
        """Upper bound on the rounding error of the decided masses."""
        return self._error

    @property
    def undecided(self) -> float:
        """Upper bound on the mass that may still belong to the event."""
        if not self._finished:
            return max(0.0, self._open) + self._open_error
        # Only sequences that cannot be evaluated are left: do not subtract large numbers.
        return math.fsum(self._parked) + self._parked_error

    def low(self, cell: object) -> float:
        """Returns the decided mass of a cell, before its error is subtracted."""
        terms = self.cells.get(cell, [])
        if len(terms) > 4096:  # the sum is rounded once
            terms[:] = [math.fsum(terms)]
            self._error += EPSILON * terms[0]
            self.relative_error += EPSILON
        return math.fsum(terms)

    def run(self) -> Iterator[None]:
        """Refines the bounds, one model batch at a time.

        Raises
        ------
        LimitReached
            If a limit is reached; the bounds stay valid.
        """
        while self.frontier.queue:
            batch = self._collect(self.frontier.room())
            for expanded in self.frontier.expand(batch):
                node = expanded.node
                depth = self.frontier.trie.depth[node]
                self._lose(self.frontier.trie.logprob[node])
                if self.event == "complete" and expanded.end > -math.inf:
                    self._decide(node, expanded.end, depth + 1)
                if self.execution.max_tokens is None or depth < self.execution.max_tokens:
                    self._gain(expanded.mass, expanded.error)
                    self.frontier.queue_expanded(expanded)
                if self.frontier.unseen:
                    self._park_unseen(node, depth)
            yield None
        self._finished = True

    def _collect(self, room: int) -> list[int]:
        """Returns the open nodes with the largest masses, and decides those that need no
        evaluation.
        """
        frontier, trie = self.frontier, self.frontier.trie
        batch: list[int] = []
        while frontier.queue and len(batch) < room:
            node = frontier.queue.pop()
            if trie.parent[node] >= 0:
                try:
                    frontier.queue_next(trie.parent[node])
                except LimitReached:
                    frontier.queue.push(node)  # its mass is still undecided
                    raise
            if self.event != "complete" and frontier.states.accepting[frontier.state(node)]:
                self._lose(trie.logprob[node])
                self._decide(node, trie.logprob[node], trie.depth[node])
            elif not self._may_extend(node):
                self._close(node)
            else:
                batch.append(node)
        return batch

    def _may_extend(self, node: int) -> bool:
        depth, limit = self.frontier.trie.depth[node], self.execution.max_tokens
        if limit is not None and depth + (self.event != "complete") > limit:
            return False
        return self.execution.fits(depth, self.frontier.context(node))

    def _close(self, node: int) -> None:
        """Closes a node that is too long for a member, or undecided for good."""
        logprob, depth = self.frontier.trie.logprob[node], self.frontier.trie.depth[node]
        limit = self.execution.max_tokens
        self._lose(logprob)
        within = limit is None or depth + (self.event != "complete") <= limit
        if within or self.event == "contains":
            mass = math.exp(logprob)
            self._gain(mass)
            self._parked.append(mass)
            self._parked_error += mass * self._relative_error(node, logprob, depth)

    def _park_unseen(self, node: int, depth: int) -> None:
        """Keeps the mass that a partial model did not show as undecided."""
        mass = self.frontier.unseen.get(node, 0.0)
        if mass:
            self.hidden = True
            self._gain(mass)
            self._parked.append(mass)
            logprob = self.frontier.trie.logprob[node]
            self._parked_error += mass * self._relative_error(node, logprob, depth)

    def _decide(self, node: int, logprob: float, depth: int) -> None:
        cell: object = None
        if self._classify is not None or self.execution.keep is not None:
            data = self.frontier.context(node).data + self.frontier.data(node)
            if not self.execution.keeps(data):
                return
            cell = None if self._classify is None else self._classify(data)
        mass = math.exp(logprob)
        self.execution.covered = (self.execution.covered or 0.0) + mass
        self.cells[cell].append(mass)
        relative = self._relative_error(node, logprob, depth)
        self._error += mass * relative
        self.relative_error = max(self.relative_error, relative)

    def _relative_error(self, node: int, logprob: float, depth: int) -> float:
        """Returns the relative error of ``exp(logprob)``, where ``logprob`` sums ``depth`` rounded
        terms after those of the node's prefix.

        From each term the logarithm of a sum over the vocabulary is subtracted.
        """
        terms = depth + self.frontier.context(node).given_length
        rounding = EPSILON * (terms + 2) * (abs(logprob) + 16)
        return rounding + math.expm1(terms * self.execution.session.row_error)

    def _gain(self, mass: float, error: float = 0.0) -> None:
        self._open += mass
        self._open_error += 8 * EPSILON * (mass + abs(self._open)) + error

    def _lose(self, logprob: float) -> None:
        mass = math.exp(logprob)
        self._open -= mass
        self._open_error += 8 * EPSILON * (mass + abs(self._open))


def _is_out_of_reach(frontier: Frontier, node: int) -> bool:
    """Returns True if a short search shows that no tokens lead from the node to a member."""
    states, start = frontier.states, frontier.state(node)
    if states.accepting[start]:
        return False
    seen, waiting, steps = {start}, [start], 0
    while waiting:
        state = waiting.pop()
        ids = states.allowed(state).tolist()
        steps += len(ids)
        if steps > LOOKED_AT:
            return False
        for after in {states.step(state, token_id) for token_id in ids} - seen:
            if states.accepting[after]:
                return False
            seen.add(after)
            waiting.append(after)
    return True
