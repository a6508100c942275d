"""The batch scheduler of a generation: advances samples and beam searches together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from formalm.generation.batch_step import StepRow, draw_tokens
from formalm.generation.sequence import GeneratedSequence, PromptPlan
from formalm.models import Position, Session
from formalm.query.decoding_rules import Decoding, random_numbers

__all__ = ["SampledSequence", "SequenceGroup", "advance"]


class SequenceGroup(Protocol):
    """A unit of scheduling that generates from one plan: a sample or a beam search."""

    plan: PromptPlan
    rows: int
    """Maximum number of sequences that it has at a time."""

    @property
    def live(self) -> list[GeneratedSequence]:
        """The unfinished sequences; the writer is done when there are none left."""
        ...

    @property
    def sequences(self) -> list[GeneratedSequence]:
        """The sequences to return, once the writer is done."""
        ...

    def step(self) -> None:
        """Appends a token to every unfinished sequence."""
        ...


class SampledSequence:
    """A sequence whose tokens are drawn at random."""

    rows = 1

    def __init__(self, plan: PromptPlan, index: int, decoding: Decoding, seed: int) -> None:
        self.plan = plan
        self.sequence = plan.new_sequence(index)
        self._decoding = decoding
        self._random = random_numbers(seed, index)
        self._append_forced_tokens()

    @property
    def live(self) -> list[GeneratedSequence]:
        """The sequence, until it ends."""
        return [] if self.sequence.reason is not None else [self.sequence]

    @property
    def sequences(self) -> list[GeneratedSequence]:
        """The sequence."""
        return [self.sequence]

    def step(self) -> None:
        """Draws the next token."""
        step_samples([self])

    @property
    def decoding(self) -> Decoding:
        """The rules of its draws."""
        return self._decoding

    def uniform(self) -> float:
        """Returns the random number of the next draw."""
        return 0.0 if self._decoding.temperature == 0 else self._random.random()

    def draw_from_shown(self) -> None:
        """Draws the next token of a partial model."""
        next_tokens = self.sequence.next_tokens()
        if next_tokens is not None:
            next_tokens.check(1 if self._decoding.temperature == 0 else self._decoding.top_k)
            token_id = self._decoding.choose(next_tokens.logprobs, self._random)
            self.sequence.append_token(
                token_id,
                float(next_tokens.logprobs[token_id]),
                next_tokens.log_allowed_mass,
                next_tokens.log_byte_mass,
            )
        self.settle()

    def settle(self) -> None:
        """Appends forced tokens after a draw, and drops the position if the sequence has ended."""
        if self.sequence.reason is None:
            self._append_forced_tokens()
        if self.sequence.reason is not None:
            self.sequence.position = None

    def _append_forced_tokens(self) -> None:
        """Appends forced tokens, the only ones allowed, without asking the model."""
        while (forced := self.sequence.forced_token()) is not None:
            self.sequence.append_token(forced)
            # Later draws must not depend on whether the model was asked.
            self._decoding.pass_over(self._random)


def step_samples(samples: Sequence[SampledSequence]) -> None:
    """Draws the next token of each sample: all rows that the model shows whole in one call."""
    whole: list[SampledSequence] = []
    for one in samples:
        position = one.sequence.position
        if position is not None and position.unseen:
            one.draw_from_shown()
        else:
            whole.append(one)
    if whole:
        rows = [StepRow(one.sequence, one.uniform()) for one in whole]
        draw_tokens(rows, whole[0].decoding)
    for one in whole:
        one.settle()


def advance(session: Session, groups: Sequence[SequenceGroup], batch_size: int) -> Iterator[None]:
    """Steps all writers until each is done, in model calls of at most ``batch_size`` rows.

    Writers are ordered by prompt. As many run at a time as fit into a batch, and the next starts
    when one is done. The memory of the model's states therefore stays bounded.
    """
    waiting = deque(group for group in groups if group.live)
    running: list[SequenceGroup] = []
    starts: dict[PromptPlan, Position] = {}
    while waiting or running:
        used = sum(group.rows for group in running)
        running += _start_groups(session, waiting, used, batch_size, starts)
        step_samples([group for group in running if isinstance(group, SampledSequence)])
        for group in running:
            if not isinstance(group, SampledSequence):
                group.step()
        running = [group for group in running if group.live]
        yield
        sequences = [sequence for group in running for sequence in group.live]
        for first in range(0, len(sequences), batch_size):
            _extend(session, sequences[first : first + batch_size])


def _start_groups(
    session: Session,
    waiting: deque[SequenceGroup],
    used: int,
    batch_size: int,
    starts: dict[PromptPlan, Position],
) -> list[SequenceGroup]:
    """Starts the writers that fit into the batch, and evaluates their prompts if necessary."""
    begun: list[SequenceGroup] = []
    # A beam search wider than a batch runs alone, in several calls per step.
    while waiting and (used == 0 or used + waiting[0].rows <= batch_size):
        begun.append(waiting.popleft())
        used += begun[-1].rows
    # If any sequence of a plan starts with forced tokens, all of them start with the same ones.
    prefixes = {
        group.plan: (*group.plan.prompt, *group.live[0].unevaluated_token_ids())
        for group in begun
        if group.plan not in starts
    }
    positions = session.start_many(list(prefixes.values()))
    starts.update(zip(prefixes, positions, strict=True))
    for group in begun:
        for sequence in group.live:
            sequence.position = starts[group.plan]
    for plan in list(starts):
        # Only the next writer can have a prompt that was already evaluated.
        if not waiting or waiting[0].plan is not plan:
            del starts[plan]
    return begun


def _extend(session: Session, sequences: list[GeneratedSequence]) -> None:
    """Lets the model read the newest tokens of every sequence, in one call."""
    positions = session.extend_many(
        [sequence.position for sequence in sequences if sequence.position is not None],
        [sequence.unevaluated_token_ids() for sequence in sequences],
    )
    for sequence, position in zip(sequences, positions, strict=True):
        sequence.position = position
