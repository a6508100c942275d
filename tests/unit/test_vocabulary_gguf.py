"""GGUF headers written by hand: bytes, ends, and only typed errors in bounded memory."""

from __future__ import annotations

import contextlib
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formalm import FormalmError, LimitError, Vocabulary, VocabularyError
from formalm.vocabulary import gguf_header


def text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key: str, value: Any) -> bytes:
    if isinstance(value, str):
        return text(key) + struct.pack("<I", 8) + text(value)
    if isinstance(value, int):
        return text(key) + struct.pack("<II", 4, value)
    kind = 8 if isinstance(value[0], str) else 5
    items = b"".join(text(item) if kind == 8 else struct.pack("<i", item) for item in value)
    return text(key) + struct.pack("<IIQ", 9, kind, len(value)) + items


def header(entries: dict[str, Any], version: int = 3) -> bytes:
    body = b"".join(entry(key, value) for key, value in entries.items())
    return b"GGUF" + struct.pack("<IQQ", version, 0, len(entries)) + body


BYTE_LEVEL = {
    "general.name": "small",
    "general.tags": ["x", "y"],
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "gpt-2",
    "tokenizer.ggml.tokens": ["a", "b", "ab", "Ġa", "é", "<end>", "<turn>", "Ġ", "[PAD]"],
    "tokenizer.ggml.token_type": [1, 1, 1, 1, 4, 3, 3, 1, 5],
    "tokenizer.ggml.merges": ["a b", "Ġ a"],
    "tokenizer.ggml.eos_token_id": 5,
    "tokenizer.ggml.eot_token_id": 6,
    "tokenizer.chat_template": "{{ messages[0].content }}<end>",
}


@pytest.fixture
def gguf(tmp_path: Path) -> Callable[[bytes], Vocabulary]:
    path = tmp_path / "model.gguf"

    def read(data: bytes) -> Vocabulary:
        path.write_bytes(data)
        return Vocabulary.from_gguf(path)

    return read


def test_a_gguf_by_hand(gguf: Callable[[bytes], Vocabulary]) -> None:
    vocabulary = gguf(header(BYTE_LEVEL) + b"tensors are not read")
    expected = [b"a", b"b", b"ab", b" a", "é".encode(), None, None, b" ", None]
    assert vocabulary.tokens() == expected
    assert vocabulary.end_token_ids == (5, 6)
    assert vocabulary.end_token_source == "eos_token_id, eot_token_id"
    assert vocabulary.special_tokens == {"<end>": 5, "<turn>": 6}
    assert vocabulary.encode("ab a") == [2, 3]
    assert gguf(header(BYTE_LEVEL, 2)) == vocabulary
    assert vocabulary.can_chat


def test_a_chat_from_gguf(gguf: Callable[[bytes], Vocabulary]) -> None:
    pytest.importorskip("jinja2")
    chat = [{"role": "user", "content": "ab"}]
    assert gguf(header(BYTE_LEVEL)).encode_chat(chat) == [2, 5]


@pytest.mark.parametrize(
    "change",
    [
        {"tokenizer.ggml.pre": "whitespace"},
        {"tokenizer.ggml.pre": None},
        {"tokenizer.ggml.merges": None},
        {"tokenizer.ggml.merges": ["a z"]},
        {"tokenizer.ggml.merges": ["a"]},
        {"tokenizer.ggml.tokens": [*["a"] * 8, "[PAD]"]},
    ],
)
def test_text_is_not_encoded_by_a_guess(
    change: dict[str, Any], gguf: Callable[[bytes], Vocabulary]
) -> None:
    entries = {key: value for key, value in {**BYTE_LEVEL, **change}.items() if value is not None}
    vocabulary = gguf(header(entries))
    assert not vocabulary.can_encode
    assert any(note.startswith("text cannot be encoded") for note in vocabulary.notes)
    with pytest.raises(VocabularyError, match="cannot encode text"):
        vocabulary.encode("a")
    with pytest.raises(VocabularyError, match=r"tokenizer\.json"):
        vocabulary.encode_chat([{"role": "user", "content": "a"}])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"tokenizer.ggml.model": "bert"}, "'bert'"),
        ({"tokenizer.ggml.model": None}, "no tokenizer"),
        ({"tokenizer.ggml.tokens": None}, "tokens"),
        ({"tokenizer.ggml.tokens": [1, 2]}, "tokens"),
        ({"tokenizer.ggml.token_type": [1]}, "token_type"),
        ({"tokenizer.ggml.token_type": [*[1] * 8, 9]}, "type 9"),
        ({"tokenizer.ggml.token_type": [3] * 9}, "no ordinary token"),
        ({"tokenizer.ggml.eos_token_id": 99}, "end token"),
        ({"tokenizer.ggml.eos_token_id": "5"}, "not a number"),
    ],
)  # fmt: skip
def test_contradictions(
    change: dict[str, Any], match: str, gguf: Callable[[bytes], Vocabulary]
) -> None:
    entries = {key: value for key, value in {**BYTE_LEVEL, **change}.items() if value is not None}
    with pytest.raises(VocabularyError, match=match):
        gguf(header(entries))


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "cut off"),
        (b"GGML" + bytes(20), "not a GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
        (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "cut off"),
        (header({"a": 1}) + b"", "no tokenizer"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 2) + entry("a", 1) * 2, "twice"),
        (
            b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<IIQ", 9, 9, 1),
            "arrays",
        ),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("a") + struct.pack("<II", 77, 1), "type 77"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1 << 40) + bytes(9), "text of"),
    ],
)
def test_invalid_headers_are_refused(
    data: bytes, match: str, gguf: Callable[[bytes], Vocabulary]
) -> None:
    with pytest.raises(VocabularyError, match=match):
        gguf(data)


def typed(read: Callable[[bytes], object], data: bytes) -> None:
    with contextlib.suppress(FormalmError):
        read(data)


def test_a_damaged_gguf_is_no_traceback(gguf: Callable[[bytes], Vocabulary]) -> None:
    data = header(BYTE_LEVEL)
    for at in range(len(data)):
        with pytest.raises(VocabularyError):
            gguf(data[:at])
        for flipped in (1, 128):
            typed(gguf, data[:at] + bytes([data[at] ^ flipped]) + data[at + 1 :])


def test_sizes_are_not_believed(gguf: Callable[[bytes], Vocabulary]) -> None:
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + text("tokenizer.x")
    tracemalloc.start()
    for count in (1 << 31, 1 << 62):
        for kind in range(13):
            for rest in (struct.pack("<IIQ", 9, kind, count), struct.pack("<IQ", 8, count)):
                with pytest.raises(VocabularyError):
                    gguf(head + rest + bytes(64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000


def test_metadata_have_a_limit(
    gguf: Callable[[bytes], Vocabulary], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_header, "MAX_METADATA_BYTES", 300)
    with pytest.raises(LimitError):
        gguf(header(BYTE_LEVEL))
