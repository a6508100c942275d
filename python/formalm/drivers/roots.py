"""Query contexts: one starting point for each prefix in ``given``, with its cost or share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formalm._core import Matcher
from formalm.constraint import Constraint
from formalm.drivers.canonical import canonical_start, canonical_tokens, led_in
from formalm.drivers.chains import chained
from formalm.drivers.prompts import prefix_token_ids
from formalm.errors import ArgumentError, LimitError, ModelError, TokenError
from formalm.models import Position, Session
from formalm.query.prefixes import PREFIX_LIMIT, members
from formalm.query.query import Query
from formalm.vocabulary import Vocabulary

Floats = npt.NDArray[np.float64]

__all__ = ["Root", "encodings", "given_tokens", "roots_of"]


@dataclass(frozen=True, eq=False)
class Root:
    """The context of one prefix in ``given``.

    Attributes
    ----------
    token_ids
        All tokens before the output: beginning of sequence, prompt and ``given``.
    data
        The bytes of ``given`` whose tokens remain.
    logprob
        The contribution of the prefix: its cost in a search, its share in a mass.
    matcher
        The constraint after ``data``.
    given_length
        Number of tokens of ``given``.
    regenerated
        The rest of ``given``, whose tokens were removed: the output begins with it.
    skip
        Number of bytes at the start of the output that are not part of the text: the space that a
        tokenizer puts there.
    """

    token_ids: tuple[int, ...]
    data: bytes
    logprob: float
    matcher: Matcher
    given_length: int = 0
    regenerated: bytes = b""
    skip: int = 0

    @property
    def given(self) -> bytes:
        """The bytes of ``given``."""
        return self.data + self.regenerated

    @property
    def prompt_token_ids(self) -> tuple[int, ...]:
        """The tokens before ``given``."""
        return self.token_ids[: len(self.token_ids) - self.given_length]

    @property
    def given_token_ids(self) -> tuple[int, ...]:
        """The tokens of ``given``."""
        return self.token_ids[len(self.token_ids) - self.given_length :]


@dataclass(frozen=True)
class _Beginning:
    data: bytes
    token_ids: tuple[int, ...]
    regenerated: bytes = b""


def roots_of(
    session: Session,
    constraint: Constraint,
    query: Query,
    prompt: object,
    *,
    shares: bool,
    given: _Beginning | None = None,
) -> list[Root]:
    """Returns the contexts of a query.

    Parameters
    ----------
    session, constraint, query, prompt
        The query and what it runs on.
    shares
        If True, the contexts share one probability by ``prefix_weights``, as in masses and samples.
        If False, each has its ``prefix_cost``, as in searches.
    given
        The single prefix, if the caller chose its tokens.

    Raises
    ------
    ArgumentError
        If a context does not fit into the model.
    LimitError
        If there are too many prefixes.
    TokenError
        If tokens must be canonical and no member continues the prompt or a prefix.
    """
    front = prefix_token_ids(session, prompt, query.bos)
    every = query.prefix_weights == "encodings" if shares else query.prefix_cost == "zero"
    if given is not None:
        begun = [given]
    elif query.given is None:
        begun = [_Beginning(b"", ())]
    else:
        begun = _beginnings(query, session.vocabulary, front, every=every)
    if given is not None and query.tokenization == "canonical-given":
        _check_canonical(session.vocabulary, front, given)
    skip = 0
    if constraint.tokenization == "canonical":
        constraint, skip = led_in(constraint, front)
    if query.boundary == "heal":
        begun = [_healed(session.vocabulary, constraint, front, one) for one in begun]
    _check_context(session, front, begun)
    logprobs = (
        _shares(session, front, query, begun) if shares else _costs(session, front, query, begun)
    )
    roots = []
    for one, logprob in zip(begun, logprobs, strict=True):
        if logprob > -math.inf:
            matcher = _start(constraint, front, one)
            ids = (*front, *one.token_ids)
            more = (one.regenerated, 0 if one.token_ids else skip)
            roots.append(Root(ids, one.data, logprob, matcher, len(one.token_ids), *more))
    return roots


def _start(constraint: Constraint, front: tuple[int, ...], begun: _Beginning) -> Matcher:
    """Returns the constraint after a prefix."""
    if constraint.tokenization == "canonical":
        return canonical_start(constraint, front, begun.data, begun.token_ids)
    matcher = constraint.core.matcher()
    matcher.advance_bytes(begun.data)
    return matcher


def _healed(
    vocabulary: Vocabulary, constraint: Constraint, front: tuple[int, ...], begun: _Beginning
) -> _Beginning:
    """Returns a prefix without its last token, or as many more as a member needs to follow."""
    spelled = [vocabulary.token_bytes(token_id) or b"" for token_id in begun.token_ids]
    # The tokens spell a space that the tokenizer added; it is not part of the text.
    extra = sum(map(len, spelled)) - len(begun.data)
    for count in range(len(spelled) - 1, -1, -1):
        size = max(0, len(b"".join(spelled[:count])) - extra)
        shorter = _Beginning(begun.data[:size], begun.token_ids[:count], begun.data[size:])
        try:
            _start(constraint, front, shorter)
        except TokenError:
            if not count:
                raise
            continue
        return shorter
    raise TokenError(f"no tokens spell {begun.data!r}, so there is none to give back")


def _check_canonical(vocabulary: Vocabulary, front: tuple[int, ...], begun: _Beginning) -> None:
    """Refuses tokens of ``given`` that the tokenizer would not produce."""
    if tuple(canonical_tokens(vocabulary, front, begun.data)) != begun.token_ids:
        raise TokenError(
            f"the tokens of given are not those that the tokenizer makes of {begun.data!r} there",
            hint="give the text, or use tokenization='all'",
        )


def given_tokens(data: bytes, token_ids: Sequence[int]) -> _Beginning:
    """Returns a prefix whose tokens the caller chose."""
    return _Beginning(data, tuple(token_ids))


def encodings(data: bytes, vocabulary: Vocabulary, limit: int = PREFIX_LIMIT) -> list[list[int]]:
    """Returns all token sequences that spell some bytes, ordered by their tokens.

    Raises
    ------
    LimitError
        If there are more than ``limit``.
    """
    by_bytes: dict[bytes, list[int]] = {}
    for token_id, token in enumerate(vocabulary.tokens()):
        if token and token in data:
            by_bytes.setdefault(token, []).append(token_id)
    ways: list[list[list[int]]] = [[] for _ in range(len(data))] + [[[]]]
    for start in range(len(data) - 1, -1, -1):
        for end in range(start + 1, len(data) + 1):
            for token_id in by_bytes.get(data[start:end], ()):
                ways[start] += [[token_id, *rest] for rest in ways[end]]
        if len(ways[start]) > limit:
            raise LimitError("tokenizations of given", len(ways[start]), limit)
    return sorted(ways[0])


def _beginnings(
    query: Query, vocabulary: Vocabulary, front: tuple[int, ...], *, every: bool
) -> list[_Beginning]:
    assert query.given is not None
    begun = []
    for data in members(query.given):
        if every:
            ways = encodings(data, vocabulary)
        elif query.tokenization != "all":
            ways = [canonical_tokens(vocabulary, front, data)]
        else:
            try:
                text = data.decode()
            except UnicodeDecodeError:
                raise ArgumentError(
                    f"given has {data!r}, which is not UTF-8 and has no encoding"
                ) from None
            ways = [vocabulary.encode(text)] if text else [[]]
        begun += [_Beginning(data, tuple(way)) for way in ways]
        if len(begun) > PREFIX_LIMIT:
            raise LimitError("contexts in given", len(begun), PREFIX_LIMIT)
    return begun


def _check_context(session: Session, front: tuple[int, ...], begun: list[_Beginning]) -> None:
    length = len(front) + max(len(one.token_ids) for one in begun)
    context = session.model.context_length
    if context is not None and length > context:
        raise ArgumentError(
            f"prompt and given have {length} tokens, the model's context is {context}"
        )


def _costs(
    session: Session, front: tuple[int, ...], query: Query, begun: list[_Beginning]
) -> list[float]:
    if query.prefix_cost != "joint":
        return [0.0] * len(begun)
    return _logprobs(session, front, query, begun)


def _shares(
    session: Session, front: tuple[int, ...], query: Query, begun: list[_Beginning]
) -> list[float]:
    """Returns the logarithms of weights that sum to one."""
    weights = query.prefix_weights
    if weights == "model":
        logs = np.array(_logprobs(session, front, query, begun))
    elif isinstance(weights, tuple):
        table = dict(weights)
        missing = [one.data for one in begun if one.data.decode(errors="replace") not in table]
        if missing:
            raise ArgumentError(f"prefix_weights lacks {missing[0].decode(errors='replace')!r}")
        values = np.array([table[one.data.decode(errors="replace")] for one in begun])
        with np.errstate(divide="ignore"):
            logs = np.log(values)
    else:
        logs = np.zeros(len(begun))
    total = float(np.logaddexp.reduce(logs))
    if total == -math.inf:
        raise ModelError("the model gives no probability to anything in given")
    return [float(one) - total for one in logs]


def _logprobs(
    session: Session, front: tuple[int, ...], query: Query, begun: list[_Beginning]
) -> list[float]:
    """Returns the log-probability of each prefix's tokens."""

    def answer(position: Position) -> Floats:
        logprobs = np.minimum(np.asarray(position.logprobs, dtype=np.float64), 0.0)
        if query.decoded == "suffix":
            return logprobs
        return query.decoding.distribution(logprobs, renormalize=query.renormalize)

    ways = [one.token_ids for one in begun]
    certain = query.decoded != "suffix" and not query.decoding.is_plain
    return [math.fsum(row) for row in chained(session, front, ways, answer, certain=certain)]
