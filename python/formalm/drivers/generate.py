"""generate: let a model write inside a language."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from formalm.constraint import Constraint
from formalm.drivers.arguments import positive
from formalm.drivers.batch import Sample, Writer, advance
from formalm.drivers.beam import Beam
from formalm.drivers.prompts import Prompt, Prompts, batch_of, refuse_language
from formalm.drivers.result import Generation
from formalm.drivers.sampling import Decoding, chosen_seed
from formalm.drivers.stream import StreamOptions
from formalm.drivers.terms import Terms, prepare
from formalm.errors import ArgumentError
from formalm.languages import Language
from formalm.models import LanguageModel, Session

if TYPE_CHECKING:
    from typing_extensions import TypeForm, Unpack

__all__ = ["Options", "generate"]

T = TypeVar("T")


class Options(StreamOptions, total=False):
    """The keywords of :func:`generate` other than ``n``."""

    beams: int | None
    batch_size: int


# The first overload that fits counts: a str is a sequence of str too, and None is a type.
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
    language: Language | Constraint,
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
    language: Language | Constraint,
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
    language: Language | Constraint | Sequence[str] | TypeForm[Any] | None = None,
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
    batch_size: int = 64,
) -> Generation[Any] | list[Generation[Any]] | list[list[Generation[Any]]]:
    r"""Let a model write a text, inside a language if one is given.

    At each step the tokens after which no member is left are masked, and one of the others is
    drawn. The texts of one call advance together, one call of the model a step, and each sample
    has random numbers of its own, so that it does not depend on the others.

    Parameters
    ----------
    model
        The model.
    prompt
        What stands before the text, outside the language: a text, token ids, a chat (a list of
        messages, dictionaries that the tokenizer's template makes into tokens), or None. A list of
        these is a batch: a list of strings, of lists of token ids, of chats, or mixed. A flat list
        of integers is one prompt, a flat list of dictionaries one chat; an empty list could be
        either and is refused.
    language
        A language, a list of strings, a :class:`~formalm.Constraint`, or a type, which stands for
        its JSON, see :class:`~formalm.PythonType`; None leaves the model free.
    n
        Number of texts a prompt. Without it one :class:`~formalm.generation.Generation` a prompt is
        returned, with it a list, of one if ``n=1``: what comes back depends on what was written,
        not on a number's value.
    beams
        Search instead of drawing: at each step the ``beams`` best beginnings go on. The score is
        the sum of the model's own log-probabilities of the tokens, :attr:`Generation.logprob`.
        Whole texts come first, best first, then those cut short; there are fewer than ``n`` if the
        search found fewer. At least ``n``. ``beams=1`` is greedy.
    tokenization
        ``"all"``: any token sequence that spells a member. ``"canonical"``: only what the tokenizer
        itself makes of the prompt and the member together; a token that is the only one allowed
        is then taken without asking the model (not with ``beams``, which compare the model's own
        numbers). None is what a given :class:`~formalm.Constraint` has, else ``"all"``.
    heal
        Whether tokens of the prompt may be given back where no member follows them in canonical
        tokens, and how many: see :func:`~formalm.continuations.continuation`. Their bytes are
        generated again, in front of the text.
    measure
        With canonical tokens, ask the model at every step, and measure what tokens that only
        *spell* members would have been allowed: :attr:`Generation.byte_mass`.
    max_tokens
        Most tokens of a text, an end token included. None is what the model's context has room
        for; where the model has no context length, what the longest member of a finite language can
        take.
    stop
        Strings, or a language. The text ends where the first of them *ends*; it is left out of
        ``text`` and stands in ``stop_text``.
    temperature, top_k, top_p, min_p
        How a token is drawn, see :class:`~formalm.query.Decoding`. ``temperature=0`` is
        greedy. With ``beams`` nothing is drawn: a temperature other than 1 or 0 and every other
        one of these is refused.
    seed
        Integer from 0; None draws one for each prompt. Equal seeds give equal samples. A prompt of
        a batch draws what it would draw by itself with that seed; so with a seed, equal prompts of
        a batch have equal samples, and ``n`` is the way to different ones.
    finish
        Steer so that the text is in the language when ``max_tokens`` is used up: at each step only
        tokens after which a shortest completion still fits. Each step then looks behind every
        allowed token.
    bos
        ``"auto"``: the model's own beginning of sequence in front, except of a chat, whose
        template writes it; a token id; or None for nothing.
    batch_size
        Most prefixes a call of the model, and most texts under way at a time. It changes the work,
        not the texts.

    Returns
    -------
    Generation, list of Generation, or list of lists of Generation
        One for a prompt, a list for a batch of prompts or with ``n``, a list of lists for both.
        Of a type ``T``, a ``Generation[T]``, whose ``value`` is a ``T`` to mypy and pyright:
        classes, dictionaries of types, ``Literal[…]``, unions and other forms of types. With the
        reason each ended; a text cut short has ``complete=False``.

    Raises
    ------
    ArgumentError
        For an option out of range, or no bound on the length at all.
    LanguageError
        If the language is empty or not a language.
    LimitError
        If ``finish`` is asked and ``max_tokens`` is below the shortest member.
    ModelError
        If the model does not fit its vocabulary or answers nonsense.
    TokenError
        If no member follows the prompt in canonical tokens, or ``finish`` has nothing to finish.
    VocabularyError
        If there is nothing to encode a text or a chat with, or canonical tokens are not known.

    Notes
    -----
    Any exception that ends a call halfway, a keyboard interrupt too, has what there is as its
    attribute ``generations``: the result in the form asked for. Samples that had not ended have
    ``reason="interrupted"``; beams that had not are None.

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
    decoding = Decoding(temperature, top_k, top_p, min_p)
    batch = batch_of(prompt)
    prompts = [prompt] if batch is None else batch
    count = 1 if n is None else n
    if beams is not None:
        _check_beams(beams, count, decoding, seed)
    seeds = [None if beams is not None else chosen_seed(seed) for _ in prompts]
    terms = Terms(language, tokenization, heal, measure, max_tokens, stop, finish, bos)
    plans = prepare(session, prompts, terms, seeds)
    groups: list[list[Writer]] = [
        [Sample(plan, index, decoding, chosen) for index in range(count)]
        if chosen is not None
        else [Beam(plan, beams or 1, count)]
        for plan, chosen in zip(plans, seeds, strict=True)
    ]
    try:
        for _ in advance(session, [writer for group in groups for writer in group], batch_size):
            pass
    except BaseException as error:
        # What is finished has cost its time; whoever catches the error can have it.
        with suppress(AttributeError):
            error.generations = _shaped(groups, batch, n)  # type: ignore[attr-defined]
        raise
    result: Generation[Any] | list[Generation[Any]] | list[list[Generation[Any]]]
    result = _shaped(groups, batch, n)
    return result


def _shaped(groups: list[list[Writer]], batch: list[object] | None, n: int | None) -> Any:
    """The result in the form that was asked for, with None for beams that are not finished."""
    results: list[Any] = []
    for group in groups:
        row: list[Generation | None] = []
        for writer in group:
            open_beams = isinstance(writer, Beam) and writer.live
            row += [None] if open_beams else [draft.generation() for draft in writer.drafts]
        results.append(row if n is not None else row[0])
    return results[0] if batch is None else results


def _check_beams(beams: int, count: int, decoding: Decoding, seed: int | None) -> None:
    """Refuse what a beam search has no use for."""
    if count > beams:
        raise ArgumentError(f"n={count} texts cannot come from beams={beams}", hint="raise beams")
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
                f"{name}={value!r} does not apply to beams: a beam search draws nothing",
                hint=f"leave out {name}, or leave out beams to sample",
            )
