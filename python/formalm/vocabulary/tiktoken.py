"""Vocabularies of the tiktoken package, from its ``Encoding`` objects."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

from formalm import _core
from formalm.errors import VocabularyError
from formalm.vocabulary.encoding import missing
from formalm.vocabulary.parts import EndTokens, Parts, ended

__all__ = ["TiktokenTokenizer", "read_tiktoken"]

END_NAME = "<|endoftext|>"


class TiktokenTokenizer:
    """An ``Encoding``, rebuilt from its pattern, ranks and special tokens when it is needed."""

    kind = "tiktoken"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._encoding: Any = None

    def encode(self, text: str) -> list[int]:
        """Ids of a text, in which no special token is recognised."""
        if self._encoding is None:
            self._encoding = _encoding(self.data)
        ids: list[int] = self._encoding.encode(text, allowed_special=set(), disallowed_special=())
        return ids


def read_tiktoken(encoding: Any, end_token_ids: EndTokens | None) -> Parts:
    """Bytes by rank; special tokens and ids that no token has get none."""
    try:
        ranks, special = dict(encoding._mergeable_ranks), dict(encoding._special_tokens)
        name, pattern = str(encoding.name), str(encoding._pat_str)
    except (AttributeError, TypeError, ValueError):
        kind = type(encoding).__name__
        raise VocabularyError(
            f"{kind} has no ranks and special tokens as a tiktoken Encoding has"
        ) from None
    tokens: list[bytes | None] = [None] * (
        max([*ranks.values(), *special.values()], default=-1) + 1
    )
    for token, rank in ranks.items():
        tokens[rank] = token
    taken = {*ranks.values(), *special.values()}
    holes = [token_id for token_id in range(len(tokens)) if token_id not in taken]
    notes = [f"ids that no token has, never allowed: {shown(holes)}"] if holes else []
    core = _core.Vocabulary.from_tokens(tokens, [], list(special.items()), notes)
    core, source = ended(
        core, end_token_ids, [("tiktoken", END_NAME if END_NAME in special else None)]
    )
    packed = {
        "name": name,
        "pattern": pattern,
        "special_tokens": special,
        "ranks": {b64encode(token).decode(): rank for token, rank in ranks.items()},
    }
    return Parts(core, TiktokenTokenizer(json.dumps(packed).encode()), end_source=source)


def shown(ids: list[int]) -> str:
    """Some of many ids."""
    few = ", ".join(str(token_id) for token_id in ids[:8])
    return few if len(ids) <= 8 else f"{few} and {len(ids) - 8} more"


def _encoding(data: bytes) -> Any:
    try:
        from tiktoken import Encoding
    except ImportError:
        raise missing("tiktoken") from None
    try:
        packed = json.loads(data)
        return Encoding(
            packed["name"],
            pat_str=packed["pattern"],
            mergeable_ranks={b64decode(token): rank for token, rank in packed["ranks"].items()},
            special_tokens=packed["special_tokens"],
        )
    except Exception as error:  # tiktoken's core raises whatever it meets
        raise VocabularyError(f"tiktoken cannot rebuild this encoding: {error}") from None
