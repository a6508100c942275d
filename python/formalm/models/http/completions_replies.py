"""Parsing of completions replies: token log-probabilities in the legacy and chat formats.

*Legacy*, from OpenAI's first API (vLLM, SGLang): ``logprobs`` has parallel lists ``tokens``,
``token_logprobs`` and ``top_logprobs``, the last of mappings from a token's string. vLLM writes
``token_id:17`` for the string if requested. *Content*, from the chat API (llama.cpp): a list of
tokens with ``id``, ``bytes`` and ``top_logprobs`` of the same kind.

A string identifies a token only if no other token has it: parts of characters all look like U+FFFD.
Entries that cannot be identified are skipped, and count as not shown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from formalm.errors import ModelError
from formalm.models.http.bounded_json import shown
from formalm.vocabulary import Vocabulary

__all__ = ["TokenNames", "next_tokens", "sequence_logprobs"]

NAMED = "token_id:"
ID_DIGITS = 10
"""Maximum number of digits of an id: vocabularies have fewer than 2^32 tokens."""
SAME_LOGPROB = 1e-2
"""Maximum difference between two values of one token. Servers round, sometimes to bfloat16."""


class TokenNames:
    """Maps a server's name of a token to its id.

    ``by_text`` says whether a string without an id may identify a token.
    """

    def __init__(self, vocabulary: Vocabulary, *, by_text: bool) -> None:
        self._size = len(vocabulary)
        self._by_text = by_text
        self._by_bytes: dict[bytes, int | None] = {}
        for token_id, data in enumerate(vocabulary.tokens()):
            if data:
                self._by_bytes[data] = None if data in self._by_bytes else token_id
        for name, token_id in vocabulary.special_tokens.items():
            spelled = name.encode(errors="replace")
            self._by_bytes[spelled] = None if spelled in self._by_bytes else token_id

    def of_text(self, text: str) -> int | None:
        """Returns the token with a string; None if there are none or several."""
        if text.startswith(NAMED):
            digits = text[len(NAMED) :]
            if digits.isascii() and digits.isdecimal() and len(digits) <= ID_DIGITS:
                return self.checked(int(digits))
            if not self._by_text:  # where strings name tokens, one may begin like this
                raise ModelError(f"the server must return token ids, got {shown(text)}")
        if not self._by_text:
            raise ModelError(
                f"the server must return token ids, got the string {shown(text)}, which may be"
                " ambiguous",
                hint="use a server that returns ids, or names='text' if its strings are the"
                " tokens' bytes",
            )
        if "\ufffd" in text:
            return None
        return self._by_bytes.get(text.encode(errors="surrogatepass"))

    def of_entry(self, entry: Mapping[str, Any]) -> int | None:
        """Returns the token of an entry with ``id``, ``bytes`` or ``token``."""
        token_id = entry.get("id")
        if token_id is not None:
            if type(token_id) is not int:
                raise ModelError(f"ids in the reply must be integers, got {shown(token_id)}")
            return self.checked(token_id)
        data = entry.get("bytes")
        if data is not None and not isinstance(data, list):
            raise ModelError(f"bytes in the reply must be a list, got {shown(data)}")
        if data:
            if not all(type(byte) is int and 0 <= byte < 256 for byte in data):
                raise ModelError(
                    f"bytes in the reply must be integers from 0 to 255, got {shown(data)}"
                )
            return self._by_bytes.get(bytes(data))
        return self.of_text(_text(entry.get("token")))

    def checked(self, token_id: int) -> int:
        """Returns an id of the vocabulary, or refuses it."""
        if not 0 <= token_id < self._size:
            raise ModelError(
                f"token ids of the server must be below the vocabulary size ({self._size:,}),"
                f" got {token_id}",
                hint="pass the vocabulary of the served model",
            )
        return token_id


def next_tokens(choice: object, names: TokenNames) -> tuple[dict[int, float], bool]:
    """Returns a choice's log-probabilities at its first position, and whether any were skipped."""
    logprobs = _mapping(_mapping(choice, "a choice").get("logprobs"), "logprobs")
    content = logprobs.get("content")
    found: dict[int, float] = {}
    if isinstance(content, list):
        first = _mapping(_first(content, "content"), "content")
        entries = [*_list(first.get("top_logprobs", []), "top_logprobs"), first]
        pairs = [
            (names.of_entry(_mapping(entry, "top_logprobs")), entry["logprob"])
            for entry in entries
            if "logprob" in _mapping(entry, "top_logprobs")
        ]
    else:
        top = _mapping(_first(logprobs.get("top_logprobs"), "top_logprobs"), "top_logprobs")
        pairs = [(names.of_text(_text(name)), value) for name, value in top.items()]
    for token_id, value in pairs:
        logprob = _logprob(value)
        if token_id is None:
            continue
        if abs(found.get(token_id, logprob) - logprob) > SAME_LOGPROB:
            raise ModelError(
                f"the server returned two log-probabilities for token {token_id},"
                f" {found[token_id]:.6g}"
                f" and {logprob:.6g}"
            )
        found.setdefault(token_id, logprob)
    return found, any(token_id is None for token_id, _ in pairs)


def sequence_logprobs(choice: object, count: int) -> list[float] | None:
    """Returns the log-probabilities of a prompt's tokens; None if the server did not echo them.

    The first token has none; its entry is NaN.
    """
    logprobs = _mapping(_mapping(choice, "a choice").get("logprobs"), "logprobs")
    values = logprobs.get("token_logprobs")
    if not isinstance(values, list) or len(values) < count:
        return None
    if values and values[0] is not None and len(values) == count:
        return None  # these belong to generated tokens
    return [math.nan, *(_logprob(value) for value in values[1:count])]


def _logprob(value: object) -> float:
    # Integers are small, see `documents`.
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or math.isnan(value) or value > 1e-3:  # type: ignore[arg-type, operator]
        raise ModelError(
            f"log-probabilities of the server must be numbers of at most 0, got {shown(value)}"
        )
    return min(0.0, float(value))  # type: ignore[arg-type]


def _mapping(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        hint = (
            "use a server that returns log-probabilities of completions" if value is None else None
        )
        raise ModelError(f"{name} in the reply must be an object, got {shown(value)}", hint=hint)
    return value


def _list(value: object, name: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise ModelError(f"{name} in the reply must be a list, got {shown(value)}")
    return value


def _first(value: object, name: str) -> object:
    listed = _list(value, name)
    if not listed:
        raise ModelError(f"{name} in the reply must not be empty")
    return listed[0]


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ModelError(f"token names in the reply must be strings, got {shown(value)}")
    return value
