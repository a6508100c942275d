"""The generation request: checked options, and a plan for each prompt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from formalm.constraint import Constraint
from formalm.continuations import begun, check_heal
from formalm.drivers.arguments import check_tokenization, compiled, positive
from formalm.drivers.draft import Plan, Target
from formalm.drivers.finish import Finish
from formalm.drivers.prompts import prefix_token_ids
from formalm.drivers.result import Reason
from formalm.drivers.stopping import stop_language
from formalm.errors import ArgumentError, TokenError
from formalm.languages import Language, Regex
from formalm.models import Session
from formalm.query.plan import longest_member
from formalm.vocabulary import Vocabulary

__all__ = ["Terms", "prepare"]

STATE_LIMIT = 20_000
"""Most states of a language whose longest member is looked for, in place of ``max_tokens``. That of
10,000 words takes 50 ms."""
HEAL = 'heal=True gives the prompt\'s last tokens back; tokenization="all" needs none of it'


@dataclass(frozen=True)
class Terms:
    """The options of a call that do not depend on the prompt.

    Parameters are those of :func:`formalm.generate`.

    Raises
    ------
    ArgumentError
        If options contradict each other.
    """

    language: Any
    tokenization: str | None = None
    heal: bool | int = False
    measure: bool = False
    max_tokens: int | None = None
    stop: Any = None
    finish: bool = False
    bos: Any = "auto"

    def __post_init__(self) -> None:
        positive("max_tokens", self.max_tokens, least=0)
        for name, value in (("finish", self.finish), ("measure", self.measure)):
            if not isinstance(value, bool):
                raise ArgumentError(f"{name} is True or False, not {value!r}")
        check_tokenization(self.tokenization)
        if self.finish and self.language is None:
            raise ArgumentError("finish=True needs a language to finish in")
        if self.finish and self.stop is not None:
            raise ArgumentError(
                "finish=True and stop contradict each other: a stop cuts the text anywhere"
            )

    def constraint(self, vocabulary: Vocabulary) -> Constraint | None:
        """Returns the constraint before any prompt is considered."""
        language = self.language
        if language is None and self.tokenization == "canonical":
            language = Regex("(?s:.*)")
        made = None if language is None else compiled(language, vocabulary, self.tokenization)
        tokenization = "all" if made is None else made.tokenization
        check_heal(self.heal, tokenization)
        if self.measure and tokenization != "canonical":
            raise ArgumentError(
                "measure=True compares canonical tokens with any, and these may be any",
                hint='use tokenization="canonical"; without it allowed_mass says all there is',
            )
        if self.finish and tokenization == "canonical":
            raise ArgumentError(
                "finish=True does not go with canonical tokens: the fewest of them to a member are"
                " not known",
                hint='use tokenization="all", or raise max_tokens',
            )
        return made


def prepare(
    session: Session, prompts: Sequence[object], terms: Terms, seeds: Sequence[int | None]
) -> list[Plan]:
    """Checks everything before the first model call, and returns a plan for each prompt and
    seed.
    """
    vocabulary = session.vocabulary
    constraint = terms.constraint(vocabulary)
    stops = stop_language(terms.stop)
    steering = Finish(constraint) if terms.finish and constraint is not None else None
    language = None if terms.language is None or constraint is None else constraint.language
    plans = []
    for place, (prompt, seed) in enumerate(zip(prompts, seeds, strict=True)):
        name = "prompt" if len(prompts) == 1 else f"prompt[{place}]"
        prefix = prefix_token_ids(session, prompt, terms.bos, name)
        target = None
        if constraint is not None:
            # A beam search compares the model's own numbers, so it needs all of them.
            skips = not terms.measure and seed is not None
            try:
                prefix, target = _target(session, constraint, prefix, terms, skips)
            except TokenError as error:
                hint = error.hint if terms.heal else HEAL
                raise TokenError(f"{name}: {error.message}", hint=hint) from None
        read = vocabulary if constraint is None else constraint.spelled
        budget, reason = _budget(session, len(prefix), terms, name, language, target)
        plans.append(Plan(read, language, target, stops, steering, prefix, budget, reason, seed))
    if steering is not None and constraint is not None:
        # If any budget is too small, the smallest one is.
        steering.check(constraint.matcher(), min(plan.budget for plan in plans))
    return plans


def _target(
    session: Session, constraint: Constraint, prefix: tuple[int, ...], terms: Terms, skips: bool
) -> tuple[tuple[int, ...], Target]:
    """Returns the prompt tokens that remain, and the target that the sequences must meet."""
    if constraint.tokenization == "all":
        return prefix, Target(constraint.matcher())
    rest, matcher = begun(constraint, prefix, heal=terms.heal)
    byte_matcher = None
    if terms.measure:
        byte_matcher = rest.over(compiled(constraint.language, session.vocabulary)).matcher()
    # A model that cannot start from nothing needs a first token again.
    kept = rest.token_ids or prefix_token_ids(session, None, terms.bos)
    return kept, Target(matcher, rest.regenerated, byte_matcher, skips)


def _budget(
    session: Session,
    used: int,
    terms: Terms,
    name: str,
    language: Language | None,
    target: Target | None,
) -> tuple[int, Reason]:
    """Returns the maximum number of tokens, and the reason to report when they are used up."""
    context, max_tokens = session.model.context_length, terms.max_tokens
    if context is None:
        if max_tokens is not None:
            return max_tokens, "length"
        longest = None if language is None else longest_member(language, state_limit=STATE_LIMIT)
        if longest is None:
            lacks = ", and there is no language" if language is None else ""
            lacks = lacks or ", and the language has no longest member that could be found"
            raise ArgumentError(
                f"nothing bounds the text: the model has no context length{lacks}",
                hint="pass max_tokens",
            )
        # Each token has at least one byte, and the last one is an end token.
        owed = 0 if target is None else len(target.owed)
        return owed + longest + 1, "length"
    # A prefix of exactly the context length can still be evaluated: it yields one more token.
    room = context - used + 1
    if room < 1:
        raise ArgumentError(f"{name} has {used} tokens, the model's context is {context}")
    return (room, "context") if max_tokens is None or room < max_tokens else (max_tokens, "length")
