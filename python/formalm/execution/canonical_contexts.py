"""The starting position of canonical queries, after the tokens of the prompt and of ``given``."""

from __future__ import annotations

from collections.abc import Sequence

from formalm import _core
from formalm.constraint import Constraint
from formalm.continuations import Rest
from formalm.errors import TokenError
from formalm.vocabulary import Vocabulary

__all__ = ["canonical_start", "canonical_tokens", "constraint_after_prompt"]


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
