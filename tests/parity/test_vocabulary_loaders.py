"""Vocabularies of every source against the library that the source belongs to, for all ids."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from formalm import Vocabulary

FILES = Path(__file__).parents[3] / "shared" / "tokenizers"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in FILES.glob("*.json.gz"))
QUICK = {"gpt2-50k", "mistral-v3-32k"}
TEXTS = [
    "The cat sat on the mat.",
    "  def f(x):\n\treturn {'a': 1234567}  # naïve – 你好 🙂\r\n\r\n",
    "it's we'LL don't",
    "a<|endoftext|>b</s><|eot_id|>",
    "",
]


def params(names: list[str]) -> list[Any]:
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


def tokenizer_json(name: str) -> str:
    path = FILES / f"{name}.json.gz"
    if not path.exists():
        pytest.skip("no tokenizer files in ../shared/tokenizers")
    return gzip.decompress(path.read_bytes()).decode()


@pytest.mark.parametrize("name", params(NAMES))
def test_transformers(name: str, tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    path = tmp_path / "tokenizer.json"
    path.write_text(tokenizer_json(name), encoding="utf-8")
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=str(path))
    vocabulary = Vocabulary.from_tokenizer(tokenizer)
    assert vocabulary == Vocabulary.from_tokenizer_json(path)
    assert len(vocabulary) == max(tokenizer.get_vocab().values()) + 1
    assert vocabulary.end_token_source == "not known"
    tokens = vocabulary.tokens()
    # Behind "aa", so that a decoder of SentencePiece pieces drops no space of the token's own; the
    # last of the tokens that spell "a" is a piece and not the byte.
    before = [max(at for at, token in enumerate(tokens) if token == b"a")] * 2
    decoded = tokenizer.batch_decode(
        [[*before, token_id] for token_id in range(len(tokens))],
        skip_special_tokens=False,
        clean_up_tokenization_spaces=False,
    )
    added = tokenizer.added_tokens_decoder
    for token_id, (token, text) in enumerate(zip(tokens, decoded, strict=True)):
        if token is not None:
            assert text == "aa" + token.decode(errors="replace"), token_id
        else:
            unknown = tokenizer.backend_tokenizer.model.unk_token
            piece = tokenizer.convert_ids_to_tokens(token_id)
            assert piece in (None, unknown) or added[token_id].special, token_id
    for text in TEXTS:
        own = tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True)
        assert vocabulary.encode(text) == own
        assert vocabulary.decode(own).decode() in (text, f" {text}")


def test_tokenizers() -> None:
    tokenizers = pytest.importorskip("tokenizers")
    text = tokenizer_json("gpt2-50k")
    tokenizer = tokenizers.Tokenizer.from_str(text)
    vocabulary = Vocabulary.from_tokenizer(tokenizer, end_token_ids="<|endoftext|>")
    assert vocabulary == Vocabulary.from_tokenizer_json(text, end_token_ids=50256)
    assert vocabulary.end_token_source == "given"


def byte_level() -> dict[str, int]:
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {chr(byte): byte for byte in plain} | {chr(256 + at): b for at, b in enumerate(others)}


@pytest.mark.parametrize("name", params(["gpt2-50k", "cl100k", "o200k"]))
def test_tiktoken(name: str, tmp_path: Path) -> None:
    tiktoken = pytest.importorskip("tiktoken")
    file = json.loads(tokenizer_json(name))
    added = {token["content"]: token["id"] for token in file["added_tokens"]}
    table = byte_level()
    ranks = {
        bytes(table[character] for character in piece): rank
        for piece, rank in file["model"]["vocab"].items()
        if piece not in added
    }
    pattern = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    if name != "gpt2-50k":
        pattern = file["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"]
    special = {name: at for name, at in added.items() if not name.startswith("<|unused")}
    encoding = tiktoken.Encoding(
        name, pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
    )
    vocabulary = Vocabulary.from_tokenizer(encoding)
    assert len(vocabulary) == encoding.n_vocab
    for token_id, token in enumerate(vocabulary.tokens()):
        if token is None:
            known = token_id in special.values()
            assert known == encoding.is_special_token(token_id)
            if not known:
                with pytest.raises(KeyError):
                    encoding.decode_single_token_bytes(token_id)
        else:
            assert token == encoding.decode_single_token_bytes(token_id)
    assert vocabulary.special_tokens == special
    assert vocabulary.end_token_ids == (special["<|endoftext|>"],)
    assert vocabulary.tokens() == Vocabulary.from_tokenizer_json(json.dumps(file)).tokens()
    vocabulary.save(tmp_path / "saved")
    loaded = Vocabulary.load(tmp_path / "saved")
    again = pickle.loads(pickle.dumps(vocabulary))  # noqa: S301
    for text in TEXTS:
        assert vocabulary.encode(text) == encoding.encode_ordinary(text)
        assert loaded.encode(text) == again.encode(text) == vocabulary.encode(text)


@pytest.mark.parametrize(
    ("name", "pre"),
    [("gpt2-50k", "gpt-2"), pytest.param("llama3-128k", "llama-bpe", marks=pytest.mark.slow)],
)
def test_gguf_of_bytes(name: str, pre: str, tmp_path: Path, write_gguf: Any) -> None:
    from tokenizers import Tokenizer

    text = tokenizer_json(name)
    file = json.loads(text)
    ids = file["model"]["vocab"]
    added = {token["content"]: token["id"] for token in file["added_tokens"]}
    pieces = sorted({**ids, **added}, key={**ids, **added}.__getitem__)
    kinds = [3 if piece in added else 1 for piece in pieces]
    ends = [at for piece, at in added.items() if piece in ("<|endoftext|>", "<|eot_id|>")]

    def fill(writer: Any) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(pieces)
        writer.add_token_types(kinds)
        writer.add_token_merges([" ".join(pair) for pair in file["model"]["merges"]])
        writer.add_eos_token_id(ends[0])
        writer.add_add_bos_token(False)

    write_gguf(tmp_path / "model.gguf", fill)
    vocabulary = Vocabulary.from_gguf(tmp_path / "model.gguf")
    assert vocabulary == Vocabulary.from_tokenizer_json(text, end_token_ids=ends)
    assert vocabulary.end_token_source == "eos_token_id"
    tokenizer = Tokenizer.from_str(text)
    tokenizer.encode_special_tokens = True
    for each in TEXTS:
        assert vocabulary.encode(each) == tokenizer.encode(each, add_special_tokens=False).ids


def test_gguf_metadata_are_what_the_package_reads(tmp_path: Path, write_gguf: Any) -> None:
    gguf = pytest.importorskip("gguf")
    from formalm.vocabulary.gguf_header import read_metadata

    def fill(writer: Any) -> None:
        for name, value in [("u8", 200), ("u16", 60000), ("u32", 4_000_000_000), ("u64", 1 << 60)]:
            getattr(writer, f"add_uint{name[1:]}")(f"tokenizer.{name}", value)
        for name, value in [
            ("i8", -100),
            ("i16", -30000),
            ("i32", -(1 << 31)),
            ("i64", -(1 << 60)),
        ]:
            getattr(writer, f"add_int{name[1:]}")(f"tokenizer.{name}", value)
        writer.add_float32("tokenizer.f32", 0.5)
        writer.add_float64("tokenizer.f64", 0.1)
        writer.add_bool("tokenizer.bool", True)
        writer.add_string("tokenizer.text", "né\0🙂")
        writer.add_array("tokenizer.texts", ["a", "é", ""])
        writer.add_array("tokenizer.floats", [0.5, -1.5])
        writer.add_array("tokenizer.bools", [True, False])

    path = tmp_path / "model.gguf"
    write_gguf(path, fill)
    reader = gguf.GGUFReader(path)
    expected = {
        name: field.contents() for name, field in reader.fields.items() if name.startswith("tok")
    }
    assert len(expected) == 15
    assert read_metadata(path, "tokenizer.") == expected
