"""What is measured: patterns with members of their languages, and vocabularies."""

from __future__ import annotations

import gzip
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).parent
END_TOKENS = {"llama3-128k": "<|eot_id|>"}  # every other vocabulary here ends with <|endoftext|>


@dataclass(frozen=True)
class Case:
    """A pattern, with texts it matches."""

    name: str
    pattern: str
    matching: tuple[str, ...]


@dataclass(frozen=True)
class Vocabulary:
    """A byte-level tokenizer as every engine here can take it."""

    name: str
    json: str
    #: Pieces as the file spells them, by id.
    pieces: list[str]
    #: Bytes by id, ``None`` for special tokens.
    tokens: list[bytes | None]
    end_token_id: int

    @property
    def words(self) -> int:
        """Words of 32 bits in a bitmask."""
        return (len(self.tokens) + 31) // 32


def load_cases(extra: Path | None) -> list[Case]:
    """Return our own patterns, and those of a JSON file where one is given."""
    own = tomllib.loads((HERE / "patterns.toml").read_text("utf-8"))["pattern"]
    more = json.loads(extra.read_text("utf-8")) if extra else []
    return [Case(c["name"], c["pattern"], tuple(c["matching"])) for c in [*more, *own]]


def load_vocabulary(name: str, folder: Path | None) -> Vocabulary:
    """Read ``folder/NAME.json.gz``; without a folder, the embedded model's tokenizer."""
    if folder is None:
        import formalm.models

        package = Path(formalm.models.__file__).parent
        text = (package / "canary" / "weights" / "tokenizer.json").read_text("utf-8")
    else:
        text = gzip.decompress((folder / f"{name}.json.gz").read_bytes()).decode("utf-8")
    data: dict[str, Any] = json.loads(text)
    added = {entry["content"]: entry["id"] for entry in data["added_tokens"]}
    ids = {**data["model"]["vocab"], **added}
    special = {entry["id"] for entry in data["added_tokens"] if entry["special"]}
    width = max(ids.values()) + 1
    pieces = [f"<|hole_{i}|>" for i in range(width)]
    tokens: list[bytes | None] = [None] * width
    byte_of = _byte_of_character()
    for piece, token_id in ids.items():
        pieces[token_id] = piece
        if token_id in special:
            continue
        if piece in added:
            tokens[token_id] = piece.encode()
        else:
            tokens[token_id] = bytes(byte_of[c] for c in piece)
    return Vocabulary(name, text, pieces, tokens, ids[END_TOKENS.get(name, "<|endoftext|>")])


def _byte_of_character() -> dict[str, int]:
    """Undo the spelling of bytes in byte-level files: printable ones stand for themselves."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(256 + rank): byte for rank, byte in enumerate(others)})
    return table
