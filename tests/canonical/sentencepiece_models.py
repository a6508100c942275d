"""SentencePiece models written piece by piece, and their normalizers."""

from __future__ import annotations

import io
import random
import struct
from collections.abc import Iterator, Sequence
from functools import cache

import sentencepiece

from tests.canonical.small_tokenizers import TEXT

NORMAL, USER_DEFINED = 1, 4
UNIGRAM, BPE = 1, 2
LETTERS = "abcé"

Piece = tuple[str, float, int]


def _number(value: int) -> bytes:
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def _bytes(field: int, data: bytes) -> bytes:
    return _number(field << 3 | 2) + _number(len(data)) + data


def _integer(field: int, value: int) -> bytes:
    return _number(field << 3) + _number(value)


def _piece(text: str, score: float, kind: int) -> bytes:
    score_field = _number(2 << 3 | 5) + struct.pack("<f", score)
    return _bytes(1, _bytes(1, text.encode()) + score_field + _integer(3, kind))


def model_of(
    pieces: Sequence[Piece],
    kind: int,
    *,
    byte_fallback: bool = False,
    charsmap: bytes = b"",
    trims: bool = False,
    dummy_prefix: bool = False,
) -> bytes:
    """A model of the given pieces after the unknown one, and bytes if asked for."""
    data = _piece("<unk>", 0, 2) + b"".join(_piece(*piece) for piece in pieces)
    if byte_fallback:
        data += b"".join(_piece(f"<0x{byte:02X}>", 0, 6) for byte in range(256))
    data += _bytes(2, _integer(3, kind) + _integer(35, byte_fallback))
    normalizer = _integer(3, dummy_prefix) + _integer(4, trims) + _integer(5, 1)
    return data + _bytes(3, (_bytes(2, charsmap) if charsmap else b"") + normalizer)


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a message that have a length."""
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = number()
        if tag & 7 == 2:
            size = number()
            yield tag >> 3, data[at : at + size]
            at += size
        elif tag & 7 == 0:
            number()
        else:
            at += 4 if tag & 7 == 5 else 8


@cache
def charsmap(name: str) -> bytes:
    """The compiled map of a normalizer that the library knows by name."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT.splitlines()),
        model_writer=model,
        vocab_size=100,
        normalization_rule_name=name,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    normalizer = next(data for field, data in _fields(model.getvalue()) if field == 3)
    return next(data for field, data in _fields(normalizer) if field == 2)


def random_pieces(rng: random.Random, kind: int, user_defined: str) -> list[Piece]:
    """Pieces over a few letters, some of them user-defined and made of ``user_defined``."""
    letters = LETTERS[: rng.randrange(2, 5)]
    texts = {letter for letter in letters if kind == BPE or rng.random() < 0.85} | {"▁"}
    texts |= {
        "".join(rng.choices(letters + "▁", k=rng.randrange(2, 5))) for _ in range(rng.randrange(9))
    }
    scale = rng.choice([1.0, 0.5, rng.random() + 0.1])
    own = {
        "".join(rng.choices(user_defined, k=rng.randrange(1, 5)))
        for _ in range(rng.randrange(1, 4))
    }
    # The library refuses a model of merges whose piece is no character or a space.
    own -= {"▁", *(letters if kind == BPE else "")}
    pieces = [(text, -scale * rng.randrange(1, 14), NORMAL) for text in sorted(texts - own)]
    pieces += [(text, 0.0, USER_DEFINED) for text in sorted(own)]
    rng.shuffle(pieces)
    return pieces
