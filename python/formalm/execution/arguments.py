"""Checks and conversions of arguments: options, tokenizations, prompts, chats and batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import index
from typing import Any, TypeAlias

from formalm.constraint import Constraint
from formalm.errors import ArgumentError, ModelError
from formalm.languages import Language, as_language
from formalm.models import Session
from formalm.vocabulary import Vocabulary

__all__ = [
    "UNSET",
    "Message",
    "Prompt",
    "Prompts",
    "batch_of",
    "check_tokenization",
    "checked_tolerance",
    "compiled",
    "is_token_id",
    "positive",
    "prefix_token_ids",
    "refuse_language",
    "token_ids_of",
]


class _Unset:
    """The default of an option that was not given, for options where None has a meaning."""

    def __repr__(self) -> str:
        return "<not given>"


UNSET: Any = _Unset()


def positive(name: str, value: object, *, least: int = 1, optional: bool = True) -> None:
    """Refuses ``value`` unless it is an integer of at least ``least``, or None if that is
    allowed.
    """
    if value is None and optional:
        return
    if type(value) is not int or value < least:
        raise ArgumentError(f"{name} must be an integer from {least}, got {value!r:.60}")


def checked_tolerance(tolerance: object) -> float:
    """Returns a tolerance, a probability from 0 to 1, or refuses it."""
    is_number = isinstance(tolerance, (int, float)) and not isinstance(tolerance, bool)
    if not is_number or not 0 <= tolerance <= 1:  # type: ignore[operator]
        raise ArgumentError(f"tolerance must be a number from 0 to 1, got {tolerance!r:.60}")
    return float(tolerance)  # type: ignore[arg-type]


def compiled(language: Any, vocabulary: Vocabulary, tokenization: str | None = None) -> Constraint:
    """Returns the constraint of a language or a list of strings; a constraint is returned as it is.

    The last few are cached, so a second call with an equal language reuses its masks.

    Raises
    ------
    ModelError
        If the constraint belongs to another vocabulary than the model.
    ArgumentError
        If the constraint has another tokenization than the one given.
    """
    if not isinstance(language, Constraint):
        wanted: Any = tokenization or "all"
        made = _compiled(as_language(language), vocabulary, wanted)
        if wanted == "all" or made.vocabulary.merges_like(vocabulary):
            return made
        # Equal vocabularies may merge differently, which matters only for canonical tokens.
        return Constraint(made.language, vocabulary, tokenization=wanted)
    if language.vocabulary != vocabulary:
        raise ModelError(
            "the constraint must have the model's vocabulary, got a different one",
            hint="build it with Constraint(language, model.vocabulary)",
        )
    if tokenization not in (None, language.tokenization):
        raise ArgumentError(
            f"tokenization must be the constraint's, {language.tokenization!r}, got"
            f" {tokenization!r}"
        )
    return language


def check_tokenization(tokenization: object) -> None:
    """Refuses a value that is not a tokenization."""
    if tokenization not in (None, "all", "canonical"):
        raise ArgumentError(f"tokenization must be 'all' or 'canonical', got {tokenization!r:.60}")


@lru_cache(maxsize=16)
def _compiled(language: Language, vocabulary: Vocabulary, tokenization: Any) -> Constraint:
    return Constraint(language, vocabulary, tokenization=tokenization)


def is_token_id(value: Any) -> bool:
    """Returns True if ``value`` is an integer of any kind, except a bool."""
    # A tensor with one element, a bool or an integer, would pass as an index.
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        return False
    if hasattr(value, "ndim") and value.ndim > 0:
        return False
    try:
        index(value)
    except TypeError:
        return False
    return True


def token_ids_of(name: str, value: Any, vocabulary: Vocabulary) -> list[int]:
    """Returns the token ids of a string or of a sequence of token ids."""
    if value is None:
        return []
    if isinstance(value, str):
        return vocabulary.encode(value) if value else []
    kind = type(value).__name__
    if isinstance(value, (bytes, bytearray)) or not isinstance(value, Iterable):
        raise ArgumentError(f"{name} must be a string or a sequence of token ids, got {kind}")
    ids = []
    for item in value:
        if not is_token_id(item):
            rows = getattr(value, "ndim", 1) > 1
            raise ArgumentError(
                f"{name} must contain token ids only, got {item!r:.40}",
                hint=f"to pass a batch, use a list of prompts: list({name}s)" if rows else None,
            )
        ids.append(index(item))
        if not 0 <= ids[-1] < len(vocabulary):
            raise ArgumentError(
                f"{name} must contain token ids below {len(vocabulary)}, got {ids[-1]}"
            )
    return ids


Message: TypeAlias = Mapping[str, Any]
Prompt: TypeAlias = str | Sequence[int] | Sequence[Message] | None
Prompts: TypeAlias = Sequence[Prompt]


def refuse_language(prompt: object, driver: str) -> None:
    """Refuses a language in the place of the prompt."""
    if isinstance(prompt, (Language, Constraint, type)):
        raise ArgumentError(
            f"prompt must be a string, token ids, messages or None, got {prompt!r:.60}",
            hint=f"pass the prompt before the language: {driver}(model, prompt, language)",
        )


def batch_of(prompt: object) -> list[object] | None:
    """Returns the prompts of a batch, or None if ``prompt`` is a single one.

    A list (or tuple) of token ids is one prompt, and a list of messages is one chat; any other list
    is a batch.

    Raises
    ------
    ArgumentError
        For an empty list, which could be either, and for a list that mixes both forms.
    """
    if not isinstance(prompt, (list, tuple)):
        return None
    if not prompt:
        raise ArgumentError(
            "prompt must not be an empty list, which may mean an empty batch or an empty prompt",
            hint="pass None for an empty prompt; a batch has at least one prompt",
        )
    token_ids = sum(is_token_id(item) or isinstance(item, bool) for item in prompt)
    messages = sum(isinstance(item, Mapping) for item in prompt)
    if len(prompt) in (token_ids, messages):
        return None
    if token_ids or messages:
        found = "token ids" if token_ids else "messages"
        raise ArgumentError(
            f"prompt must be one prompt or a batch, got a list that mixes {found} with other"
            " values",
            hint="in a batch, pass each prompt of token ids and each chat as its own list",
        )
    return list(prompt)


def prefix_token_ids(
    session: Session, prompt: object, bos: object, name: str = "prompt"
) -> tuple[int, ...]:
    """Returns the tokens a query starts with: the beginning of sequence, then the prompt.

    ``bos="auto"`` puts the model's own token before a string, and before token ids unless they
    start with it already. A chat gets none, because its template writes its own. An integer names
    another token for every kind of prompt; None adds none. A model that needs a first token
    although its texts have none, such as GPT-2, names a token for empty prompts.
    """
    if isinstance(prompt, Mapping):
        raise ArgumentError(
            f"{name} must be a list of messages, got a single message", hint="pass [message]"
        )
    vocabulary = session.vocabulary
    items = list(prompt) if isinstance(prompt, (list, tuple)) else []
    is_chat = bool(items) and all(isinstance(item, Mapping) for item in items)
    if any(isinstance(item, (str, list, tuple, Mapping)) for item in items) and not is_chat:
        raise ArgumentError(
            f"{name} must be a single prompt, got a list of prompts",
            hint="only formalm.generate takes a batch; call other functions once per prompt",
        )
    ids = vocabulary.encode_chat(items) if is_chat else token_ids_of(name, prompt, vocabulary)
    if bos == "auto":
        first = session.model.bos_token_id
        if first is None and not ids:
            first = getattr(session.model, "empty_prompt_token_id", None)
        repeated = not isinstance(prompt, str) and ids[:1] == [first]
        return tuple(ids if first is None or is_chat or repeated else [first, *ids])
    if bos is None:
        return tuple(ids)
    if type(bos) is not int:
        raise ArgumentError(f"bos must be 'auto', None or a token id, got {bos!r}")
    return (*token_ids_of("bos", [bos], vocabulary), *ids)
