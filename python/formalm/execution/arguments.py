"""Checks and conversions of the arguments that several functions share."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from operator import index
from typing import Any

from formalm.constraint import Constraint
from formalm.errors import ArgumentError, ModelError
from formalm.languages import Language, as_language
from formalm.vocabulary import Vocabulary

__all__ = [
    "UNSET",
    "check_tokenization",
    "checked_tolerance",
    "compiled",
    "is_token_id",
    "positive",
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
