"""Laws of vocabularies, wherever they come from; wrong arguments of their constructors."""

from __future__ import annotations

import copy
import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formalm import ArgumentError, Vocabulary, VocabularyError
from formalm.models.canary import WEIGHTS

TOKENIZER = (WEIGHTS / "tokenizer.json").read_bytes()


def spell(text: str) -> list[int]:
    return [ord(character) - ord("a") for character in text]


def tiktoken() -> Vocabulary:
    package = pytest.importorskip("tiktoken")
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"ab": 300}
    special = {"<|endoftext|>": 310, "<|x|>": 305}
    return Vocabulary.from_tokenizer(
        package.Encoding("small", pat_str=r"\w+|\W", mergeable_ranks=ranks, special_tokens=special)
    )


def tokenizers() -> Vocabulary:
    package = pytest.importorskip("tokenizers")
    return Vocabulary.from_tokenizer(package.Tokenizer.from_str(TOKENIZER.decode()), 0)


def transformers() -> Vocabulary:
    package = pytest.importorskip("transformers")
    backend = pytest.importorskip("tokenizers").Tokenizer.from_str(TOKENIZER.decode())
    return Vocabulary.from_tokenizer(
        package.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|endoftext|>")
    )


MAKERS: dict[str, Callable[[], Vocabulary]] = {
    "tokens": lambda: Vocabulary.from_tokens([b"a", b"b", None], 2),
    "a function": lambda: Vocabulary.from_tokens([b"a", b"b", None], [2], encode=spell),
    "tokenizer.json": lambda: Vocabulary.from_tokenizer_json(TOKENIZER, "<|endoftext|>"),
    "tiktoken": tiktoken,
    "tokenizers": tokenizers,
    "transformers": transformers,
}


@pytest.mark.parametrize("name", MAKERS)
def test_copies_are_the_same(name: str, tmp_path: Path) -> None:
    vocabulary, other = MAKERS[name](), MAKERS[name]()
    copies = [other, copy.copy(vocabulary), copy.deepcopy(vocabulary)]
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        copies.append(pickle.loads(pickle.dumps(vocabulary, protocol)))  # noqa: S301
    if name == "a function":
        with pytest.raises(VocabularyError, match="function"):
            vocabulary.save(tmp_path / "saved")
        assert not (tmp_path / "saved").exists()
    else:
        vocabulary.save(tmp_path / "saved")
        copies.append(Vocabulary.load(tmp_path / "saved"))
    for each in copies:
        assert each == vocabulary
        assert hash(each) == hash(vocabulary)
        assert each.tokens() == vocabulary.tokens()
        assert each.end_token_ids == vocabulary.end_token_ids
        assert each.end_token_source == vocabulary.end_token_source
        assert each.special_tokens == vocabulary.special_tokens
        assert each.notes == vocabulary.notes
        assert each.can_encode == vocabulary.can_encode
        assert each.can_chat == vocabulary.can_chat
        if each.can_encode:
            assert each.encode("abab") == vocabulary.encode("abab")
    assert vocabulary != Vocabulary.from_tokens([b"z"])
    assert vocabulary != "another kind"
    vocabulary.save(tmp_path / "bare", tokenizer=False)
    bare = Vocabulary.load(tmp_path / "bare")
    assert bare == vocabulary
    assert not bare.can_encode
    if vocabulary.can_encode:
        with pytest.raises(VocabularyError, match="saved without"):
            bare.encode("a")


def test_end_tokens_of_tokenizer_objects() -> None:
    assert tiktoken().end_token_ids == (310,)
    assert tiktoken().special_tokens == {"<|endoftext|>": 310, "<|x|>": 305}
    assert any("no token has" in note for note in tiktoken().notes)
    assert tiktoken().encode("ab<|x|>") == [300, *b"<|x|>"]
    ends = transformers()
    assert ends.end_token_ids == (0,)
    assert ends.end_token_source.endswith("eos_token_id")


def test_version_1_is_still_read(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tokenizer_json(TOKENIZER, "<|endoftext|>")
    prepared, packed = vocabulary.core.save(), gzip.compress(TOKENIZER)
    header = {"format": "formalm-vocabulary", "version": 1}
    path = tmp_path / "old"
    for tokenizer in (packed, b""):
        sizes = {"prepared": len(prepared), "tokenizer": len(tokenizer)}
        path.write_bytes(json.dumps({**header, **sizes}).encode() + b"\n" + prepared + tokenizer)
        loaded = Vocabulary.load(path)
        assert loaded == vocabulary
        assert loaded.can_encode == bool(tokenizer)


def test_every_change_of_a_saved_file_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "saved"
    vocabulary = Vocabulary.from_tokens([b"a", b"bc", None], 2)
    vocabulary.save(path)
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at])
        with pytest.raises(VocabularyError):
            Vocabulary.load(path)
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x10]) + data[at + 1 :])
        try:
            loaded = Vocabulary.load(path)
        except VocabularyError:
            continue
        # A gzip header has bytes that say nothing, and a key of the first line may change its name.
        assert loaded == vocabulary


