"""Model folders: where ends come from, which tokens are special, and what is refused."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest

from formalm import Vocabulary, VocabularyError
from formalm.models.canary import WEIGHTS


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
def test_sources_of_end_tokens(
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
        {"tokenizer_config": {"chat_template": 5}},
        {"tokenizer_config": {"chat_template": {"default": "a"}}},
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


def test_invalid_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="folder must be the path of an existing folder"):
        Vocabulary.from_pretrained("gpt2")
    with pytest.raises(VocabularyError, match="neither"):
        Vocabulary.from_pretrained(tmp_path)
    (tmp_path / "vocab.txt").write_text("a")
    with pytest.raises(VocabularyError, match=r"vocab\.txt alone"):
        Vocabulary.from_pretrained(tmp_path)


def tekken(**changes: Any) -> dict[str, Any]:
    """Three special tokens, every byte, and one more token."""
    tokens = [bytes([byte]) for byte in range(256)] + [b"ab", b"beyond the size"]
    vocab = [
        {"rank": rank, "token_bytes": b64encode(token).decode()}
        for rank, token in enumerate(tokens)
    ]
    config = {"pattern": r"\w+|\W", "default_vocab_size": 261, "default_num_special_tokens": 4}
    return {"config": config, "vocab": vocab, **changes}


def test_a_folder_with_tekken(tmp_path: Path) -> None:
    def read(content: Any) -> Vocabulary:
        (tmp_path / "tekken.json").write_text(json.dumps(content))
        return Vocabulary.from_pretrained(tmp_path)

    vocabulary = read(tekken())
    assert vocabulary.tokens() == [None] * 4 + [bytes([byte]) for byte in range(256)] + [b"ab"]
    assert vocabulary.end_token_ids == (2,)
    assert vocabulary.end_token_source == "tekken.json"
    special = [{"rank": 0, "token_str": "<unk>"}, {"rank": 3, "token_str": "</s>"}]
    assert read(tekken(special_tokens=special)).end_token_ids == (3,)
    for wrong in (
        {},
        [],
        tekken(vocab=[]),
        tekken(config={}),
        tekken(special_tokens=[{"rank": 9, "token_str": "x"}]),
        tekken(special_tokens=[{}]),
        tekken(vocab=[{"rank": 0, "token_bytes": "%"}] * 300),
    ):
        with pytest.raises(VocabularyError):
            read(wrong)
    pytest.importorskip("tiktoken")
    assert vocabulary.encode("ab </s>") == [260, *(byte + 4 for byte in b" </s>")]
    vocabulary.save(tmp_path / "saved")
    assert Vocabulary.load(tmp_path / "saved").encode("ab b") == vocabulary.encode("ab b")
