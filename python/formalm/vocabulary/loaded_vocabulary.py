"""Parts of a vocabulary as loaders return them, and the selection of its end tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from operator import index
from typing import Any, NamedTuple

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary.chat_template import ChatTemplate
from formalm.vocabulary.tokenizer_libraries import Tokenizer

__all__ = ["GIVEN", "UNKNOWN", "EndTokens", "Parts", "end_token_ids", "ended", "token_ids"]

EndTokens = int | str | Iterable[int | str]
"""Ids or names of the tokens that end a sequence."""

GIVEN = "given"
UNKNOWN = "not known"


class Parts(NamedTuple):
    """The result of a loader."""

    core: _core.Vocabulary
    tokenizer: Tokenizer | None = None
    chat: ChatTemplate | None = None
    end_source: str = UNKNOWN
    """Where the end tokens came from."""
    cannot_encode: str = "it was made without a tokenizer"
    """Why there is no tokenizer, if there is none."""
    encoder: bytes = b""
    """The saved tokenizer analysis for canonical tokens; empty if there is none."""


def ended(
    core: _core.Vocabulary,
    given: EndTokens | None,
    found: Iterable[tuple[str, EndTokens | None]] = (),
) -> tuple[_core.Vocabulary, str]:
    """Returns the tokens with their end tokens, and the source of these.

    Parameters
    ----------
    core
        The tokens.
    given
        The user's end tokens. They take precedence, even if empty.
    found
        Names of sources, each with the ids or names it states. The first that states any is used.
    """
    if given is not None:
        return core.with_end_token_ids(end_token_ids(core, given)), GIVEN
    for place, value in found:
        if value is not None and value not in ([], ""):
            try:
                return core.with_end_token_ids(end_token_ids(core, value)), place
            except VocabularyError as error:
                raise VocabularyError(
                    f"the end tokens of {place} do not fit: {error.message}",
                    hint="pass end_token_ids",
                ) from None
    return core.with_end_token_ids([]), UNKNOWN


def token_ids(values: object, what: str = "token ids") -> list[int]:
    """Returns a user's list of token ids as integers; raises :class:`ArgumentError` if invalid."""
    if isinstance(values, (str, bytes, bytearray)) or not isinstance(values, Iterable):
        kind = type(values).__name__
        raise ArgumentError(f"{what} must be a list of integers, got {kind}")
    try:
        return [_integer(value) for value in values]
    except TypeError as error:
        raise ArgumentError(f"token ids must be integers: {error}") from None


def end_token_ids(core: _core.Vocabulary, value: Any) -> list[int]:
    """Returns the ids of end tokens given as one or several ids or names."""
    if isinstance(value, (Mapping, bytes)):
        kind = type(value).__name__
        raise VocabularyError(f"end_token_ids must be ids or names, got {kind}")
    # An array or tensor of no dimensions is one integer, although it has an iterator.
    single = isinstance(value, str) or not isinstance(value, Iterable)
    several = [value] if single or getattr(value, "ndim", 1) == 0 else value
    try:
        ids = [_integer(_named(core, each)) for each in several]
    except TypeError as error:
        raise VocabularyError(f"token ids must be integers: {error}") from None
    for token_id in ids:
        if not 0 <= token_id < len(core):
            raise VocabularyError(
                f"end_token_ids must be ids of the vocabulary, got {token_id}",
                hint=f"ids are 0 to {len(core) - 1}",
            )
    return ids


def _integer(value: object) -> int:
    if type(value) is int:
        return value
    if isinstance(value, bool) or "bool" in str(getattr(value, "dtype", "")):
        raise TypeError(f"{value} is a truth value")
    return index(value)  # type: ignore[arg-type]


def _named(core: _core.Vocabulary, value: int | str) -> int:
    """Returns the id of a token given by name; other values unchanged."""
    if not isinstance(value, str):
        return value
    special = core.special_tokens
    if value in special:
        return special[value]
    try:
        return core.all_token_bytes().index(value.encode())
    except ValueError:
        raise VocabularyError(
            f"end_token_ids must name tokens of the tokenizer, got {value!r}"
        ) from None
