"""The texts of one call: checked, laid out, and advanced together."""

from __future__ import annotations

from collections.abc import Iterator

from formalm.drivers.arguments import compiled, positive, prefix_token_ids
from formalm.drivers.draft import Draft, Plan
from formalm.drivers.finish import Finish
from formalm.drivers.result import Reason
from formalm.drivers.sampling import Decoding, streams
from formalm.drivers.stopping import Scan, stop_language
from formalm.errors import ArgumentError
from formalm.models import Session

__all__ = ["advance", "prepare"]


def prepare(
    session: Session,
    prompt: object,
    language: object,
    tokenization: str,
    count: int,
    max_tokens: int | None,
    stop: object,
    decoding: Decoding,
    seed: int | None,
    finish: bool,
    bos: object,
) -> tuple[Plan, list[Draft]]:
    """Check everything, evaluate the prompt once, and lay out one draft a sample."""
    positive("max_tokens", max_tokens, least=0)
    if not isinstance(finish, bool):
        raise ArgumentError(f"finish is True or False, not {finish!r}")
    if tokenization != "all":
        raise ArgumentError(f"tokenization is 'all', not {tokenization!r}")
    if finish and language is None:
        raise ArgumentError("finish=True needs a language to finish in")
    if finish and stop is not None:
        raise ArgumentError(
            "finish=True and stop contradict each other: a stop cuts the text anywhere"
        )
    vocabulary = session.vocabulary
    constraint = None if language is None else compiled(language, vocabulary, tokenization)
    stops = stop_language(stop)
    prefix = tuple(prefix_token_ids(session, prompt, bos))
    budget, reason = _budget(session, len(prefix), max_tokens)
    steering = Finish(constraint) if finish and constraint is not None else None
    if steering is not None and constraint is not None:
        steering.check(constraint.matcher(), budget)
    seed, generators = streams(seed, count)
    plan = Plan(vocabulary, constraint, decoding, stops, steering, prefix, budget, reason, seed)
    start = session.start(prefix)
    drafts = [
        Draft(
            plan,
            index,
            generator,
            start,
            None if constraint is None else constraint.matcher(),
            None if stops is None else Scan(stops),
        )
        for index, generator in enumerate(generators)
    ]
    return plan, drafts


def _budget(session: Session, used: int, max_tokens: int | None) -> tuple[int, Reason]:
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
        raise ArgumentError(f"a prompt of {used} tokens exceeds the model's context of {context}")
    return (room, "context") if max_tokens is None or room < max_tokens else (max_tokens, "length")


def advance(session: Session, plan: Plan, drafts: list[Draft]) -> Iterator[None]:
    """Step all drafts together until each has ended, one call of the model a step."""
    for draft in drafts:
        draft.settle()
    active = [draft for draft in drafts if draft.reason is None]
    while active:
        for draft in active:
            draft.step()
        active = [draft for draft in active if draft.reason is None]
        yield
        positions = session.extend(
            [draft.position for draft in active], [draft.token_ids[-1] for draft in active]
        )
        for draft, position in zip(active, positions, strict=True):
            draft.position = position
