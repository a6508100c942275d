"""Token bytes of real tokenizer files against the `tokenizers` library.

Two oracles: the pieces of the library's own table, spelled by a second implementation, and what
the library decodes. A token that ends or begins within a character shows no bytes of its own when
decoded, so single bytes complete it first.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from formalm.vocabulary import Vocabulary

FILES = Path(__file__).parents[3] / "shared" / "tokenizers"
QUICK = {"gpt2-50k", "mistral-v3-32k"}
NAMES = sorted(path.name.removesuffix(".json.gz") for path in FILES.glob("*.json.gz"))

pytestmark = pytest.mark.skipif(not NAMES, reason="no tokenizer files in ../shared/tokenizers")

# Bytes that, put in front of or behind a token, make whole characters of what it begins with.
BEFORE = [b"", b"\xc3", b"\xe4", b"\xe4\xb8", b"\xe0", b"\xed", b"\xf0\x9f\x98", b"\xf0\x9f"]
BEFORE += [b"\xf0", b"\xf1", b"\xf4"]
AFTER = [b""] + [
    bytes([first, *[0x80] * more]) for first in (0x80, 0x90, 0xA0) for more in range(3)
]


def byte_level_table() -> dict[str, int]:
    """Byte-level characters and their bytes, by GPT-2's rule."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    table = {chr(byte): byte for byte in plain}
    return table | {chr(256 + at): byte for at, byte in enumerate(others)}


TABLE = byte_level_table()


class Case:
    """One tokenizer file, read by us and by the library."""

    def __init__(self, name: str) -> None:
        self.data = gzip.decompress((FILES / f"{name}.json.gz").read_bytes())
        self.file: dict[str, Any] = json.loads(self.data)
        self.tokenizer = Tokenizer.from_str(self.data.decode())
        self.vocabulary = Vocabulary.from_tokenizer_json(self.data)
        self.added = self.tokenizer.get_added_tokens_decoder()
        self.byte_level = self.file["decoder"]["type"] == "ByteLevel"
        self.ids = {
            token: at for at, token in enumerate(self.vocabulary.tokens()) if token is not None
        }

    def expected(self, token_id: int) -> bytes | None:
        """The bytes of a token by the library's table of pieces."""
        added = self.added.get(token_id)
        piece = self.tokenizer.id_to_token(token_id)
        if piece is None or (added is not None and added.special):
            return None
        if added is not None:
            return added.content.encode()
        if self.byte_level:
            return bytes(TABLE[character] for character in piece)
        if len(piece) == 6 and piece.startswith("<0x"):
            return bytes.fromhex(piece[3:5])
        return piece.replace("▁", " ").encode()

    def decoded(self, sequences: list[list[int]]) -> list[str]:
        return self.tokenizer.decode_batch(sequences, skip_special_tokens=False)

    def byte_ids(self) -> list[int]:
        """The token of each byte: for byte fallback the one that is written ``<0x0A>``."""
        if self.byte_level:
            return [self.ids[bytes([byte])] for byte in range(256)]
        ids = self.tokenizer.get_vocab()
        return [ids[f"<0x{byte:02X}>"] for byte in range(256)]


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in NAMES],
)
def case(request: pytest.FixtureRequest) -> Case:
    return Case(request.param)


def is_text(token: bytes) -> bool:
    try:
        token.decode()
    except UnicodeDecodeError:
        return False
    return True


def completions(token: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Bytes around a token that make it text."""
    return (pair for pair in product(BEFORE, AFTER) if is_text(pair[0] + token + pair[1]))


def test_every_id_has_the_bytes_of_its_piece(case: Case) -> None:
    tokens = case.vocabulary.tokens()
    assert len(tokens) == max(case.tokenizer.get_vocab().values()) + 1
    assert tokens == [case.expected(token_id) for token_id in range(len(tokens))]


def test_special_tokens_are_named(case: Case) -> None:
    special = {token["content"]: token["id"] for token in case.file["added_tokens"]}
    named = case.vocabulary.core.special_tokens
    assert named == {name: at for name, at in special.items() if case.expected(at) is None}
    assert set(named.values()) <= set(case.vocabulary.core.special_token_ids)


@pytest.mark.parametrize("context", [b"a", b"7", b" the", b"\n"])
def test_text_tokens_decode_to_their_bytes(case: Case, context: bytes) -> None:
    before = case.ids[context]
    chosen = [
        (at, token.decode())
        for at, token in enumerate(case.vocabulary.tokens())
        if token is not None and is_text(token)
    ]
    assert case.decoded([[before]]) == [
        context.decode().removeprefix("" if case.byte_level else " ")
    ]
    # Twice, because a decoder for byte fallback drops a space at the start of a text.
    start = case.decoded([[before, before]])[0]
    texts = case.decoded([[before, before, at] for at, _ in chosen])
    wrong = [
        (at, text, token)
        for (at, token), text in zip(chosen, texts, strict=True)
        if text != start + token
    ]
    assert not wrong


def test_broken_tokens_decode_to_their_bytes_when_completed(case: Case) -> None:
    start, byte_ids = case.ids[b"a"], case.byte_ids()
    sequences, expected, never = [], [], []
    for at, token in enumerate(case.vocabulary.tokens()):
        if token is None or is_text(token):
            continue
        pair = next(completions(token), None)
        if pair is None:
            never.append(token)
            continue
        before, after = ([byte_ids[byte] for byte in part] for part in pair)
        sequences.append([start, *before, at, *after])
        expected.append("a" + (pair[0] + token + pair[1]).decode())
    assert sequences
    assert case.decoded(sequences) == expected
    # What cannot be completed is a byte that no text has.
    assert {*never} <= {bytes([byte]) for byte in (0xC0, 0xC1, *range(0xF5, 0x100))}
