"""stream: a text piece by piece."""

from __future__ import annotations

import codecs
from collections.abc import Iterator, Sequence

from formalm.constraint import Constraint
from formalm.drivers.batch import advance, prepare
from formalm.drivers.draft import Draft, Plan
from formalm.drivers.result import Generation
from formalm.drivers.sampling import Decoding
from formalm.languages import Language
from formalm.models import LanguageModel, Session

__all__ = ["Stream", "stream"]


def stream(
    model: LanguageModel,
    prompt: str | Sequence[int] | None,
    language: Language | Constraint | Sequence[str] | None = None,
    *,
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
) -> Stream:
    """:func:`~formalm.generate` for one text, piece by piece.

    Returns
    -------
    Stream
        An iterator of pieces of text. A piece never ends inside a UTF-8 character and never has
        what may turn out to be a stop, so the pieces together are the text.

    Examples
    --------
    >>> from formalm import Literal, TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens(["é".encode()[:1], "é".encode()[1:], b"t"])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
    >>> pieces = stream(model, None, Literal("été"), max_tokens=9)
    >>> list(pieces)
    ['é', 't', 'é']
    >>> pieces.generation.reason
    'finished'
    """
    session = Session(model)
    decoding = Decoding(temperature, top_k, top_p, min_p)
    plan, drafts = prepare(
        session, prompt, language, tokenization, 1, max_tokens, stop, decoding, seed, finish, bos
    )
    return Stream(session, plan, drafts[0])


class Stream:
    """The pieces of one text, and the whole of it so far."""

    def __init__(self, session: Session, plan: Plan, draft: Draft) -> None:
        self._draft = draft
        self._pieces = self._produce(session, plan)

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    @property
    def generation(self) -> Generation:
        """The text so far, or the whole of it once the iterator is exhausted."""
        return self._draft.generation()

    def _produce(self, session: Session, plan: Plan) -> Iterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        shown = 0
        for _ in advance(session, plan, [self._draft]):
            safe = max(shown, self._draft.safe_length)
            piece = decoder.decode(bytes(self._draft.data[shown:safe]))
            shown = safe
            if piece:
                yield piece
        rest = decoder.decode(bytes(self._draft.data[shown:]), True)
        if rest:
            yield rest
