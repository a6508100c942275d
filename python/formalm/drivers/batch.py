"""The batch scheduler of a generation: advances samples and beam searches together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from formalm.drivers.draft import UNASKED, Draft, Plan
from formalm.drivers.sampling import Decoding, random_numbers
from formalm.models import Position, Session

__all__ = ["Sample", "Writer", "advance"]


class Writer(Protocol):
    """A unit of scheduling that generates from one plan: a sample or a beam search."""

    plan: Plan
    rows: int
    """Maximum number of sequences that it has at a time."""

    @property
    def live(self) -> list[Draft]:
        """The unfinished sequences; the writer is done when there are none left."""
        ...

    @property
    def drafts(self) -> list[Draft]:
        """The sequences to return, once the writer is done."""
        ...

    def step(self) -> None:
        """Appends a token to every unfinished sequence."""
        ...


class Sample:
    """A sequence whose tokens are drawn at random."""

    rows = 1

    def __init__(self, plan: Plan, index: int, decoding: Decoding, seed: int) -> None:
        self.plan = plan
        self.draft = plan.draft(index)
        self._decoding = decoding
        self._random = random_numbers(seed, index)
        self._skip()

    @property
    def live(self) -> list[Draft]:
        """The sequence, until it ends."""
        return [] if self.draft.reason is not None else [self.draft]

    @property
    def drafts(self) -> list[Draft]:
        """The sequence."""
        return [self.draft]

    def step(self) -> None:
        """Draws the next token."""
        outlook = self.draft.look()
        if outlook is not None:
            outlook.check(1 if self._decoding.temperature == 0 else self._decoding.top_k)
            self.draft.take(self._decoding.choose(outlook.logprobs, self._random), outlook)
            self._skip()
        if self.draft.reason is not None:
            self.draft.position = None

    def _skip(self) -> None:
        """Appends forced tokens, the only ones allowed, without asking the model."""
        while (only := self.draft.only()) is not None:
            self.draft.take(only, UNASKED)
            # Later draws must not depend on whether the model was asked.
            self._decoding.pass_over(self._random)


def advance(session: Session, writers: Sequence[Writer], batch_size: int) -> Iterator[None]:
    """Steps all writers until each is done, in model calls of at most ``batch_size`` rows.

    Writers are ordered by prompt. As many run at a time as fit into a batch, and the next starts
    when one is done. The memory of the model's states therefore stays bounded.
    """
    waiting = deque(writer for writer in writers if writer.live)
    running: list[Writer] = []
    starts: dict[Plan, Position] = {}
    while waiting or running:
        used = sum(writer.rows for writer in running)
        running += _begin(session, waiting, used, batch_size, starts)
        for writer in running:
            writer.step()
        running = [writer for writer in running if writer.live]
        yield
        drafts = [draft for writer in running for draft in writer.live]
        for first in range(0, len(drafts), batch_size):
            _extend(session, drafts[first : first + batch_size])


def _begin(
    session: Session,
    waiting: deque[Writer],
    used: int,
    batch_size: int,
    starts: dict[Plan, Position],
) -> list[Writer]:
    """Starts the writers that fit into the batch, and evaluates their prompts if necessary."""
    begun: list[Writer] = []
    # A beam search wider than a batch runs alone, in several calls per step.
    while waiting and (used == 0 or used + waiting[0].rows <= batch_size):
        begun.append(waiting.popleft())
        used += begun[-1].rows
    # If any sequence of a plan starts with forced tokens, all of them start with the same ones.
    prefixes = {
        writer.plan: (*writer.plan.prompt, *writer.live[0].unread())
        for writer in begun
        if writer.plan not in starts
    }
    positions = session.start_many(list(prefixes.values()))
    starts.update(zip(prefixes, positions, strict=True))
    for writer in begun:
        for draft in writer.live:
            draft.position = starts[writer.plan]
    for plan in list(starts):
        # Only the next writer can have a prompt that was already evaluated.
        if not waiting or waiting[0].plan is not plan:
            del starts[plan]
    return begun


def _extend(session: Session, drafts: list[Draft]) -> None:
    """Lets the model read the newest tokens of every sequence, in one call."""
    positions = session.extend_many(
        [draft.position for draft in drafts if draft.position is not None],
        [draft.unread() for draft in drafts],
    )
    for draft, position in zip(drafts, positions, strict=True):
        draft.position = position
