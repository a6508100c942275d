"""Best-first search over strings, each with the sum of all its tokenizations.

A *reading* of a string is a token sequence that spells it, a node of the frontier's trie. The queue
holds byte strings. The entry of a string ``u`` keeps all readings of prefixes of ``u``, each with
its exact probability:

- *evaluated* readings as a fan: the tokens that continue the reading in agreement with ``u`` and
  extend beyond it;
- *pending* readings, not yet evaluated, as they are.

Bound. A reading of a member ``s`` that extends ``u`` either uses a token of some fan at ``u``, or
begins with a pending reading. Readings in different fans, different tokens of one fan, and
different pending readings are mutually exclusive prefixes of a token sequence. The probabilities of
the readings of ``s`` therefore add up to at most the sum over the fans' tokens and the pending
readings. That sum is the entry's bound. It holds for the total of all members that extend ``u``,
hence for each.

A candidate ``u``, itself a member, has a probability of at least the sum of its readings found so
far, and at most that sum plus the pending readings that end before ``u``. It is yielded when it is
first in the queue and the pending part is at most ``tolerance`` of it; no other string can then
exceed it by more than that. Pending readings are evaluated largest first, and only where they
matter. A string of n bytes has up to 2ⁿ readings, but a trained model gives all but a few a
negligible probability.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from formalm.execution.frontier import Frontier
from formalm.execution.query_execution import LimitReached, QueryExecution, RawHit
from formalm.searching.tokenization_nodes import StringEntry, TokenizationNodes, log_sum

__all__ = ["StringSearch"]

# A pending reading with at least this share of the bound is evaluated before its string expands.
WORTH_EVALUATING = 0.01
QueueEntry = tuple[tuple[float, int, bytes, int, int], StringEntry]


class StringSearch:
    """One search over strings: its queue and the steps on it.

    Attributes
    ----------
    frontier
        The trie of readings.
    tokenizations
        The data of each reading.
    heap
        The queue.
    is_consistent
        True if no step is in progress, so that the search can be saved.
    """

    def __init__(self, execution: QueryExecution) -> None:
        execution.needs_all("a listing of strings")
        self.execution = execution
        self.frontier = Frontier(execution)
        self.tokenizations = TokenizationNodes(self.frontier)
        self.heap: list[QueueEntry] = []
        self.is_consistent = True
        self._bytes = 0
        trie = self.frontier.trie
        for number, node in enumerate(self.frontier.root_nodes):
            pending = [node] if self.may_be_extended(node) else []
            self.add(StringEntry(b"", trie.state[node], number, exact=[node], pending=pending))

    def restart(self, entries: list[StringEntry], ends: dict[int, float]) -> None:
        """Continues with the entries of another search, whose trie is already in place."""
        self.heap, self._bytes = [], 0
        self.tokenizations.restore(ends)
        for entry in entries:
            self.push(entry)

    @property
    def memory_bytes(self) -> int:
        """Memory of the trie and the queue."""
        return self.frontier.trie.memory_bytes + self.tokenizations.memory_bytes + self._bytes

    def run(self) -> Iterator[RawHit | None]:
        """Yields every member with its total over all tokenizations, most probable first.

        Yields None after each batch.
        """
        while self.heap:
            room = self.room()
            self.is_consistent = False
            aside: list[StringEntry] = []
            requests: dict[int, None] = {}
            looked_at = 0
            while self.heap and len(requests) < self.execution.batch_size > looked_at // 4:
                entry = self.pop()
                if any(node in self.tokenizations.ends for node in entry.pending):
                    self.push(entry)  # evaluated for other strings: its bound fell
                    continue
                looked_at += 1
                wanted = self.wanted(entry)
                if not wanted and not entry.member:
                    self.expand(entry)
                elif not wanted and not aside:
                    self.is_consistent = True
                    yield self.found(entry)
                    self.is_consistent = False
                else:
                    requests.update(dict.fromkeys(wanted))
                    aside.append(entry)
            try:
                if requests:
                    self.tokenizations.evaluate(list(requests)[:room])
            finally:
                for entry in aside:
                    self.push(entry)
                self.is_consistent = True
            yield None

    def room(self) -> int:
        """Returns the maximum size of the next batch; raises as :meth:`QueryExecution.room`."""
        if self.execution.progress is not None:
            best = -self.heap[0][0][0] if self.heap else None
            self.execution.report(len(self.frontier.trie), len(self.heap), best)
        limit = self.execution.limits.memory_bytes
        if limit is not None and self.memory_bytes > limit:
            raise LimitReached("memory_bytes")
        return self.execution.room()

    def add(self, entry: StringEntry) -> None:
        """Queues a newly reached string: its extensions, and itself if it is a member."""
        states = self.frontier.states
        if states.accepting[entry.state]:
            exact, pending = list(entry.exact), list(entry.pending)
            self.push(
                StringEntry(entry.data, entry.state, entry.context_index, True, exact, pending)
            )
        if entry.token_ranges or not states.is_finished(entry.state):
            self.push(entry)

    def push(self, entry: StringEntry) -> None:
        """Queues by bound; ties go to the shorter, then the smaller string."""
        self.absorb(entry)
        bound = self.bound(entry)
        if bound > -math.inf:
            kind = int(not entry.member) + len(entry.done)
            key = (-bound, len(entry.data), entry.data, entry.context_index, kind)
            heappush(self.heap, (key, entry))
            self._bytes += entry.memory_bytes

    def pop(self) -> StringEntry:
        """Removes and returns the entry with the largest bound."""
        entry = heappop(self.heap)[1]
        self._bytes -= entry.memory_bytes
        return entry

    def absorb(self, entry: StringEntry) -> None:
        """Replaces pending readings that have been evaluated by their continuations."""
        tokenizations, size = self.tokenizations, len(entry.data)
        waiting, entry.pending = entry.pending, []
        while waiting:
            node = waiting.pop()
            if node not in tokenizations.ends:
                entry.pending.append(node)
                continue
            ranks, totals = tokenizations.rows(node)
            rest = entry.data[tokenizations.length[node] :]
            low, high, inside = tokenizations.sorted_tokens.narrow(ranks, rest)
            for row in inside:
                child = tokenizations.child(node, int(ranks[row]), float(totals[row]))
                if tokenizations.length[child] == size:
                    entry.exact.append(child)
                if self.may_be_extended(child):
                    waiting.append(child)
            if not entry.member and low < high:
                self.add_token_range(entry, node, low, high)
        logprob, path = self.frontier.trie.logprob, self.frontier.trie.path
        entry.pending.sort(key=lambda node: (-logprob[node], path(node)))

    def add_token_range(self, entry: StringEntry, node: int, low: int, high: int) -> None:
        """Records the tokens with which an evaluated reading extends beyond a string."""
        ranks, totals = self.tokenizations.rows(node)
        together = float(np.logaddexp.reduce(totals[low:high]))
        entry.token_ranges.append((node, int(ranks[low]), int(ranks[high - 1]) + 1, together))

    def expand(self, entry: StringEntry) -> None:
        """Queues the strings one byte longer."""
        tokenizations, sorted_tokens = self.tokenizations, self.tokenizations.sorted_tokens
        found: dict[int, StringEntry] = {}
        for token_range in entry.token_ranges:
            node = token_range[0]
            ranks, totals, low, high = tokenizations.slice(token_range)
            depth = len(entry.data) - tokenizations.length[node]
            for byte, start, middle, end in sorted_tokens.split(ranks, low, high, depth):
                if byte in entry.done:
                    continue
                if byte not in found:
                    state = self.frontier.states.step_bytes(entry.state, bytes([byte]))
                    found[byte] = StringEntry(
                        entry.data + bytes([byte]), state, entry.context_index
                    )
                longer = found[byte]
                for row in range(start, middle):
                    child = tokenizations.child(node, int(ranks[row]), float(totals[row]))
                    longer.exact.append(child)
                    if self.may_be_extended(child):
                        longer.pending.append(child)
                if middle < end:
                    self.add_token_range(longer, node, middle, end)
        for longer in found.values():
            longer.pending += entry.pending
            self.add(longer)
        if entry.pending:
            done = entry.done.union(found)
            rest = StringEntry(
                entry.data, entry.state, entry.context_index, pending=entry.pending, done=done
            )
            self.push(rest)

    def may_be_extended(self, node: int) -> bool:
        """Returns True if the model can be asked for continuations."""
        return self.execution.may_extend(
            self.frontier.trie.depth[node], self.frontier.context(node)
        )

    def bound(self, entry: StringEntry) -> float:
        """Returns the log of an upper bound on a member, or on all members that extend a string."""
        logprob = self.frontier.trie.logprob
        if entry.member:
            waiting = [logprob[node] for node in self.open_tokenizations(entry)]
            return log_sum([self.total(entry), *waiting])
        token_ranges = [together for *_, together in entry.token_ranges]
        return log_sum([*(logprob[node] for node in entry.pending), *token_ranges])

    def wanted(self, entry: StringEntry) -> list[int]:
        """Returns the readings to evaluate before the search proceeds, largest first."""
        logprob = self.frontier.trie.logprob
        if not entry.member:
            if not entry.pending:
                return []
            least = self.bound(entry) + math.log(WORTH_EVALUATING)
            worth = [node for node in entry.pending if logprob[node] >= least]
            return worth or ([] if entry.token_ranges else entry.pending[:1])
        waiting = self.open_tokenizations(entry)
        if not waiting or self.execution.tolerance == 0.0:
            return waiting
        spare = self.total(entry) + math.log(self.execution.tolerance)
        if log_sum(logprob[node] for node in waiting) <= spare:
            return []
        least = spare - math.log(len(waiting))
        return [node for node in waiting if logprob[node] > least]

    def total(self, entry: StringEntry) -> float:
        """Returns the log of the sum over a member's readings found so far."""
        logprob, ends = self.frontier.trie.logprob, self.tokenizations.ends
        if not self.execution.complete:
            return log_sum(logprob[node] for node in entry.exact)
        return log_sum(ends[node] for node in entry.exact if node in ends)

    def open_tokenizations(self, entry: StringEntry) -> list[int]:
        """Returns the readings whose evaluation can still add to a member."""
        size, length = len(entry.data), self.tokenizations.length
        return [node for node in entry.pending if length[node] < size or self.execution.complete]

    def found(self, entry: StringEntry) -> RawHit:
        """Returns the result for a member."""
        trie = self.frontier.trie
        ways = {node: trie.logprob[node] for node in entry.exact}
        if self.execution.complete:
            ends = {node: self.tokenizations.ends.get(node, -math.inf) for node in ways}
            ways = {node: logprob for node, logprob in ends.items() if logprob > -math.inf}
        best = min(ways, key=lambda node: (-ways[node], trie.path(node)))
        given = self.execution.contexts[entry.context_index].data
        steps = trie.steps(best)
        if self.execution.complete:
            steps.append(self.tokenizations.ends[best] - trie.logprob[best])
        found = (entry.data, tuple(trie.path(best)), self.total(entry), len(ways), given)
        return RawHit(*found, context_index=entry.context_index, token_logprobs=tuple(steps))
