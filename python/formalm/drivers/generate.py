"""generate: let a model write inside a language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypedDict, overload

from formalm.constraint import Constraint
from formalm.drivers.arguments import positive
from formalm.drivers.batch import advance, prepare
from formalm.drivers.result import Generation, Interrupted
from formalm.drivers.sampling import Decoding
from formalm.languages import Language
from formalm.models import LanguageModel, Session

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Options", "generate"]


class Options(TypedDict, total=False):
    """The keywords of :func:`generate` other than ``n``, and those of :func:`~formalm.stream`."""

    tokenization: str
    max_tokens: int | None
    stop: str | Sequence[str] | Language | None
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int | None
    finish: bool
    bos: str | int | None


@overload
def generate(
    model: LanguageModel,
    prompt: str | Sequence[int] | None,
    language: Language | Constraint | Sequence[str] | None = ...,
    *,
    n: None = ...,
    **options: Unpack[Options],
) -> Generation: ...
@overload
def generate(
    model: LanguageModel,
    prompt: str | Sequence[int] | None,
    language: Language | Constraint | Sequence[str] | None = ...,
    *,
    n: int,
    **options: Unpack[Options],
) -> list[Generation]: ...
def generate(
    model: LanguageModel,
    prompt: str | Sequence[int] | None,
    language: Language | Constraint | Sequence[str] | None = None,
    *,
    n: int | None = None,
    tokenization: str = "all",
    max_tokens: int | None = None,
    stop: str | Sequence[str] | Language | None = None,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    min_p: float | None = None,
    seed: int | None = None,
    finish: bool = False,
    bos: str | int | None = "auto",
) -> Generation | list[Generation]:
    r"""Let a model write a text, inside a language if one is given.

    At each step the tokens after which no member is left are masked, and one of the others is
    drawn. The samples of one call advance together: a batch of ``n`` is one call of the model a
    step, and each sample has random numbers of its own, so that it does not depend on the others.

    Parameters
    ----------
    model
        The model.
    prompt
        What stands before the text, outside the language: a text, token ids, or None.
    language
        A language, a list of strings, or a :class:`~formalm.Constraint`; None leaves the model
        free.
    n
        Number of samples. Without it one :class:`~formalm.Generation` is returned, with it a list,
        of one if ``n=1``: what comes back depends on what was written, not on a number's value.
    tokenization
        ``"all"``: any token sequence that spells a member.
    max_tokens
        Most tokens to draw, an end token included. None is what the model's context has room for.
    stop
        Strings, or a language. The text ends where the first of them *ends*; it is left out of
        ``text`` and stands in ``stop_text``.
    temperature, top_k, top_p, min_p
        How a token is drawn, see :class:`~formalm.drivers.sampling.Decoding`. ``temperature=0`` is
        greedy.
    seed
        Integer from 0; None draws one. Equal seeds give equal samples.
    finish
        Steer so that the text is in the language when ``max_tokens`` is used up: at each step only
        tokens after which a shortest completion still fits. Each step then looks behind every
        allowed token.
    bos
        ``"auto"``: the model's own beginning of sequence in front; a token id; or None for nothing.

    Returns
    -------
    Generation or list of Generation
        With the reason it ended; a text cut short has ``complete=False``.

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
    Interrupted
        On Ctrl-C: a ``KeyboardInterrupt`` that has the texts so far.

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
    session = Session(model)
    decoding = Decoding(temperature, top_k, top_p, min_p)
    plan, drafts = prepare(
        session,
        prompt,
        language,
        tokenization,
        1 if n is None else n,
        max_tokens,
        stop,
        decoding,
        seed,
        finish,
        bos,
    )
    try:
        for _ in advance(session, plan, drafts):
            pass
    except KeyboardInterrupt:
        raise Interrupted(tuple(draft.generation() for draft in drafts)) from None
    generations = [draft.generation() for draft in drafts]
    return generations[0] if n is None else generations
