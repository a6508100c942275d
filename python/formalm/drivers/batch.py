"""The texts of one call: checked, laid out, and advanced together."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Protocol

from formalm.drivers.arguments import check_tokenization, compiled, positive
from formalm.drivers.draft import Draft, Plan
from formalm.drivers.finish import Finish
from formalm.drivers.prompts import prefix_token_ids
from formalm.drivers.result import Reason
from formalm.drivers.sampling import Decoding, random_numbers
from formalm.drivers.stopping import stop_language
from formalm.errors import ArgumentError
from formalm.models import Position, Session

__all__ = ["Sample", "Writer", "advance", "prepare"]


class Writer(Protocol):
    """Whatever grows texts of one plan: a sample, or a beam search."""

    plan: Plan
    rows: int
    """Most drafts that it has at a time."""

    @property
    def live(self) -> list[Draft]:
        """The drafts that go on; when there are none left, the writer is done."""
        ...

    @property
    def drafts(self) -> list[Draft]:
        """What it has to return, once it is done."""
        ...

    def step(self) -> None:
        """Give every live draft its next token."""
        ...


class Sample:
    """A text whose tokens are drawn."""

    rows = 1

    def __init__(self, plan: Plan, index: int, decoding: Decoding, seed: int) -> None:
        self.plan = plan
        self.draft = plan.draft(index)
        self._decoding = decoding
        self._random = random_numbers(seed, index)

    @property
    def live(self) -> list[Draft]:
        """The text, until it ends."""
        return [] if self.draft.reason is not None else [self.draft]

    @property
    def drafts(self) -> list[Draft]:
        """The text."""
        return [self.draft]

    def step(self) -> None:
        """Draw the next token."""
        outlook = self.draft.look()
        if outlook is not None:
            self.draft.take(self._decoding.choose(outlook.logprobs, self._random), outlook)
        if self.draft.reason is not None:
            self.draft.position = None


def prepare(
    session: Session,
    prompts: Sequence[object],
    language: object,
    *,
    tokenization: str,
    max_tokens: int | None,
    stop: object,
    seeds: Sequence[int | None],
    finish: bool,
    bos: object,
) -> list[Plan]:
    """Check everything before the model is asked anything; one plan for each prompt and seed."""
    positive("max_tokens", max_tokens, least=0)
    if not isinstance(finish, bool):
        raise ArgumentError(f"finish is True or False, not {finish!r}")
    check_tokenization(tokenization)
    if finish and language is None:
        raise ArgumentError("finish=True needs a language to finish in")
    if finish and stop is not None:
        raise ArgumentError(
            "finish=True and stop contradict each other: a stop cuts the text anywhere"
        )
    vocabulary = session.vocabulary
    constraint = None if language is None else compiled(language, vocabulary, tokenization)
    stops = stop_language(stop)
    steering = Finish(constraint) if finish and constraint is not None else None
    plans = []
    for place, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True)):
        name = "prompt" if len(prompts) == 1 else f"prompt[{place}]"
        prefix = prefix_token_ids(session, prompt, bos, name)
        budget, reason = _budget(session, len(prefix), max_tokens, name)
        plans.append(Plan(vocabulary, constraint, stops, steering, prefix, budget, reason, seed))
    if steering is not None and constraint is not None:
        # The least budget is the one that may be too small.
        steering.check(constraint.matcher(), min(plan.budget for plan in plans))
    return plans


def _budget(session: Session, used: int, max_tokens: int | None, name: str) -> tuple[int, Reason]:
    """Most tokens to draw, and what to say when they are used up."""
    context = session.model.context_length
    if context is None:
        if max_tokens is None:
            raise ArgumentError(
                "nothing bounds the text: the model has no context length", hint="pass max_tokens"
            )
        return max_tokens, "length"
    # A prefix of exactly the context length can still be evaluated: it yields one token more.
    room = context - used + 1
    if room < 1:
        raise ArgumentError(f"{name} has {used} tokens, the model's context is {context}")
    return (room, "context") if max_tokens is None or room < max_tokens else (max_tokens, "length")


def advance(session: Session, writers: Sequence[Writer], batch_size: int) -> Iterator[None]:
    """Step all writers until each is done, in calls of at most ``batch_size`` rows.

    Writers stand in order of their prompts. As many run at a time as have room together, and the
    next one begins when one is done, so what the model keeps for its prefixes stays bounded.
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
    """Take the writers there is room for, and evaluate their prompts where that is not done."""
    begun: list[Writer] = []
    # A beam search that is wider than a batch runs alone, in several calls a step.
    while waiting and (used == 0 or used + waiting[0].rows <= batch_size):
        begun.append(waiting.popleft())
        used += begun[-1].rows
    plans = dict.fromkeys(writer.plan for writer in begun if writer.plan not in starts)
    positions = session.start_many([plan.prompt for plan in plans])
    starts.update(zip(plans, positions, strict=True))
    for writer in begun:
        for draft in writer.live:
            draft.position = starts[writer.plan]
    for plan in list(starts):
        # Only the next writer may have a prompt that was evaluated already.
        if not waiting or waiting[0].plan is not plan:
            del starts[plan]
    return begun


def _extend(session: Session, drafts: list[Draft]) -> None:
    """Let the model read the newest token of each draft, in one call."""
    positions = session.extend(
        [draft.position for draft in drafts if draft.position is not None],
        [draft.token_ids[-1] for draft in drafts],
    )
    for draft, position in zip(drafts, positions, strict=True):
        draft.position = position
