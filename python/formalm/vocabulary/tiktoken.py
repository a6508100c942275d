"""Vocabularies of tiktoken: ``Encoding`` objects and files of token ranks."""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary.loaded_vocabulary import EndTokens, Parts, ended
from formalm.vocabulary.tokenizer_libraries import Description, PackedDescription, missing

__all__ = ["TiktokenTokenizer", "read_tiktoken"]

END_NAME = "<|endoftext|>"


class TiktokenTokenizer(Description):
    """An ``Encoding``, rebuilt from its pattern, ranks and special tokens on first use."""

    kind = "tiktoken"

    def __init__(self, source: bytes | PackedDescription) -> None:
        super().__init__(source)
        self._encoding: tuple[Any, int] | None = None

    @classmethod
    def of(
        cls, name: str, pattern: str, ranks: dict[bytes, int], special: dict[str, int], offset: int
    ) -> TiktokenTokenizer:
        """Returns the tokenizer with these parts; ``offset`` is added to each id of a text."""
        packed = {
            "name": name,
            "pattern": pattern,
            "special_tokens": special,
            "ranks": {b64encode(token).decode(): rank for token, rank in ranks.items()},
            "offset": offset,
        }
        return cls(json.dumps(packed).encode())

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text, without recognizing special tokens."""
        if self._encoding is None:
            self._encoding = _encoding(self.data)
        encoding, offset = self._encoding
        ids: list[int] = encoding.encode(text, allowed_special=set(), disallowed_special=())
        return [token_id + offset for token_id in ids] if offset else ids


def read_tiktoken(
    source: Any,
    end_token_ids: EndTokens | None,
    pattern: str | None = None,
    special_tokens: Mapping[str, int] | None = None,
) -> Parts:
    """Returns bytes by rank; special tokens and unused ids have none."""
    if isinstance(source, (str, os.PathLike, Mapping)):
        if not isinstance(pattern, str):
            raise VocabularyError(
                "pattern must be given with a list of ranks, which does not contain it",
                hint="pass the pre-tokenizer pattern that is published with the tokenizer",
            )
        name, ranks, special = "ranks", _ranks(source), _special(special_tokens)
    elif pattern is not None or special_tokens is not None:
        raise ArgumentError(
            "pattern and special_tokens must be None for an Encoding, which has its own"
        )
    else:
        name, pattern, ranks, special = _parts(source)
    ids = [*ranks.values(), *special.values()]
    if len({*ids}) < len(ids):
        raise VocabularyError("two tokens have the same rank, or one that is a special token's")
    tokens: list[bytes | None] = [None] * (max(ids, default=-1) + 1)
    for token, rank in ranks.items():
        tokens[rank] = token
    taken = {*ids}
    holes = [token_id for token_id in range(len(tokens)) if token_id not in taken]
    notes = [f"ids that no token has, never allowed: {shown(holes)}"] if holes else []
    core = _core.Vocabulary.from_tokens(tokens, [], list(special.items()), notes)
    core, source = ended(
        core, end_token_ids, [("tiktoken", END_NAME if END_NAME in special else None)]
    )
    tokenizer = TiktokenTokenizer.of(name, pattern, ranks, special, offset=0)
    return Parts(core, tokenizer, end_source=source)


def _parts(encoding: Any) -> tuple[str, str, dict[bytes, int], dict[str, int]]:
    """Returns name, pattern, ranks and special tokens of an ``Encoding``."""
    try:
        ranks, special = dict(encoding._mergeable_ranks), dict(encoding._special_tokens)
        return str(encoding.name), str(encoding._pat_str), ranks, special
    except (AttributeError, TypeError, ValueError):
        kind = type(encoding).__name__
        raise VocabularyError(
            f"encoding must be a tiktoken Encoding or its ranks, got {kind}"
        ) from None


def _ranks(source: str | os.PathLike[str] | Mapping[Any, Any]) -> dict[Any, Any]:
    """Returns ranks as given, or from a file with a Base64 token and its rank on each line."""
    if isinstance(source, Mapping):
        ranks = dict(source)
    else:
        from formalm.vocabulary.saved_vocabulary import read_bytes

        try:
            lines = [line.split() for line in read_bytes(Path(source)).splitlines() if line]
            ranks = {b64decode(token, validate=True): int(rank) for token, rank in lines}
        except ValueError:
            raise VocabularyError(
                f"{source} is not a list of tokens in base 64 and their ranks"
            ) from None
    for token, rank in ranks.items():
        if not isinstance(token, bytes) or not token or type(rank) is not int or rank < 0:
            raise VocabularyError(f"{token!r}: {rank!r} is not the bytes of a token and a rank")
    return ranks


def _special(tokens: Mapping[Any, Any] | None) -> dict[Any, Any]:
    special = dict(tokens or {})
    for name, token_id in special.items():
        if not isinstance(name, str) or type(token_id) is not int or token_id < 0:
            raise VocabularyError(f"{name!r}: {token_id!r} is not the name of a token and its id")
    return special


def shown(ids: list[int]) -> str:
    """Returns some of many ids, for a message."""
    few = ", ".join(str(token_id) for token_id in ids[:8])
    return few if len(ids) <= 8 else f"{few} and {len(ids) - 8} more"


def _encoding(data: bytes) -> tuple[Any, int]:
    try:
        from tiktoken import Encoding
    except ImportError:
        raise missing("tiktoken") from None
    try:
        packed = json.loads(data)
        encoding = Encoding(
            packed["name"],
            pat_str=packed["pattern"],
            mergeable_ranks={b64decode(token): rank for token, rank in packed["ranks"].items()},
            special_tokens=packed["special_tokens"],
        )
        return encoding, int(packed["offset"])
    except Exception as error:  # tiktoken's core raises whatever it meets
        raise VocabularyError(f"tiktoken cannot rebuild this encoding: {error}") from None
