"""score: how probable given texts are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from formalm.constraint import Constraint
from formalm.drivers.arguments import positive
from formalm.drivers.asking import asked_query, needs_an_end, refuse_listing_limits
from formalm.drivers.bounds import Bounds
from formalm.drivers.canonical import canonical_tokens
from formalm.drivers.chains import chained
from formalm.drivers.intervals import Interval
from formalm.drivers.mass import checked_eps
from formalm.drivers.prompts import Prompt, prefix_token_ids
from formalm.drivers.record import Origin, Record
from formalm.drivers.roots import roots_of
from formalm.drivers.search import search
from formalm.drivers.task import Task, Truncated
from formalm.errors import ArgumentError
from formalm.languages import Literal
from formalm.models import LanguageModel, Session
from formalm.query.decoding import Decoding
from formalm.query.limits import Limits
from formalm.query.query import Query

__all__ = ["Score", "score"]


@dataclass(frozen=True, eq=False)
class Score:
    """How probable a text is.

    Attributes
    ----------
    text
        The text.
    token_ids
        The tokenizer's own encoding of it.
    logprobs
        Of each of these tokens, and of the end with ``event="complete"``; in nats.
    marginal
        The log of the sum over all tokenizations, between two bounds.
    tokenizations
        How many of them were added up.
    possible
        Whether some tokenization has a probability above zero under the decoding rule; None if a
        limit left it open.
    witness
        The most probable such tokenization, or None.
    truncated_by
        The limit that left the bounds apart, or None.
    rank
        Its number among the texts, from 1.
    origin
        What :meth:`record` is made from.
    """

    text: str
    token_ids: tuple[int, ...] = field(repr=False)
    logprobs: npt.NDArray[np.float64] = field(repr=False)
    marginal: Interval
    tokenizations: int
    possible: bool | None
    witness: tuple[int, ...] | None = field(repr=False)
    truncated_by: str | None
    rank: int = field(repr=False)
    origin: Origin = field(repr=False)

    def record(self) -> Record:
        """Everything that is known of it, in the tokenizer's own encoding."""
        data = self.text.encode()
        return self.origin.record(self.rank, data, self.token_ids, self.logprob)

    @property
    def logprob(self) -> float:
        """Of the tokenizer's own encoding: the sum of :attr:`logprobs`."""
        return math.fsum(self.logprobs)


def score(
    model: LanguageModel,
    texts: Sequence[str],
    *,
    prompt: Prompt = None,
    event: str = "prefix",
    decoding: Decoding | None = None,
    renormalise: bool = False,
    tokenization: str = "all",
    bos: str | int | None = "auto",
    limits: Limits | None = None,
    eps: float = 0.0,
    batch_size: int = 16,
) -> list[Score]:
    """The log-probabilities of texts: of the tokenizer's encoding, and of all tokenizations.

    Parameters
    ----------
    model, prompt, bos, batch_size
        As in :func:`~formalm.search`.
    texts
        The texts; each is encoded by itself.
    event
        ``"prefix"``: the output begins with these tokens, as in a search. ``"complete"``: it ends
        after them.
    decoding, renormalise
        As in :class:`~formalm.Query`.
    tokenization
        ``"all"``, or ``"canonical"``: only the tokens that the tokenizer makes of prompt and text
        together are scored and added up.
    limits
        For each text: where adding up its tokenizations stops. A text of n bytes can have 2ⁿ.
    eps
        How much probability of its tokenizations may stay undecided; 0 adds up all.

    Raises
    ------
    ArgumentError
        For an option out of range, or a text that is none.

    Examples
    --------
    >>> from formalm import TableModel, Vocabulary
    >>> vocabulary = Vocabulary.from_tokens([b"a", b"b", b"ab", None], end_token_ids=[3],
    ...     encode=lambda text: [2] if text == "ab" else [0])
    >>> model = TableModel(vocabulary, {}, default=[0.5, 0.2, 0.2, 0.1])
    >>> (found,) = score(model, ["ab"])
    >>> round(found.logprob, 4), round(found.marginal.low, 4), found.tokenizations
    (-1.6094, -1.204, 2)
    """
    positive("batch_size", batch_size, optional=False)
    eps = checked_eps(eps)
    chosen = Limits() if limits is None else limits
    handed: object = chosen
    if not isinstance(handed, Limits):
        what = "limits is Limits(forwards=…, seconds=…, memory_bytes=…)"
        raise ArgumentError(f"{what} for a score, not {limits!r:.60}")
    refuse_listing_limits(chosen, "a score")
    listed = _checked_texts(texts)
    if event not in ("prefix", "complete"):
        raise ArgumentError(f"event is 'prefix' or 'complete' for a text, not {event!r}")
    session = Session(model)
    if event == "complete":
        needs_an_end(session)
    fields: dict[str, object] = {"decoding": decoding or Decoding(), "renormalise": renormalise}
    fields |= {"event": event, "tokenization": tokenization}
    queries = [
        asked_query(Literal(text), **fields, bos=bos, unique="tokens", limits=chosen)
        for text in listed
    ]
    if not queries:
        return []
    front = prefix_token_ids(session, prompt, bos)
    ways = [_encoded(session, front, text, tokenization) for text in listed]
    complete = event == "complete"
    asked = _task(session, queries[0], prompt, batch_size)
    rows = chained(
        session,
        front,
        ways,
        asked.answer,
        ended=complete,
        certain=not asked.decoding.is_plain,
        batch_size=batch_size,
    )
    return [
        _scored(model, text, query, prompt, front, rank, way, row, eps, batch_size)
        for rank, (text, query, way, row) in enumerate(
            zip(listed, queries, ways, rows, strict=True), 1
        )
    ]


