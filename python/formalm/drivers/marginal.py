"""Search over strings: every string once, with all its tokenizations added up.

A *reading* of a string is a token sequence that spells it. The search walks the tree of byte
strings. A node keeps, for its string ``u``, all readings of prefixes of ``u``, each with its exact
probability:

- *evaluated* ones as a fan: the tokens that go on from there in agreement with ``u`` and beyond it;
- *pending* ones, not yet evaluated, as they are.

Bound. A reading of a member ``s`` that extends ``u`` either uses a token of some fan at ``u``, or
begins with a pending reading. Readings in different fans, different tokens of one fan, and
different pending readings are incompatible beginnings of a token sequence, so the probabilities of
the readings of ``s`` add up to at most the sum over the fans' tokens and the pending readings.
That sum is the node's bound; it holds for the total of all members below the node, hence for each.

A candidate ``u``, a member itself, lies between the sum of its readings found so far and that sum
plus the pending readings that end before ``u``. It is yielded when it is on top of the queue and
the pending part is at most ``tolerance`` of it, so no other string can beat it by more than that.
Pending readings are evaluated largest first, and only where they matter: a string of n bytes has
up to 2ⁿ readings, of which a trained model gives all but a few a probability of nearly nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from heapq import heappop, heappush

import numpy as np

from formalm._core import Matcher
from formalm.drivers.readings import Candidate, Fan, Node, Reading
from formalm.drivers.roots import Root
from formalm.drivers.spelling import Spelling
from formalm.drivers.task import Found, Task

__all__ = ["by_strings"]

Entry = tuple[tuple[float, int, bytes, int, int], "Node | Candidate"]


class _Strings:
    """One search: the queue, and the steps on it."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.spelling = Spelling.of(task.session.vocabulary)
        self.heap: list[Entry] = []

    def run(self) -> Iterator[Found | None]:
        """The members, most probable first; None after each batch."""
        for number, root in enumerate(self.task.roots):
            first = Reading(None, (), 0, root.logprob, number)
            pending = [first] if self.goes_on(first) else []
            self.add(Node(b"", root.matcher, number, [first], pending))
        while self.heap:
            aside: list[Node | Candidate] = []
            requests: dict[Reading, None] = {}
            looked_at = 0
            while self.heap and len(requests) < self.task.batch_size > looked_at // 4:
                looked_at += 1
                item = heappop(self.heap)[1]
                wanted = item.wanted()
                if not wanted and isinstance(item, Node):
                    self.expand(item)
                elif not wanted and not aside:
                    assert isinstance(item, Candidate)
                    yield item.hit(self.task.roots[item.node.root].data)
                else:
                    requests.update(dict.fromkeys(wanted))
                    aside.append(item)
            if requests:
                self.evaluate(list(requests)[: self.task.room()])
            for item in aside:
                self.push(item)
            yield None

    def add(self, node: Node) -> None:
        """Queue a string that was just reached: what is below it, and itself if it is a member."""
        if node.matcher.is_accepting:
            own = Node(node.data, node.matcher, node.root, list(node.exact), list(node.pending))
            self.push(Candidate(own, self.task.complete, self.task.tolerance))
        if not node.matcher.is_finished:
            self.push(node)

    def push(self, item: Node | Candidate) -> None:
        """Queue by bound; ties go to the shorter, then the smaller string."""
        node = item if isinstance(item, Node) else item.node
        self.absorb(node, fans=isinstance(item, Node))
        bound = item.bound()
        if bound > -math.inf:
            kind = int(isinstance(item, Node)) + len(node.done)
            key = (-bound, len(node.data), node.data, node.root, kind)
            heappush(self.heap, (key, item))

    def absorb(self, node: Node, *, fans: bool) -> None:
        """Replace pending readings that have been evaluated by what they lead to."""
        waiting, node.pending = node.pending, []
        while waiting:
            reading = waiting.pop()
            if reading.fan is None:
                node.pending.append(reading)
                continue
            rest = node.data[reading.length :]
            low, high, inside = self.spelling.narrow(reading.fan.rows, rest)
            for row in inside:
                child = self.child(reading, reading.fan, row)
                if child.length == len(node.data):
                    node.exact.append(child)
                if self.goes_on(child):
                    waiting.append(child)
            if fans and low < high:
                node.fans.append((reading, low, high))
        node.pending.sort(key=lambda reading: (-reading.logprob, reading.token_ids))

    def expand(self, node: Node) -> None:
        """Queue the strings one byte longer."""
        found: dict[int, Node] = {}
        for reading, low, high in node.fans:
            fan, depth = reading.fan, len(node.data) - reading.length
            if fan is None:
                continue
            for byte, start, middle, end in self.spelling.split(fan.rows, low, high, depth):
                if byte in node.done:
                    continue
                if byte not in found:
                    matcher = node.matcher.fork()
                    matcher.advance_bytes(bytes([byte]))
                    found[byte] = Node(node.data + bytes([byte]), matcher, node.root)
                longer = found[byte]
                ending = [self.child(reading, fan, row) for row in range(start, middle)]
                longer.exact += ending
                longer.pending += [child for child in ending if self.goes_on(child)]
                if middle < end:
                    longer.fans.append((reading, middle, end))
        for longer in found.values():
            longer.pending += node.pending
            self.add(longer)
        if node.pending:
            done = node.done.union(found)
            rest = Node(node.data, node.matcher, node.root, pending=node.pending, done=done)
            self.push(rest)

    def evaluate(self, readings: list[Reading]) -> None:
        """Ask the model what follows some readings, in one call."""
        session = self.task.session
        first = [reading for reading in readings if reading.parent is None]
        readings = [*first, *(reading for reading in readings if reading.parent is not None)]
        positions = session.start_many([self.root(reading).token_ids for reading in first])
        before = [r.parent.position for r in readings if r.parent and r.parent.position]
        positions += session.extend(before, [r.token_ids[-1] for r in readings[len(first) :]])
        for reading, position in zip(readings, positions, strict=True):
            reading.position = position
            reading.matcher = self.matcher_of(reading)
            ids, logprobs, end = self.task.step(position, reading.matcher)
            if self.task.max_tokens is not None and len(reading.token_ids) >= self.task.max_tokens:
                ids, logprobs = ids[:0], logprobs[:0]
            ranks = self.spelling.ranks(ids)
            order = np.argsort(ranks)
            reading.fan = Fan(ranks[order], reading.logprob + logprobs[order], end)

    def matcher_of(self, reading: Reading) -> Matcher:
        if reading.parent is None or reading.parent.matcher is None:
            return self.root(reading).matcher
        matcher = reading.parent.matcher.fork()
        matcher.advance(reading.token_ids[-1])
        return matcher

    def child(self, reading: Reading, fan: Fan, row: int) -> Reading:
        """The reading that goes on with a token of a fan."""
        known = reading.children.get(row)
        if known is None:
            rank = int(fan.rows[row])
            known = Reading(
                reading,
                (*reading.token_ids, int(self.spelling.token_ids[rank])),
                reading.length + int(self.spelling.lengths[rank]),
                float(fan.logprobs[row]),
                reading.root,
            )
            reading.children[row] = known
        return known

    def goes_on(self, reading: Reading) -> bool:
        """Whether the model can be asked what follows."""
        return self.task.may_go_on(len(reading.token_ids), self.root(reading))

    def root(self, reading: Reading) -> Root:
        return self.task.roots[reading.root]


def by_strings(task: Task) -> Iterator[Found | None]:
    """Every member with its total over all tokenizations, most probable first."""
    task.needs_all("a listing of strings")
    return _Strings(task).run()
