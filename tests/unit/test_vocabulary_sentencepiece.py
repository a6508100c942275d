"""SentencePiece models written by hand: bytes, ends, and only typed errors."""

from __future__ import annotations

import contextlib
import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import FormalmError, Vocabulary, VocabularyError


def varint(value: int) -> bytes:
    out = b""
    while value >= 0x80:
        out += bytes([value & 0x7F | 0x80])
        value >>= 7
    return out + bytes([value])


def field(number: int, value: bytes | int) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def piece(text: str, kind: int = 1) -> bytes:
    score = varint(2 << 3 | 5) + struct.pack("<f", -1.0)
    return field(1, field(1, text.encode()) + score + (field(3, kind) if kind != 1 else b""))


PIECES = [("<unk>", 2), ("<s>", 3), ("</s>", 3), ("<0x41>", 6), ("▁the", 1), ("x▁y", 4), ("é", 1)]
MODEL = b"".join(piece(text, kind) for text, kind in [*PIECES, ("old", 5)])
NORMALIZER = field(3, field(1, b"identity") + field(3, 1) + field(4, 0))


def test_a_model_by_hand() -> None:
    vocabulary = Vocabulary.from_sentencepiece(MODEL + field(2, field(3, 2)) + NORMALIZER)
    assert vocabulary.tokens() == [None, None, None, b"A", b" the", b"x y", "é".encode(), None]
    assert vocabulary.end_token_ids == (2,)
    assert vocabulary.end_token_source == "SentencePiece model"
    assert vocabulary.special_tokens == {"<unk>": 0, "<s>": 1, "</s>": 2}
    assert "encoding puts a space in front of a text" in vocabulary.notes
    assert Vocabulary.from_sentencepiece(MODEL, end_token_ids="<s>").end_token_ids == (1,)
    other = Vocabulary.from_sentencepiece(MODEL + field(2, field(47, b"<s>")))
    assert other.end_token_ids == (1,)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"{}",
        piece("a"),
        MODEL + piece(""),
        MODEL + piece("a", 9),
        MODEL + piece("<0xGG>", 6),
        MODEL + field(1, field(1, b"\xff")),
        MODEL + field(1, 5),
        MODEL + field(5, field(2, b"charsmap")),
        MODEL + varint(1 << 3 | 2) + varint(1 << 62),
        MODEL + b"\xff" * 20,
        MODEL + varint(1 << 3 | 3),
        b"IQ== 0\nIg== 1\n",
    ],
)
def test_broken_models(data: bytes) -> None:
    with pytest.raises(VocabularyError):
        Vocabulary.from_sentencepiece(data)


def typed(read: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(FormalmError):
        read(data)


def test_a_damaged_model_is_no_traceback() -> None:
    model = MODEL + field(2, field(3, 2)) + NORMALIZER
    for at in range(len(model)):
        typed(Vocabulary.from_sentencepiece, model[:at])
        for flipped in (1, 2, 4, 8, 16, 32, 64, 128, 255):
            changed = bytes([model[at] ^ flipped])
            typed(Vocabulary.from_sentencepiece, model[:at] + changed + model[at + 1 :])


@given(st.binary(max_size=200))
def test_any_bytes_are_a_model_or_a_typed_error(data: bytes) -> None:
    typed(Vocabulary.from_sentencepiece, data)
    typed(Vocabulary.from_sentencepiece, MODEL + data)


def test_a_folder_with_a_model(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(MODEL)
    config = {"added_tokens_decoder": {"4": {"content": "<other>", "special": True}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(VocabularyError, match="another token 4"):
        Vocabulary.from_pretrained(tmp_path)
    config = {"added_tokens_decoder": {"1": {"content": "<s>", "special": True}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert Vocabulary.from_pretrained(tmp_path) == Vocabulary.from_sentencepiece(MODEL)
