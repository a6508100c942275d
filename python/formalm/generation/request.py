"""The generation request: checked options, and a plan for each prompt."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from formalm.argument_checks import checked_flag
from formalm.constraint import Constraint
from formalm.continuations import begun, check_heal
from formalm.errors import ArgumentError, FormalmError, TokenError
from formalm.execution.arguments import check_tokenization, compiled, positive, prefix_token_ids
from formalm.generation.finish_steering import FinishSteering
from formalm.generation.region_budget import RegionBudget, region_budgets
from formalm.generation.result import Reason
from formalm.generation.sequence import PromptPlan, SequenceTarget
from formalm.generation.stop_strings import stop_language
from formalm.languages import Language, Regex
from formalm.models import Session
from formalm.query.plan import longest_member
from formalm.vocabulary import Vocabulary

__all__ = ["GenerationRequest", "is_one_per_prompt", "plan_sequences"]

STATE_LIMIT = 20_000
"""Most states of a language whose longest member is looked for, in place of ``max_tokens``. That of
10,000 words takes 50 ms."""
HEAL = "heal=True gives back the last tokens of the prompt, so that a member can follow"


@dataclass(frozen=True)
class GenerationRequest:
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
    max_reasoning_tokens: int | None = None
    max_free_tokens: int | None = None

    def __post_init__(self) -> None:
        positive("max_tokens", self.max_tokens, least=0)
        for name, value in (("finish", self.finish), ("measure", self.measure)):
            checked_flag(name, value)
        check_tokenization(self.tokenization)
        if self.finish and self.language is None:
            raise ArgumentError("finish=True requires a language, for each prompt")
        if self.finish and self.stop is not None:
            raise ArgumentError(
                "finish=True cannot be combined with stop, which may end the text inside a member"
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
                "measure=True requires tokenization='canonical', got 'all'",
                hint='with tokenization="all", allowed_mass already reports it',
            )
        return made


def is_one_per_prompt(language: Any) -> bool:
    """Returns True for a list of languages, one for each prompt; a list of strings is one language.

    An item may be a list of strings, and None is a prompt without a language.
    """
    if not isinstance(language, list | tuple) or not language:
        return False
    return not any(isinstance(each, str | bytes) for each in language)


@dataclass(frozen=True, eq=False)
class _Compiled:
    """A request, and what all prompts with its language share."""

    request: GenerationRequest
    constraint: Constraint | None
    steering: FinishSteering | None
    regions: tuple[RegionBudget, ...]

    @classmethod
    def of(cls, request: GenerationRequest, vocabulary: Vocabulary) -> _Compiled:
        """Compiles the language of a request."""
        constraint = request.constraint(vocabulary)
        steering = FinishSteering(constraint) if request.finish and constraint is not None else None
        budgets = (request.max_reasoning_tokens, request.max_free_tokens)
        has_language = request.language is not None
        regions = region_budgets(constraint if has_language else None, *budgets)
        return cls(request, constraint, steering, regions)


def _compiled_by_prompt(
    request: GenerationRequest, vocabulary: Vocabulary, prompts: int, is_batch: bool
) -> list[_Compiled]:
    """Returns the compiled request of each prompt; equal languages are compiled once."""
    if is_batch and isinstance(request.language, list | tuple):
        are_strings = [isinstance(each, str | bytes) for each in request.language]
        if any(are_strings) and not all(are_strings):
            raise ArgumentError(
                f"language[{are_strings.index(True)}] must be a language, got a string among"
                " languages",
                hint='in a list with one language per prompt, write a string as ["yes"]',
            )
    if not (is_batch and is_one_per_prompt(request.language)):
        return [_Compiled.of(request, vocabulary)] * prompts
    languages = list(request.language)
    if len(languages) != prompts:
        raise ArgumentError(
            f"language must have one item per prompt ({prompts}), got {len(languages)}",
            hint="one language for all prompts is not put in a list",
        )
    made: dict[int, _Compiled] = {}
    for place, each in enumerate(languages):
        if id(each) not in made:
            with _naming(place):
                made[id(each)] = _Compiled.of(replace(request, language=each), vocabulary)
    return [made[id(each)] for each in languages]


@contextmanager
def _naming(place: int | None) -> Iterator[None]:
    """Names the language of a prompt in the message of an error about it."""
    try:
        yield
    except FormalmError as error:
        if place is not None:
            about = error.message.removeprefix("language ")
            mark = ": " if about == error.message else " "
            error.message = f"language[{place}]{mark}{about}"
        raise


def plan_sequences(
    session: Session,
    prompts: Sequence[object],
    request: GenerationRequest,
    seeds: Sequence[int | None],
    *,
    is_batch: bool = False,
) -> list[PromptPlan]:
    """Checks everything before the first model call, and returns a plan for each prompt and
    seed.

    In a batch, the language of the request may be a list with one for each prompt.
    """
    vocabulary = session.vocabulary
    stops = stop_language(request.stop)
    plans: list[PromptPlan] = []
    # The smallest budget of each language, and the first prompt with it.
    least: dict[_Compiled, tuple[int, int]] = {}
    made = _compiled_by_prompt(request, vocabulary, len(prompts), is_batch)
    has_list = is_batch and is_one_per_prompt(request.language)
    for place, (prompt, seed, one) in enumerate(zip(prompts, seeds, made, strict=True)):
        name = "prompt" if len(prompts) == 1 else f"prompt[{place}]"
        prefix = prefix_token_ids(session, prompt, request.bos, name)
        constraint = one.constraint
        has_language = one.request.language is not None
        language = constraint.language if constraint is not None and has_language else None
        target = None
        if constraint is not None:
            # A beam search compares the model's own numbers, so it needs all of them.
            skip_forced = not request.measure and seed is not None
            try:
                prefix, target = _target(session, constraint, prefix, request, skip_forced)
            except TokenError as error:
                hint = error.hint if request.heal else HEAL
                raise TokenError(f"{name}: {error.message}", hint=hint) from None
        budget, reason = _budget(session, len(prefix), request, name, language, target)
        plans.append(
            PromptPlan(
                vocabulary if constraint is None else constraint.spelled,
                language,
                target,
                stops,
                one.steering,
                prefix,
                budget,
                reason,
                seed,
                one.regions,
            )
        )
        is_canonical = constraint is not None and constraint.tokenization == "canonical"
        if is_canonical and target is not None and one.steering is not None:
            # The fewest canonical tokens depend on the prompt.
            with _naming(place if has_list else None):
                one.steering.check(target.matcher, budget)
        else:
            least[one] = min((budget, place), least.get(one, (budget, place)))
    for one, (budget, place) in least.items():
        # If any budget is too small, the smallest one is.
        if one.steering is not None and one.constraint is not None:
            with _naming(place if has_list else None):
                one.steering.check(one.constraint.matcher(), budget)
    return plans


def _target(
    session: Session,
    constraint: Constraint,
    prefix: tuple[int, ...],
    request: GenerationRequest,
    skip_forced: bool,
) -> tuple[tuple[int, ...], SequenceTarget]:
    """Returns the prompt tokens that remain, and the target that the sequences must meet."""
    if constraint.tokenization == "all":
        return prefix, SequenceTarget(constraint.matcher())
    rest, matcher = begun(constraint, prefix, heal=request.heal)
    byte_matcher = None
    if request.measure:
        byte_matcher = rest.over(compiled(constraint.language, session.vocabulary)).matcher()
    # A model that cannot start from nothing needs a first token again.
    kept = rest.token_ids or prefix_token_ids(session, None, request.bos)
    return kept, SequenceTarget(matcher, rest.regenerated, byte_matcher, skip_forced)


def _budget(
    session: Session,
    used: int,
    request: GenerationRequest,
    name: str,
    language: Language | None,
    target: SequenceTarget | None,
) -> tuple[int, Reason]:
    """Returns the maximum number of tokens, and the reason to report when they are used up."""
    context, max_tokens = session.model.context_length, request.max_tokens
    if context is None:
        if max_tokens is not None:
            return max_tokens, "length"
        longest = None if language is None else longest_member(language, state_limit=STATE_LIMIT)
        if longest is None:
            lacks = ", and there is no language" if language is None else ""
            lacks = lacks or ", and no longest member of the language was found"
            raise ArgumentError(
                f"max_tokens must be given: the model has no context length{lacks}",
                hint="pass max_tokens=..., or a language with a longest member",
            )
        # Each token has at least one byte, and the last one is an end token.
        required_prefix = 0 if target is None else len(target.required_prefix)
        return required_prefix + longest + 1, "length"
    # A prefix of exactly the context length can still be evaluated: it yields one more token.
    room = context - used + 1
    if room < 1:
        raise ArgumentError(
            f"{name} must have at most {context} tokens, the model's context length, got {used}"
        )
    return (room, "context") if max_tokens is None or room < max_tokens else (max_tokens, "length")
