"""Readers of strangers' files: GGUF, SentencePiece, folders. Only typed errors, bounded memory."""

from __future__ import annotations

import contextlib
import json
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formalm import FormalmError, LimitError, Vocabulary, VocabularyError
from formalm.models.canary import WEIGHTS
from formalm.vocabulary import gguf_header

# -- SentencePiece: a model written by hand ----------------------------------------------------


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


# -- GGUF: a header written by hand -------------------------------------------------------------


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
        {"tokenizer.ggml.pre": "qwen2"},
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
    with pytest.raises(VocabularyError, match="no tokenizer"):
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
        ({"tokenizer.ggml.tokens": [*"ab a€", "x", "y", "z"], "tokenizer.ggml.token_type": [1] * 8},
         "stands for no byte"),
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
def test_headers_that_are_none(
    data: bytes, match: str, gguf: Callable[[bytes], Vocabulary]
) -> None:
    with pytest.raises(VocabularyError, match=match):
        gguf(data)


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


# -- Folders --------------------------------------------------------------------------------------


def folder(path: Path, **files: Any) -> Path:
    """A folder with the embedded model's tokenizer and other files."""
    path.mkdir(exist_ok=True)
    (path / "tokenizer.json").write_bytes((WEIGHTS / "tokenizer.json").read_bytes())
    for name, content in files.items():
        data = content if isinstance(content, str) else json.dumps(content)
        (path / f"{name}.json").write_text(data, encoding="utf-8")
    return path


END = "<|endoftext|>"


@pytest.mark.parametrize(
    ("files", "ends", "source"),
    [
        ({}, (), "not known"),
        ({"config": {"eos_token_id": 7}}, (7,), "config.json"),
        ({"config": {"text_config": {"eos_token_id": [7, 8]}}}, (7, 8), "config.json"),
        ({"special_tokens_map": {"eos_token": END}}, (0,), "tokenizer_config.json"),
        (
            {"tokenizer_config": {"eos_token": {"content": END}}, "config": {"eos_token_id": 7}},
            (0,),
            "tokenizer_config.json",
        ),
        (
            {"generation_config": {"eos_token_id": [3, 9]}, "tokenizer_config": {"eos_token": END}},
            (3, 9),
            "generation_config.json",
        ),
        ({"generation_config": {}, "config": {"eos_token_id": 0}}, (0,), "config.json"),
    ],
)  # fmt: skip
def test_where_the_ends_come_from(
    files: dict[str, Any], ends: tuple[int, ...], source: str, tmp_path: Path
) -> None:
    path = folder(tmp_path / "model", **files)
    vocabulary = Vocabulary.from_pretrained(path)
    assert vocabulary.end_token_ids == ends
    assert vocabulary.end_token_source == source
    given_ = Vocabulary.from_pretrained(str(path), end_token_ids=[5, END])
    assert given_.end_token_ids == (0, 5)
    assert given_.end_token_source == "given"
    assert Vocabulary.from_pretrained(path, end_token_ids=()).end_token_ids == ()
    vocabulary.save(tmp_path / "saved")
    assert Vocabulary.load(tmp_path / "saved").end_token_source == source


def test_the_configuration_makes_tokens_special(tmp_path: Path) -> None:
    plain = Vocabulary.from_pretrained(folder(tmp_path / "plain"))
    words = [(at, token) for at, token in enumerate(plain.tokens()) if token and token.isalpha()]
    (first, one), (second, two) = words[-2:]
    config = {"pad_token": one.decode(), "extra_special_tokens": [two.decode(), "<nowhere>"]}
    marked = Vocabulary.from_pretrained(folder(tmp_path / "marked", tokenizer_config=config))
    assert marked.token_bytes(first) is marked.token_bytes(second) is None
    assert marked.special_tokens[one.decode()] == first
    assert one not in marked.tokens()
    assert plain.token_bytes(first) == one


@pytest.mark.parametrize(
    "files",
    [
        {"tokenizer_config": "{"},
        {"generation_config": []},
        {"tokenizer_config": {"added_tokens_decoder": {"99999": {"content": "<new>"}}}},
        {"tokenizer_config": {"added_tokens_decoder": {"0": "x"}}},
        {"tokenizer_config": {"chat_template": [{"name": "a"}]}},
        {"generation_config": {"eos_token_id": 10**6}},
        {"generation_config": {"eos_token_id": True}},
        {"generation_config": {"eos_token_id": {"a": 1}}},
        {"tokenizer_config": {"eos_token": "<nothing>"}},
        {"tokenizer": "[]"},
    ],
)
def test_folders_that_contradict_themselves(files: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(VocabularyError):
        Vocabulary.from_pretrained(folder(tmp_path / "model", **files))


def test_folders_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="nothing is downloaded"):
        Vocabulary.from_pretrained("gpt2")
    with pytest.raises(VocabularyError, match="neither"):
        Vocabulary.from_pretrained(tmp_path)
    (tmp_path / "tekken.json").write_text("{}")
    with pytest.raises(VocabularyError, match="tekken"):
        Vocabulary.from_pretrained(tmp_path)
    (tmp_path / "tokenizer.model").write_bytes(MODEL)
    config = {"added_tokens_decoder": {"4": {"content": "<other>", "special": True}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    with pytest.raises(VocabularyError, match="another token 4"):
        Vocabulary.from_pretrained(tmp_path)
    config = {"added_tokens_decoder": {"1": {"content": "<s>", "special": True}}}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    assert Vocabulary.from_pretrained(tmp_path) == Vocabulary.from_sentencepiece(MODEL)
