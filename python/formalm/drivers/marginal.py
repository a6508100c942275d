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

from formalm.drivers.frontier import Frontier
from formalm.drivers.readings import Readings, String, log_sum
from formalm.drivers.task import Found, Task, Truncated

__all__ = ["Strings"]

# A pending reading with at least this share of the bound is evaluated before its string expands.
WORTH_EVALUATING = 0.01
Entry = tuple[tuple[float, int, bytes, int, int], String]


class Strings:
    """One search over strings: its queue and the steps on it.

    Attributes
    ----------
    frontier
        The trie of readings.
    readings
        The data of each reading.
    heap
        The queue.
    whole
        True if no step is in progress, so that the search can be saved.
    """

    def __init__(self, task: Task) -> None:
        task.needs_all("a listing of strings")
        self.task = task
        self.frontier = Frontier(task)
        self.readings = Readings(self.frontier)
        self.heap: list[Entry] = []
        self.whole = True
        self._bytes = 0
        trie = self.frontier.trie
        for number, node in enumerate(self.frontier.root_nodes):
            pending = [node] if self.goes_on(node) else []
            self.add(String(b"", trie.state[node], number, exact=[node], pending=pending))

    def restart(self, items: list[String], ends: dict[int, float]) -> None:
        """Continues with the entries of another search, whose trie is already in place."""
        self.heap, self._bytes = [], 0
        self.readings.restore(ends)
        for item in items:
            self.push(item)

    @property
    def memory_bytes(self) -> int:
        """Memory of the trie and the queue."""
        return self.frontier.trie.memory_bytes + self.readings.memory_bytes + self._bytes

    def run(self) -> Iterator[Found | None]:
        """Yields every member with its total over all tokenizations, most probable first.

        Yields None after each batch.
        """
        while self.heap:
            room = self.room()
            self.whole = False
            aside: list[String] = []
            requests: dict[int, None] = {}
            looked_at = 0
            while self.heap and len(requests) < self.task.batch_size > looked_at // 4:
                item = self.pop()
                if any(node in self.readings.ends for node in item.pending):
                    self.push(item)  # evaluated for other strings: its bound fell
                    continue
                looked_at += 1
                wanted = self.wanted(item)
                if not wanted and not item.member:
                    self.expand(item)
                elif not wanted and not aside:
                    self.whole = True
                    yield self.found(item)
                    self.whole = False
                else:
                    requests.update(dict.fromkeys(wanted))
                    aside.append(item)
            try:
                if requests:
                    self.readings.evaluate(list(requests)[:room])
            finally:
                for item in aside:
                    self.push(item)
                self.whole = True
            yield None

    def room(self) -> int:
        """Returns how many readings the next batch may have; raises as :meth:`Task.room`."""
        if self.task.progress is not None:
            best = -self.heap[0][0][0] if self.heap else None
            self.task.report(len(self.frontier.trie), len(self.heap), best)
        limit = self.task.limits.memory_bytes
        if limit is not None and self.memory_bytes > limit:
            raise Truncated("memory_bytes")
        return self.task.room()

    def add(self, item: String) -> None:
        """Queues a newly reached string: its extensions, and itself if it is a member."""
        states = self.frontier.states
        if states.accepting[item.state]:
            exact, pending = list(item.exact), list(item.pending)
            self.push(String(item.data, item.state, item.root, True, exact, pending))
        if item.fans or not states.is_finished(item.state):
            self.push(item)

    def push(self, item: String) -> None:
        """Queues by bound; ties go to the shorter, then the smaller string."""
        self.absorb(item)
        bound = self.bound(item)
        if bound > -math.inf:
            kind = int(not item.member) + len(item.done)
            key = (-bound, len(item.data), item.data, item.root, kind)
            heappush(self.heap, (key, item))
            self._bytes += item.memory_bytes

    def pop(self) -> String:
        """Removes and returns the entry with the largest bound."""
        item = heappop(self.heap)[1]
        self._bytes -= item.memory_bytes
        return item

    def absorb(self, item: String) -> None:
        """Replaces pending readings that have been evaluated by their continuations."""
        readings, size = self.readings, len(item.data)
        waiting, item.pending = item.pending, []
        while waiting:
            node = waiting.pop()
            if node not in readings.ends:
                item.pending.append(node)
                continue
            ranks, totals = readings.rows(node)
            rest = item.data[readings.length[node] :]
            low, high, inside = readings.spelling.narrow(ranks, rest)
            for row in inside:
                child = readings.child(node, int(ranks[row]), float(totals[row]))
                if readings.length[child] == size:
                    item.exact.append(child)
                if self.goes_on(child):
                    waiting.append(child)
            if not item.member and low < high:
                self.fan(item, node, low, high)
        logprob, path = self.frontier.trie.logprob, self.frontier.trie.path
        item.pending.sort(key=lambda node: (-logprob[node], path(node)))

    def fan(self, item: String, node: int, low: int, high: int) -> None:
        """Records the tokens with which an evaluated reading extends beyond a string."""
        ranks, totals = self.readings.rows(node)
        together = float(np.logaddexp.reduce(totals[low:high]))
        item.fans.append((node, int(ranks[low]), int(ranks[high - 1]) + 1, together))

    def expand(self, item: String) -> None:
        """Queues the strings one byte longer."""
        readings, spelling = self.readings, self.readings.spelling
        found: dict[int, String] = {}
        for fan in item.fans:
            node = fan[0]
            ranks, totals, low, high = readings.slice(fan)
            depth = len(item.data) - readings.length[node]
            for byte, start, middle, end in spelling.split(ranks, low, high, depth):
                if byte in item.done:
                    continue
                if byte not in found:
                    state = self.frontier.states.step_bytes(item.state, bytes([byte]))
                    found[byte] = String(item.data + bytes([byte]), state, item.root)
                longer = found[byte]
                for row in range(start, middle):
                    child = readings.child(node, int(ranks[row]), float(totals[row]))
                    longer.exact.append(child)
                    if self.goes_on(child):
                        longer.pending.append(child)
                if middle < end:
                    self.fan(longer, node, middle, end)
        for longer in found.values():
            longer.pending += item.pending
            self.add(longer)
        if item.pending:
            done = item.done.union(found)
            rest = String(item.data, item.state, item.root, pending=item.pending, done=done)
            self.push(rest)

    def goes_on(self, node: int) -> bool:
        """Returns True if the model can be asked for continuations."""
        return self.task.may_go_on(self.frontier.trie.depth[node], self.frontier.root(node))

    def bound(self, item: String) -> float:
        """Returns the log of an upper bound on a member, or on all members that extend a string."""
        logprob = self.frontier.trie.logprob
        if item.member:
            waiting = [logprob[node] for node in self.open_readings(item)]
            return log_sum([self.total(item), *waiting])
        fans = [together for *_, together in item.fans]
        return log_sum([*(logprob[node] for node in item.pending), *fans])

    def wanted(self, item: String) -> list[int]:
        """Returns the readings to evaluate before the search proceeds, largest first."""
        logprob = self.frontier.trie.logprob
        if not item.member:
            if not item.pending:
                return []
            least = self.bound(item) + math.log(WORTH_EVALUATING)
            worth = [node for node in item.pending if logprob[node] >= least]
            return worth or ([] if item.fans else item.pending[:1])
        waiting = self.open_readings(item)
        if not waiting or self.task.tolerance == 0.0:
            return waiting
        spare = self.total(item) + math.log(self.task.tolerance)
        if log_sum(logprob[node] for node in waiting) <= spare:
            return []
        least = spare - math.log(len(waiting))
        return [node for node in waiting if logprob[node] > least]

    def total(self, item: String) -> float:
        """Returns the log of the sum over a member's readings found so far."""
        logprob, ends = self.frontier.trie.logprob, self.readings.ends
        if not self.task.complete:
            return log_sum(logprob[node] for node in item.exact)
        return log_sum(ends[node] for node in item.exact if node in ends)

    def open_readings(self, item: String) -> list[int]:
        """Returns the readings whose evaluation can still add to a member."""
        size, length = len(item.data), self.readings.length
        return [node for node in item.pending if length[node] < size or self.task.complete]

    def found(self, item: String) -> Found:
        """Returns the result for a member."""
        trie = self.frontier.trie
        ways = {node: trie.logprob[node] for node in item.exact}
        if self.task.complete:
            ends = {node: self.readings.ends.get(node, -math.inf) for node in ways}
            ways = {node: logprob for node, logprob in ends.items() if logprob > -math.inf}
        best = min(ways, key=lambda node: (-ways[node], trie.path(node)))
        given = self.task.roots[item.root].data
        steps = trie.steps(best)
        if self.task.complete:
            steps.append(self.readings.ends[best] - trie.logprob[best])
        found = (item.data, tuple(trie.path(best)), self.total(item), len(ways), given)
        return Found(*found, root=item.root, token_logprobs=tuple(steps))
