"""The frontier of a search: what to evaluate next, and where it must stop.

:func:`by_tokens` is best-first search over token sequences. A step never adds probability, so the
best entry of the queue bounds all that is still to come (Dijkstra's rule), and a finished sequence
on top of it is the next hit. Nodes further down may be evaluated early to fill a batch: that
changes the work and never the order.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
import numpy.typing as npt

from formalm._core import Matcher
from formalm.models import Position, Session
from formalm.query.limits import Limits

__all__ = ["Found", "Limits", "Task", "Truncated", "by_tokens"]

Key = tuple[float, int, tuple[int, ...]]


class Truncated(Exception):  # noqa: N818
    """Ends a search from within; its text names the limit."""


@dataclass(frozen=True)
class Found:
    """A hit before it has its text.

    Attributes
    ----------
    data
        The bytes after ``given``.
    token_ids
        The tokens that spell them, or the most probable ones that do.
    logprob
        In nats.
    tokenizations
        How many token sequences were added up.
    """

    data: bytes
    token_ids: tuple[int, ...]
    logprob: float
    tokenizations: int = 1


@dataclass
class Task:
    """A search as it is carried out: the checked question, and what was spent on it."""

    session: Session
    prefix: tuple[int, ...]
    root: Matcher
    top_k: int | None
    complete: bool
    batch_size: int
    max_tokens: int | None
    tolerance: float
    limits: Limits
    started: float = field(default_factory=time.monotonic)
    cut_by_context: bool = False

    def room(self) -> int:
        """How many prefixes the next batch may have.

        Raises
        ------
        Truncated
            If a limit is reached.
        """
        seconds = self.limits.seconds
        if seconds is not None and time.monotonic() - self.started >= seconds:
            raise Truncated("seconds")
        if self.limits.forwards is None:
            return self.batch_size
        left = self.limits.forwards - self.session.forwards
        if left < 1:
            raise Truncated("forwards")
        return min(self.batch_size, left)

    def may_go_on(self, length: int) -> bool:
        """Whether a sequence of ``length`` tokens may be evaluated and continued."""
        if self.max_tokens is not None and length + (not self.complete) > self.max_tokens:
            return False
        context = self.session.model.context_length
        if context is not None and len(self.prefix) + length > context:
            self.cut_by_context = True
            return False
        return True

    def step(
        self, position: Position, matcher: Matcher
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64], float]:
        """The tokens that may follow, their logprobs, and the logprob of the end.

        ``top_k`` comes before the mask and nothing is renormalised: the search follows the model's
        own probabilities, on fewer ways.
        """
        vocabulary = self.session.vocabulary
        logprobs = np.minimum(np.asarray(position.logprobs, dtype=np.float64), 0.0)
        if self.top_k is not None and self.top_k < len(logprobs):
            followed = np.full(len(logprobs), -np.inf)
            # Ties go to the smaller id, as in greedy decoding.
            best = np.argsort(-logprobs, kind="stable")[: self.top_k]
            followed[best] = logprobs[best]
            logprobs = followed
        ends = list(vocabulary.end_token_ids)
        ending = logprobs[ends]
        end = float(np.logaddexp.reduce(ending)) if matcher.is_accepting and ends else -np.inf
        logprobs = logprobs.copy()
        logprobs[ends] = -np.inf
        allowed = matcher.allowed_token_ids().astype(np.int64)
        allowed = allowed[logprobs[allowed] > -np.inf]
        return allowed, logprobs[allowed], end


@dataclass(eq=False)
class _Node:
    """An evaluated token sequence and its children, best first."""

    token_ids: tuple[int, ...]
    position: Position
    matcher: Matcher
    children: npt.NDArray[np.int64]
    logprobs: npt.NDArray[np.float64]

    def key(self, child: int) -> Key:
        token_ids = (*self.token_ids, int(self.children[child]))
        return -float(self.logprobs[child]), len(token_ids), token_ids


@dataclass(eq=False)
class _Child:
    """A token sequence not yet evaluated: its place among its parent's children."""

    parent: _Node
    place: int


Entry = tuple[Key, int, "Found | _Child"]


def by_tokens(task: Task) -> Iterator[Found | None]:
    """Every token sequence that spells a member, most probable first.

    Ties go to the shorter, then the smaller sequence. None is yielded after each batch.
    """
    heap: list[Entry] = []
    before = len(task.root.text)
    if not task.complete and task.root.is_accepting:
        heappush(heap, ((0.0, 0, ()), 0, Found(b"", (), 0.0)))
    if task.may_go_on(0) and (task.complete or not task.root.is_finished):
        task.room()
        _expand(task, heap, (), 0.0, task.session.start(task.prefix), task.root)
        yield None
    while heap:
        if isinstance(heap[0][2], Found):
            yield heappop(heap)[2]  # type: ignore[misc]
            continue
        batch = _collect(task, heap, task.room(), before)
        positions = task.session.extend(
            [child.parent.position for _, child, _ in batch], [key[2][-1] for key, _, _ in batch]
        )
        for (key, _, matcher), position in zip(batch, positions, strict=True):
            _expand(task, heap, key[2], -key[0], position, matcher)
        if batch:
            yield None


def _collect(
    task: Task, heap: list[Entry], room: int, before: int
) -> list[tuple[Key, _Child, Matcher]]:
    """Pop the best sequences to evaluate; those that are hits as well come back as hits."""
    batch: list[tuple[Key, _Child, Matcher]] = []
    hits: list[Entry] = []
    while heap and len(batch) < room:
        key, kind, item = heappop(heap)
        if isinstance(item, Found):
            hits.append((key, kind, item))
            continue
        parent, place = item.parent, item.place
        if place + 1 < len(parent.children):
            heappush(heap, (parent.key(place + 1), 1, _Child(parent, place + 1)))
        matcher = parent.matcher.fork()
        matcher.advance(key[2][-1])
        if not task.complete and matcher.is_accepting:
            hits.append((key, 0, Found(matcher.text[before:], key[2], -key[0])))
        if (task.complete or not matcher.is_finished) and task.may_go_on(len(key[2])):
            batch.append((key, item, matcher))
    for entry in hits:
        heappush(heap, entry)
    return batch


def _expand(
    task: Task,
    heap: list[Entry],
    token_ids: tuple[int, ...],
    logprob: float,
    position: Position,
    matcher: Matcher,
) -> None:
    """Queue what may follow an evaluated sequence: its best child, and its end."""
    children, logprobs, end = task.step(position, matcher)
    if task.complete and end > -np.inf:
        data = matcher.text[len(task.root.text) :]
        key = (-(logprob + end), len(token_ids) + 1, (*token_ids, -1))
        heappush(heap, (key, 0, Found(data, token_ids, logprob + end)))
    if task.max_tokens is not None and len(token_ids) >= task.max_tokens:
        return
    if len(children):
        totals = logprob + logprobs
        order = np.lexsort((children, -totals))
        node = _Node(token_ids, position, matcher, children[order], totals[order])
        heappush(heap, (node.key(0), 1, _Child(node, 0)))
