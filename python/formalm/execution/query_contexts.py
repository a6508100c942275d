"""Query contexts: one starting point for each prefix in ``given``, with its cost or share.

With canonical tokens, a context starts at the position after the tokens of prompt and ``given``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from formalm import _core
from formalm._core import Matcher
from formalm.constraint import Constraint
from formalm.continuations import Rest
from formalm.errors import ArgumentError, LimitError, ModelError, TokenError
from formalm.execution.arguments import prefix_token_ids
from formalm.execution.sequence_scores import TokenLogprobs, score_sequences
from formalm.models import Position, Session
from formalm.query.prefixes import PREFIX_LIMIT, members
from formalm.query.query import Query
from formalm.vocabulary import Vocabulary

__all__ = [
    "QueryContext",
    "canonical_start",
    "canonical_tokens",
    "constraint_after_prompt",
    "encodings",
    "given_prefix",
    "query_contexts",
]


def canonical_tokens(vocabulary: Vocabulary, front: Sequence[int], data: bytes) -> list[int]:
    """Returns the tokenizer's tokens of a text that follows other tokens. Both are tokenized
    together, from the last special token on. If the tokenizer puts a space before a text, the
    tokens spell it too.

    Raises
    ------
    TokenError
        If the tokenizer produces other tokens for the preceding text, or none for this one.
    VocabularyError
        If the vocabulary does not know its canonical tokens.
    """
    before = list(vocabulary.last_text(front))
    encoder = vocabulary.encoder()
    space = vocabulary.space_after(front) if data else None
    put = space is not None and not (space.unless_there and data[:1] == b" ")
    if put and space is not None and not space.before_added:
        put = not data.startswith(tuple(text.encode() for text in encoder.added_texts()))
    spelled = b" " + data if put else data
    try:
        ids = encoder.encode((vocabulary.decode(before) + spelled).decode()) or []
    except UnicodeDecodeError:
        raise TokenError(
            f"{data!r} ends inside a UTF-8 character, so it has no canonical tokens",
            hint="use tokenization='all', or end given with a complete character",
        ) from None
    if ids[: len(before)] != before:
        raise TokenError(
            f"the prompt does not end at a token boundary when {data!r} follows it",
            hint="end the prompt at a token boundary, or use tokenization='all'",
        )
    if vocabulary.decode(ids[len(before) :]) != spelled:
        raise TokenError(f"the tokenizer cannot encode {data!r} losslessly")
    return ids[len(before) :]


def constraint_after_prompt(constraint: Constraint, front: Sequence[int]) -> tuple[Constraint, int]:
    """Returns a canonical constraint as texts start after some tokens, and the bytes added there.

    Some tokenizers put a space before a text; it is not part of the text.
    """
    space = constraint.vocabulary.space_after(front)
    return (constraint, 0) if space is None else (Rest(constraint, b" ", space), 1)


def canonical_start(
    constraint: Constraint, front: Sequence[int], data: bytes, token_ids: Sequence[int]
) -> _core.Matcher:
    """Returns the matcher of a canonical constraint after a prompt and the tokens of ``given``.

    Raises
    ------
    TokenError
        If no member continues there in canonical tokens.
    """
    matcher = constraint.matcher(after=front).core
    for token_id in token_ids:
        if not matcher.allows(token_id):
            raise TokenError(
                f"no canonical tokenization of a member has a token boundary after {data!r}",
                hint="end given at a token boundary, for example before the space that precedes"
                " a word",
            )
        matcher.advance(token_id)
    return matcher


Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class QueryContext:
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
class _GivenPrefix:
    data: bytes
    token_ids: tuple[int, ...]
    regenerated: bytes = b""


def query_contexts(
    session: Session,
    constraint: Constraint,
    query: Query,
    prompt: object,
    *,
    shares: bool,
    given: _GivenPrefix | None = None,
) -> list[QueryContext]:
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
        prefixes = [given]
    elif query.given is None:
        prefixes = [_GivenPrefix(b"", ())]
    else:
        prefixes = _given_prefixes(query, session.vocabulary, front, every=every)
    if given is not None and query.tokenization == "canonical-given":
        _check_canonical(session.vocabulary, front, given)
    skip = 0
    if constraint.tokenization == "canonical":
        constraint, skip = constraint_after_prompt(constraint, front)
    if query.boundary == "heal":
        prefixes = [_healed(session.vocabulary, constraint, front, one) for one in prefixes]
    _check_context(session, front, prefixes)
    logprobs = (
        _prefix_shares(session, front, query, prefixes)
        if shares
        else _prefix_costs(session, front, query, prefixes)
    )
    contexts = []
    for one, logprob in zip(prefixes, logprobs, strict=True):
        if logprob > -math.inf:
            matcher = _start(constraint, front, one)
            ids = (*front, *one.token_ids)
            more = (one.regenerated, 0 if one.token_ids else skip)
            contexts.append(
                QueryContext(ids, one.data, logprob, matcher, len(one.token_ids), *more)
            )
    return contexts


def _start(constraint: Constraint, front: tuple[int, ...], prefix: _GivenPrefix) -> Matcher:
    """Returns the constraint after a prefix."""
    if constraint.tokenization == "canonical":
        return canonical_start(constraint, front, prefix.data, prefix.token_ids)
    matcher = constraint.core.matcher()
    matcher.advance_bytes(prefix.data)
    return matcher


def _healed(
    vocabulary: Vocabulary, constraint: Constraint, front: tuple[int, ...], prefix: _GivenPrefix
) -> _GivenPrefix:
    """Returns a prefix without its last token, or as many more as a member needs to follow."""
    spelled = [vocabulary.token_bytes(token_id) or b"" for token_id in prefix.token_ids]
    # The tokens spell a space that the tokenizer added; it is not part of the text.
    extra = sum(map(len, spelled)) - len(prefix.data)
    for count in range(len(spelled) - 1, -1, -1):
        size = max(0, len(b"".join(spelled[:count])) - extra)
        shorter = _GivenPrefix(prefix.data[:size], prefix.token_ids[:count], prefix.data[size:])
        try:
            _start(constraint, front, shorter)
        except TokenError:
            if not count:
                raise
            continue
        return shorter
    raise TokenError(
        f"boundary='heal' requires tokens that spell {prefix.data!r}; the vocabulary has none"
    )


def _check_canonical(vocabulary: Vocabulary, front: tuple[int, ...], prefix: _GivenPrefix) -> None:
    """Refuses tokens of ``given`` that the tokenizer would not produce."""
    if tuple(canonical_tokens(vocabulary, front, prefix.data)) != prefix.token_ids:
        raise TokenError(
            f"given must have the tokens that the tokenizer assigns to {prefix.data!r} after the"
            " prompt",
            hint="pass given as a string, or use tokenization='all'",
        )


def given_prefix(data: bytes, token_ids: Sequence[int]) -> _GivenPrefix:
    """Returns a prefix whose tokens the caller chose."""
    return _GivenPrefix(data, tuple(token_ids))


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


def _given_prefixes(
    query: Query, vocabulary: Vocabulary, front: tuple[int, ...], *, every: bool
) -> list[_GivenPrefix]:
    assert query.given is not None
    prefixes = []
    for data in members(query.given):
        if every:
            ways = encodings(data, vocabulary)
        elif query.tokenization != "all":
            ways = [canonical_tokens(vocabulary, front, data)]
        else:
            try:
                text = data.decode()
            except UnicodeDecodeError:
                raise ArgumentError(f"given must be valid UTF-8, got {data!r}") from None
            ways = [vocabulary.encode(text)] if text else [[]]
        prefixes += [_GivenPrefix(data, tuple(way)) for way in ways]
        if len(prefixes) > PREFIX_LIMIT:
            raise LimitError("contexts in given", len(prefixes), PREFIX_LIMIT)
    return prefixes


def _check_context(session: Session, front: tuple[int, ...], prefixes: list[_GivenPrefix]) -> None:
    length = len(front) + max(len(one.token_ids) for one in prefixes)
    context = session.model.context_length
    if context is not None and length > context:
        raise ArgumentError(
            f"prompt and given must have at most {context} tokens, the model's context length,"
            f" got {length}"
        )


def _prefix_costs(
    session: Session, front: tuple[int, ...], query: Query, prefixes: list[_GivenPrefix]
) -> list[float]:
    if query.prefix_cost != "joint":
        return [0.0] * len(prefixes)
    return _logprobs(session, front, query, prefixes)


def _prefix_shares(
    session: Session, front: tuple[int, ...], query: Query, prefixes: list[_GivenPrefix]
) -> list[float]:
    """Returns the logarithms of weights that sum to one."""
    weights = query.prefix_weights
    if weights == "model":
        logs = np.array(_logprobs(session, front, query, prefixes))
    elif isinstance(weights, tuple):
        table = dict(weights)
        missing = [one.data for one in prefixes if one.data.decode(errors="replace") not in table]
        if missing:
            raise ArgumentError(
                f"prefix_weights must have a weight for {missing[0].decode(errors='replace')!r}"
            )
        values = np.array([table[one.data.decode(errors="replace")] for one in prefixes])
        with np.errstate(divide="ignore"):
            logs = np.log(values)
    else:
        logs = np.zeros(len(prefixes))
    total = float(np.logaddexp.reduce(logs))
    if total == -math.inf:
        raise ModelError("the model assigns probability 0 to every string in given")
    return [float(one) - total for one in logs]


def _logprobs(
    session: Session, front: tuple[int, ...], query: Query, prefixes: list[_GivenPrefix]
) -> list[float]:
    """Returns the log-probability of each prefix's tokens."""

    def answer(position: Position) -> TokenLogprobs:
        if query.decoded == "suffix" or query.decoding.is_plain:
            row = position.row
            return lambda token_ids: np.minimum(row.take(token_ids) - row.offset, 0.0)
        logprobs = np.minimum(np.asarray(position.logprobs, dtype=np.float64), 0.0)
        found = query.decoding.distribution(logprobs, renormalize=query.renormalize)
        return lambda token_ids: found[list(token_ids)]

    ways = [one.token_ids for one in prefixes]
    certain = query.decoded != "suffix" and not query.decoding.is_plain
    return [
        math.fsum(row) for row in score_sequences(session, front, ways, answer, certain=certain)
    ]