def _encoded(
    session: Session, front: tuple[int, ...], text: str, tokenization: str
) -> tuple[int, ...]:
    """The tokenizer's own tokens: of the text by itself, or of the text behind the prompt."""
    if tokenization == "canonical":
        return tuple(canonical_tokens(session.vocabulary, front, text.encode()))
    return tuple(session.vocabulary.encode(text)) if text else ()


def _scored(
    model: LanguageModel,
    text: str,
    query: Query,
    prompt: Prompt,
    front: tuple[int, ...],
    rank: int,
    way: tuple[int, ...],
    logprobs: list[float],
    eps: float,
    batch_size: int,
) -> Score:
    count = 0

    def counted(_: bytes) -> object:
        nonlocal count
        count += 1
        return None

    # The language is the text itself, so what is accepted has been spelled by whole tokens.
    session = Session(model)
    bounds = Bounds(_task(session, query, prompt, batch_size), str(query.event), counted)
    truncated = None
    try:
        for _ in bounds.run():
            if bounds.undecided <= eps:
                break
    except Truncated as reached:
        truncated = str(reached)
    if truncated is None and bounds.undecided > eps:
        truncated = "unseen" if bounds.hidden else "length"
    decided = bounds.low(None)
    slack = bounds.relative_error + 1e-15
    low, high = decided * (1 - slack), min(1.0, decided * (1 + slack) + bounds.undecided)
    possible, witness = _witness(model, query, prompt, batch_size)
    return Score(
        text,
        way,
        np.array(logprobs),
        Interval(_log(low), _log(high)),
        count,
        possible,
        witness,
        truncated,
        rank,
        Origin(
            "score",
            query,
            session.vocabulary,
            front,
            (),
            b"",
            0.0,
            tuple(logprobs),
            query.event == "complete",
            bounds.task.work(),
        ),
    )


def _witness(
    model: LanguageModel, query: Query, prompt: Prompt, batch_size: int
) -> tuple[bool | None, tuple[int, ...] | None]:
    limits = replace(query.limits, hits=1)
    found = search(model, query, prompt=prompt, limits=limits, batch_size=batch_size)
    hit = next(found, None)
    if hit is not None:
        return True, hit.token_ids
    return (False if found.status == "exhausted" else None), None


def _task(session: Session, query: Query, prompt: Prompt, batch_size: int) -> Task:
    constraint = Constraint(query.asked, session.vocabulary, tokenization=query.tokenization)
    return Task(
        session,
        constraint,
        roots_of(session, constraint, query, prompt, shares=True),
        query.decoding,
        query.renormalise,
        query.event == "complete",
        batch_size,
        query.max_tokens,
        query.limits,
        normalise=True,
    )


def _checked_texts(texts: object) -> list[str]:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise ArgumentError(f"texts is a list of texts, not {type(texts).__name__}")
    for text in texts:
        if not isinstance(text, str):
            raise ArgumentError(f"a text is str, not {type(text).__name__}")
    return list(texts)


def _log(probability: float) -> float:
    return math.log(probability) if probability > 0 else -math.inf
