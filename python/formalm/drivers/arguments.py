"""What the drivers' arguments mean, read in one place."""

from __future__ import annotations

from functools import lru_cache
from operator import index
from typing import Any

from formalm.constraint import Constraint
from formalm.errors import ArgumentError, ModelError
from formalm.languages import Language, as_language
from formalm.models import Session
from formalm.vocabulary import Vocabulary

__all__ = ["compiled", "positive", "prefix_token_ids", "token_ids_of"]


def positive(name: str, value: object, *, least: int = 1) -> None:
    """Refuse ``value`` unless it is None or an integer from ``least``."""
    if value is not None and (type(value) is not int or value < least):
        raise ArgumentError(f"{name} must be an integer from {least}, not {value!r}")


def compiled(language: Any, vocabulary: Vocabulary, tokenization: str = "all") -> Constraint:
    """The constraint of a language, a list of strings, or a constraint that is there already.

    The last few are kept, so that a second call with an equal language finds its masks.

    Raises
    ------
    ModelError
        If a constraint belongs to another vocabulary than the model.
    """
    if not isinstance(language, Constraint):
        return _compiled(as_language(language), vocabulary, tokenization)
    if language.vocabulary != vocabulary:
        raise ModelError(
            "the constraint and the model have different vocabularies",
            hint="build it with Constraint(language, model.vocabulary)",
        )
    if language.tokenization != tokenization:
        raise ArgumentError(f"the constraint has tokenization {language.tokenization!r} already")
    return language


@lru_cache(maxsize=16)
def _compiled(language: Language, vocabulary: Vocabulary, tokenization: str) -> Constraint:
    return Constraint(language, vocabulary, tokenization=tokenization)


def token_ids_of(name: str, value: Any, vocabulary: Vocabulary) -> list[int]:
    """Token ids of a text or a sequence of token ids."""
    if isinstance(value, (bytes, bytearray)):
        raise ArgumentError(f"{name} is a text or a sequence of token ids, not bytes")
    if value is None:
        return []
    if isinstance(value, str):
        return vocabulary.encode(value) if value else []
    try:
        ids = [index(token_id) for token_id in value]
    except TypeError:
        kind = type(value).__name__
        raise ArgumentError(f"{name} is a text or a sequence of token ids, not {kind}") from None
    for token_id in ids:
        if not 0 <= token_id < len(vocabulary):
            raise ArgumentError(
                f"token id {token_id} in {name} is outside the vocabulary of {len(vocabulary)}"
            )
    return ids


def prefix_token_ids(session: Session, prompt: Any, bos: object) -> list[int]:
    """The tokens a query starts with: the beginning of sequence, then the prompt.

    ``bos="auto"`` puts the model's own token in front, unless the prompt is given as token ids that
    start with it already; an integer names another token, None puts none. A model that needs a
    first token although texts have none in front, such as GPT-2, has its own one for empty prompts.
    """
    ids = token_ids_of("prompt", prompt, session.vocabulary)
    if bos == "auto":
        first = session.model.bos_token_id
        if first is None and not ids:
            first = getattr(session.model, "empty_prompt_token_id", None)
        repeated = not isinstance(prompt, str) and ids[:1] == [first]
        return ids if first is None or repeated else [first, *ids]
    if bos is None:
        return ids
    if type(bos) is not int:
        raise ArgumentError(f"bos is 'auto', None or a token id, not {bos!r}")
    return [*token_ids_of("bos", [bos], session.vocabulary), *ids]