def test_paths_that_cannot_be_written(tmp_path: Path) -> None:
    vocabulary = Vocabulary.from_tokens([b"a"])
    for path in (tmp_path / "no" / "folder" / "x", tmp_path, "a\0b"):
        with pytest.raises(VocabularyError, match="cannot write"):
            vocabulary.save(path)
        with pytest.raises(VocabularyError, match="cannot read"):
            Vocabulary.load(path)
    wrong: Any = 5
    with pytest.raises(ArgumentError):
        vocabulary.save(wrong)
    with pytest.raises(ArgumentError):
        Vocabulary.load(wrong)


@pytest.mark.parametrize(
    "ids",
    ["a", "", b"a", b"", 5, None, [True], ["a"], [1.5], [-1], [9], [None], [10**30], {"a": 1}],
)
def test_wrong_ids_to_decode(ids: Any) -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"b"])
    for call in (vocabulary.decode, vocabulary.decode_text):
        with pytest.raises(ArgumentError):
            call(ids)


@pytest.mark.parametrize("token_id", ["a", True, False, None, 1.5, -1, 2, 10**30, b"a", [1]])
def test_wrong_ids_of_a_token(token_id: Any) -> None:
    with pytest.raises(ArgumentError):
        Vocabulary.from_tokens([b"a", b"b"]).token_bytes(token_id)


WRONG_ENDS: list[Any] = [[True], True, 1.5, object(), [None], [10**6], -1, ["zz zz"], [[1]], b"a"]


@pytest.mark.parametrize("ends", [*WRONG_ENDS, {"a": 1}])
def test_wrong_end_tokens_are_refused(ends: Any) -> None:
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokens([b"a", b"b", None], ends)
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokenizer_json(TOKENIZER, ends)


def test_numpy_counts_too() -> None:
    import numpy as np

    vocabulary = Vocabulary.from_tokens([b"a", b"b", None], np.array([2]))
    assert vocabulary.end_token_ids == (2,)
    assert vocabulary.decode(np.array([0, 1])) == b"ab"
    assert vocabulary.token_bytes(np.int64(1)) == b"b"


@pytest.mark.parametrize(
    "thing", [None, 5, "gpt2", b"{}", {"model": {}}, Path("x"), object(), [b"a"], Vocabulary, len]
)
def test_objects_that_are_not_tokenizers_are_refused(thing: Any) -> None:
    with pytest.raises(ArgumentError):
        Vocabulary.from_tokenizer(thing)


def test_parts_and_slow_tokenizers_are_refused() -> None:
    package = pytest.importorskip("tokenizers")
    with pytest.raises(ArgumentError, match="part"):
        Vocabulary.from_tokenizer(package.models.BPE())
    words = package.Tokenizer(package.models.WordPiece({"a": 0, "##b": 1, "[UNK]": 2}))
    with pytest.raises(VocabularyError, match="does not join words"):
        Vocabulary.from_tokenizer(words)
    hub = pytest.importorskip("transformers")
    slow = hub.ByT5Tokenizer()
    with pytest.raises(VocabularyError, match="ByT5Tokenizer"):
        Vocabulary.from_tokenizer(slow)
    # A Unigram tokenizer is read.
    assert len(Vocabulary.from_tokenizer(hub.T5Tokenizer())) == len(hub.T5Tokenizer())
    with pytest.raises(ArgumentError, match="got GPT2Config"):
        Vocabulary.from_tokenizer(hub.GPT2Config())


def test_wrong_sources() -> None:
    wrong: Any
    for wrong in (5, None, object()):
        for read in (
            Vocabulary.from_sentencepiece,
            Vocabulary.from_gguf,
            Vocabulary.from_pretrained,
        ):
            with pytest.raises(ArgumentError):
                read(wrong)
        with pytest.raises(VocabularyError):
            Vocabulary.from_tiktoken(wrong)
    for path in ("/nowhere/x", "a\0b"):
        for read in (
            Vocabulary.from_sentencepiece,
            Vocabulary.from_gguf,
            Vocabulary.from_pretrained,
        ):
            with pytest.raises(VocabularyError):
                read(path)
    wrong = 5
    with pytest.raises(ArgumentError):
        Vocabulary.from_tokens([b"a"], encode=wrong)
    with pytest.raises(ArgumentError):
        Vocabulary.from_tokens([b"a"], encode=lambda text: None).encode("a")  # type: ignore[arg-type,return-value]
    with pytest.raises(VocabularyError):
        Vocabulary.from_tokenizer_json({"model": object()})
