"""``generate``: sample, greedy decode or beam search inside a language."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, overload

from formalm.constraint import Constraint
from formalm.errors import ArgumentError
from formalm.execution.arguments import Prompt, Prompts, batch_of, positive, refuse_language
from formalm.generation.beam_search import Beam
from formalm.generation.request import GenerationRequest, plan_sequences
from formalm.generation.result import Generation
from formalm.generation.scheduler import SampledSequence, SequenceGroup, advance
from formalm.generation.streaming import StreamOptions
from formalm.languages import Language
from formalm.models import LanguageModel, Session
from formalm.query.decoding_rules import Decoding, chosen_seed

if TYPE_CHECKING:
    from typing_extensions import TypeForm, Unpack

__all__ = ["Options", "generate"]

T = TypeVar("T")
#: One language for each prompt of a batch.
Languages: TypeAlias = Sequence[Language | Constraint | Sequence[str] | None]


class Options(StreamOptions, total=False):
    """The keywords of :func:`generate` other than ``n``."""

    beams: int | None
    batch_size: int


# The first matching overload applies: a str is also a sequence of str, and None is a type.
@overload
def generate(  # type: ignore[overload-overlap]
    model: LanguageModel,
    prompt: Prompt,
    language: Sequence[str] | None = ...,
    *,
    n: None = ...,
    **options: Unpack[Options],
) -> Generation[str]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    model: LanguageModel,
    prompt: Prompt,
    language: Language | Constraint,
    *,
    n: None = ...,
    **options: Unpack[Options],
) -> Generation[Any]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    model: LanguageModel,
    prompt: Prompt,
    language: TypeForm[T],
    *,
    n: None = ...,
    **options: Unpack[Options],
) -> Generation[T]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    model: LanguageModel,
    prompt: Prompt,
    language: Sequence[str] | None = ...,
    *,
    n: int,
    **options: Unpack[Options],
) -> list[Generation[str]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    model: LanguageModel,
    prompt: Prompt,
    language: Language | Constraint,
    *,
    n: int,
    **options: Unpack[Options],
) -> list[Generation[Any]]: ...
@overload
def generate(  # type: ignore[overload-overlap]
    model: LanguageModel,
    prompt: Prompt,
    language: TypeForm[T],
    *,
    n: int,
    **options: Unpack[Options],
) -> list[Generation[T]]: ...
@overload
def generate(
    model: LanguageModel,
    prompt: Prompts,
    language: Sequence[str] | None = ...,
    *,
    n: None = ...,
    **options: Unpack[Options],
) -> list[Generation[str]]: ...
@overload
def generate(
    model: LanguageModel,
    prompt: Prompts,
    language: Language | Constraint | Languages,
    *,
    n: None = ...,
    **options: Unpack[Options],
) -> list[Generation[Any]]: ...
@overload
def generate(
    model: LanguageModel,
    prompt: Prompts,
    language: TypeForm[T],
    *,
    n: None = ...,
    **options: Unpack[Options],
) -> list[Generation[T]]: ...
@overload
def generate(
    model: LanguageModel,
    prompt: Prompts,
    language: Sequence[str] | None = ...,
    *,
    n: int,
    **options: Unpack[Options],
) -> list[list[Generation[str]]]: ...
@overload
def generate(
    model: LanguageModel,
    prompt: Prompts,
    language: Language | Constraint | Languages,
    *,
    n: int,
    **options: Unpack[Options],
) -> list[list[Generation[Any]]]: ...
@overload
def generate(
    model: LanguageModel,
    prompt: Prompts,
    language: TypeForm[T],
    *,
    n: int,
    **options: Unpack[Options],
) -> list[list[Generation[T]]]: ...
def generate(
    model: LanguageModel,
    prompt: Prompt | Prompts,
    language: Language | Constraint | Sequence[str] | TypeForm[Any] | Languages | None = None,
    *,
    n: int | None = None,
    beams: int | None = None,
    tokenization: Literal["all", "canonical"] | None = None,
    heal: bool | int = False,
    measure: bool = False,
    max_tokens: int | None = None,
    stop: str | Sequence[str] | Language | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    finish: bool = False,
    bos: Literal["auto"] | int | None = "auto",
    max_reasoning_tokens: int | None = None,
    max_free_tokens: int | None = None,
    batch_size: int = 64,
) -> Generation[Any] | list[Generation[Any]] | list[list[Generation[Any]]]:
    r"""Generates text with a model, inside a language if one is given.

    Each step masks the tokens after which no member can be completed, and draws one of the others.
    All sequences of a call advance together, with one call of the model per step. Each sample has
    its own random numbers, so it does not depend on the others.

    Parameters
    ----------
    model
        The model.
    prompt
        Context before the generated text, outside the language: a string, token ids, a chat (a list
        of messages, dictionaries that the tokenizer's template renders), or None. A list of these
        is a batch: a list of strings, of lists of token ids, of chats, or mixed. A flat list of
        integers is one prompt, and a flat list of dictionaries one chat. An empty list is refused,
        because it could be either.
    language
        A language, a list of strings, a :class:`~formalm.Constraint`, or a type, which stands for
        its JSON, see :class:`~formalm.PythonType`; None leaves the model unconstrained. With a
        batch, also a list of these, one for each prompt, where a list of strings is an item of its
        own: ``[Regex("[0-9]+"), ["yes", "no"], None]``.
    n
        Number of results for each prompt. Without it, each prompt has one
        :class:`~formalm.generation.Generation`; with it, a list, even for ``n=1``. The shape of the
        result thus depends on how the call is written, not on a number's value.
    beams
        Runs a beam search instead of sampling: each step keeps the ``beams`` best prefixes. The
        score is the sum of the model's own log-probabilities of the tokens,
        :attr:`Generation.logprob`. Complete results come first, best first, then truncated ones;
        there may be fewer than ``n``. Must be at least ``n``. ``beams=1`` is greedy decoding.
    tokenization
        ``"all"``: any token sequence that spells a member. ``"canonical"``: only the tokens that
        the tokenizer itself produces for the prompt and the member together. A forced token, the
        only one allowed, is then taken without asking the model, except with ``beams``, which
        compare the model's own numbers. None means the tokenization of a given
        :class:`~formalm.Constraint`, otherwise ``"all"``.
    heal
        Whether tokens may be removed from the end of the prompt if no member follows them in
        canonical tokens, and how many: see :func:`~formalm.continuations.continuation`. Their bytes
        are generated again, before the text.
    measure
        With canonical tokens: evaluates the model at every step, and measures the probability that
        a mask of all tokens that *spell* members would allow: :attr:`Generation.byte_mass`.
    max_tokens
        Maximum number of generated tokens, including an end token. None means the room in the
        model's context. If the model has no context length, it means the tokens that the longest
        member of a finite language can need.
    stop
        Strings, or a language. Generation stops where the first match *ends*. The match is not part
        of ``text`` and is stored as ``stop_text``.
    temperature, top_k, top_p, min_p
        How a token is drawn, see :class:`~formalm.query.Decoding`. ``temperature=0`` is greedy.
        ``beams`` refuse a temperature other than 1 or 0 and all other sampling options, because
        nothing is drawn.
    seed
        An integer of at least 0; None draws one for each prompt. Equal seeds give equal samples. A
        prompt in a batch draws what it would draw alone with that seed. With a seed, equal prompts
        in a batch therefore have equal samples; use ``n`` for different ones.
    finish
        Steers so that the result is a member when ``max_tokens`` is used up: each step allows only
        tokens after which a shortest completion still fits. Each step then examines the completions
        after every allowed token.
    bos
        ``"auto"``: the model's own beginning of sequence, except for a chat, whose template writes
        it; a token id; or None for none.
    max_reasoning_tokens, max_free_tokens
        For a :class:`~formalm.Structure` or :class:`~formalm.ToolCalls`: the maximum number of
        tokens between the marks of reasoning, or of free text before a trigger or the end, each
        time. Then only tokens that lead out may follow: those of the mark, or for free text those
        of a trigger or an end token. They come on top: a stretch of free text, or of reasoning, may
        exceed its maximum by the tokens of one such mark. A character that has begun is completed
        first. Tokens of reasoning count if they begin and end inside it. With ``finish=True``, the
        budget of the whole text comes first: if no token that leads out leaves room for a member,
        others may follow. Refused with ``tokenization="canonical"``.
    batch_size
        Maximum number of prefixes in one call of the model, and of sequences in progress. It
        changes the work, not the results.

    Returns
    -------
    Generation, list of Generation, or list of lists of Generation
        One for a prompt, a list for a batch of prompts or with ``n``, a list of lists for both. For
        a type ``T``, a ``Generation[T]``, whose ``value`` is a ``T`` to mypy and pyright: classes,
        typed dictionaries, ``Literal[…]``, unions and other type forms. Each has the reason why it
        ended; a truncated one has ``complete=False``.

    Raises
    ------
    ArgumentError
        For an option out of range, or if nothing bounds the length.
    LanguageError
        If the language is empty or not a language.
    LimitError
        If ``finish`` is set and ``max_tokens`` is below the shortest member.
    ModelError
        If the model does not fit its vocabulary or returns invalid values.
    TokenError
        If no member follows the prompt in canonical tokens, or if ``finish`` finds no member to
        complete.
    VocabularyError
        If the vocabulary cannot encode a string or a chat, or does not know its canonical tokens.

    Notes
    -----
    Any exception that ends a call early, including a keyboard interrupt, has the attribute
    ``generations`` with the results so far, in the shape of the result. Samples that had not ended
    have ``reason="interrupted"``; beam searches that had not ended are None.

    Examples
    --------
    >>> from formalm import Regex, TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b".", b".2", b"1"])
    >>> model = TableModel(vocabulary, {}, default=[0.25] * 4)
    >>> one = generate(model, None, Regex(r"[0-9]+\.[0-9]+"), max_tokens=2, finish=True, seed=1)
    >>> one.text, one.reason, one.complete, one.allowed_mass.tolist()
    ('1.2', 'length', True, [0.25, 0.25])
    """
    positive("n", n)
    positive("beams", beams)
    positive("batch_size", batch_size, optional=False)
    refuse_language(prompt, "generate")
    session = Session(model)
    session.defers_checks = True  # a step checks the rows that it reads
    decoding = Decoding(temperature, top_k, top_p, min_p)
    batch = batch_of(prompt)
    prompts = [prompt] if batch is None else batch
    count = 1 if n is None else n
    if beams is not None:
        _check_beams(beams, count, decoding, seed)
    seeds = [None if beams is not None else chosen_seed(seed) for _ in prompts]
    request = GenerationRequest(
        language,
        tokenization,
        heal,
        measure,
        max_tokens,
        stop,
        finish,
        bos,
        max_reasoning_tokens,
        max_free_tokens,
    )
    plans = plan_sequences(session, prompts, request, seeds, is_batch=batch is not None)
    groups_by_prompt: list[list[SequenceGroup]] = [
        [SampledSequence(plan, index, decoding, chosen) for index in range(count)]
        if chosen is not None
        else [Beam(plan, beams or 1, count)]
        for plan, chosen in zip(plans, seeds, strict=True)
    ]
    try:
        for _ in advance(
            session,
            [group for prompt_groups in groups_by_prompt for group in prompt_groups],
            batch_size,
        ):
            pass
    except BaseException as error:
        # Finished results have used model time; the caller can still take them.
        with suppress(AttributeError):
            error.generations = _shaped(groups_by_prompt, batch, n)  # type: ignore[attr-defined]
        raise
    result: Generation[Any] | list[Generation[Any]] | list[list[Generation[Any]]]
    result = _shaped(groups_by_prompt, batch, n)
    return result


def _shaped(
    groups_by_prompt: list[list[SequenceGroup]], batch: list[object] | None, n: int | None
) -> Any:
    """Returns the results in the requested shape, with None for unfinished beam searches."""
    results: list[Any] = []
    for prompt_groups in groups_by_prompt:
        row: list[Generation | None] = []
        for group in prompt_groups:
            open_beams = isinstance(group, Beam) and group.live
            row += [None] if open_beams else [sequence.generation() for sequence in group.sequences]
        results.append(row if n is not None else row[0])
    return results[0] if batch is None else results


def _check_beams(beams: int, count: int, decoding: Decoding, seed: int | None) -> None:
    """Refuses options that do not apply to a beam search."""
    if count > beams:
        raise ArgumentError(f"n must be at most beams ({beams}), got {count}", hint="raise beams")
    given = {
        "temperature": None if decoding.temperature in (0, 1) else decoding.temperature,
        "top_k": decoding.top_k,
        "top_p": decoding.top_p,
        "min_p": decoding.min_p,
        "seed": seed,
    }
    for name, value in given.items():
        if value is not None:
            raise ArgumentError(
                f"{name} must be None with beams, because a beam search does not sample, got"
                f" {value!r}",
                hint=f"drop {name}, or drop beams to sample",
            )
