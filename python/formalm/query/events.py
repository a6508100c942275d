"""Events as languages: the outputs that decide an event, and the member that decided it."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from formalm.errors import LanguageError
from formalm.languages import Language, Regex
from formalm.languages.special_tokens import special_tokens_of
from formalm.query.prefixes import anything

__all__ = ["any_string", "deciding_member", "event_language"]


@lru_cache(maxsize=1)
def any_string() -> Language:
    """Returns the language of all UTF-8 text, which every string with canonical tokens is in."""
    return Regex("(?s:.*)")


def event_language(language: Language, event: str, tokenization: str = "all") -> Language:
    """Returns the outputs that decide an event: members, or all that start with or contain one."""
    if event in ("complete", "token_prefix"):
        return language
    if special_tokens_of(language):
        raise LanguageError(
            f"event={event!r} allows any bytes around a member, which is not supported for a"
            " language with special tokens",
            hint="pass event='complete' and put free_text() around the pattern",
        )
    rest = any_string() if tokenization == "canonical" else anything()
    extended = language + rest
    return extended if event == "prefix" else rest + extended


def deciding_member(language: Language, event: str) -> Callable[[bytes], bytes]:
    """Returns the map from an output that decides an event to the member that decides it.

    With ``"complete"`` and ``"token_prefix"`` that is the output itself. With ``"prefix"`` it is
    the shortest member that the output starts with. With ``"contains"`` it is the member that ends
    first, the longest of several.
    """
    if event in ("complete", "token_prefix"):
        return lambda data: data
    extended = event_language(language, event)

    def member(data: bytes) -> bytes:
        end = len(data)
        while end and extended.matches(data[: end - 1]):
            end -= 1
        if event == "prefix":
            return data[:end]
        return next(
            data[start:end] for start in range(end + 1) if language.matches(data[start:end])
        )

    return member
