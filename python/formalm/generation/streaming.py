"""``stream``: generate one text and yield it piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, TypedDict, overload

from formalm.automata.text_of_bytes import shown_bytes
from formalm.constraint import Constraint
from formalm.execution.arguments import Prompt, refuse_language
from formalm.generation.request import GenerationRequest, plan_sequences
from formalm.generation.result import Generation, T, read_partial
from formalm.generation.scheduler import SampledSequence, advance
from formalm.languages import Language
from formalm.models import LanguageModel, Session
from formalm.query.decoding_rules import Decoding, chosen_seed

if TYPE_CHECKING:
    from typing_extensions import TypeForm, Unpack

__all__ = ["Stream", "StreamOptions", "stream"]


class StreamOptions(TypedDict, total=False):
    """The keywords of :func:`stream`."""

    tokenization: Literal["all", "canonical"] | None
    heal: bool | int
    measure: bool
    max_tokens: int | None
    stop: str | Sequence[str] | Language | None
    temperature: float
    top_k: int | None
    top_p: float | None
    min_p: float | None
    seed: int | None
    finish: bool
    bos: Literal["auto"] | int | None
    max_reasoning_tokens: int | None
    max_free_tokens: int | None


@overload
def stream(
    model: LanguageModel,
    prompt: Prompt,
    language: Sequence[str] | None = ...,
    **options: Unpack[StreamOptions],
) -> Stream[str]: ...
@overload
def stream(
    model: LanguageModel,
    prompt: Prompt,
    language: Language | Constraint,
    **options: Unpack[StreamOptions],
) -> Stream[Any]: ...
@overload
def stream(
    model: LanguageModel,
    prompt: Prompt,
    language: TypeForm[T],
    **options: Unpack[StreamOptions],
) -> Stream[T]: ...
def stream(
    model: LanguageModel,
    prompt: Prompt,
    language: Language | Constraint | Sequence[str] | TypeForm[Any] | None = None,
    *,
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
) -> Stream[Any]:
    """Generates one text like :func:`~formalm.generate`, and yields it piece by piece.

    A batch of prompts is refused, because the pieces of several texts would be interleaved. There
    is no beam search, because it does not know any piece before it knows the whole text.

    Returns
    -------
    Stream
        An iterator of pieces of text. A piece never ends inside a UTF-8 character and never
        contains what may turn out to be a stop, so the pieces together are the text.

    Examples
    --------
    >>> from formalm import StringLiteral, TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens(["é".encode()[:1], "é".encode()[1:], b"t"])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> pieces = stream(model, None, StringLiteral("été"), max_tokens=9)
    >>> list(pieces)
    ['é', 't', 'é']
    >>> pieces.generation.reason
    'finished'
    """
    refuse_language(prompt, "stream")
    session = Session(model)
    session.defers_checks = True  # a step checks the rows that it reads
    decoding = Decoding(temperature, top_k, top_p, min_p)
    seed = chosen_seed(seed)
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
    (plan,) = plan_sequences(session, [prompt], request, [seed])
    return Stream(session, SampledSequence(plan, 0, decoding, seed))


class Stream(Generic[T]):
    """An iterator over the pieces of one text, with the generation so far."""

    def __init__(self, session: Session, sampled: SampledSequence) -> None:
        self._sampled = sampled
        language = sampled.sequence.plan.language
        self._parts = None if language is None else language.parts()
        self._yielded = 0
        self._pieces = self._produce(session)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    @property
    def generation(self) -> Generation[T]:
        """The generation so far; the final one once the iterator is exhausted."""
        return self._sampled.sequence.generation()

    @property
    def data(self) -> bytes:
        """The bytes of the pieces so far, and of an incomplete character after them."""
        return bytes(self._sampled.sequence.data[: self._yielded])

    @property
    def partial(self) -> object:
        """The complete parts of a JSON text in the pieces so far, as plain JSON.

        Strings and numbers appear once they have ended, objects and arrays with their complete
        properties and items; None if no part is complete. ``generation.value`` is the value of the
        whole text, with its type.

        Raises
        ------
        LanguageError
            If the language is not one of JSON texts.

        Examples
        --------
        >>> from formalm import TableModel, TypeScript, Vocabulary
        >>> vocabulary = Vocabulary.from_tokens([b'{"a":', b"true", b',"b":', b"}"])
        >>> model = TableModel(vocabulary, {}, default=[0.25] * 4)
        >>> pieces = stream(model, None, TypeScript("{a: true, b: true}"), max_tokens=9)
        >>> [(piece, pieces.partial) for piece in pieces][1:3]
        [('true', {'a': True}), (',"b":', {'a': True})]
        """
        return read_partial(self._parts)

    def _produce(self, session: Session) -> Iterator[str]:
        sequence = self._sampled.sequence
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        shown = 0
        for _ in advance(session, [self._sampled], 1):
            safe = max(shown, sequence.safe_length)
            piece = decoder.decode(shown_bytes(bytes(sequence.data[shown:safe])))
            shown = self._yielded = safe
            if piece:
                self._read(piece)
                yield piece
        rest = decoder.decode(shown_bytes(bytes(sequence.data[shown:])), True)
        self._yielded = len(sequence.data)
        if rest:
            self._read(rest)
            yield rest

    def _read(self, piece: str) -> None:
        if self._parts is not None:
            self._parts.feed(piece)
