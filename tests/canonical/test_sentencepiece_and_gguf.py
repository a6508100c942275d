"""Canonical tokens of SentencePiece models and GGUF files, against their libraries."""

from __future__ import annotations

import io
import json
import random
import struct
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tokenizers import Tokenizer

from formalm import Constraint, Regex, Vocabulary, VocabularyError
from tests.canonical.small_tokenizers import LANGUAGES, TEXT, trained
from tests.canonical.test_trained_tokenizers import PIECES
from tests.parity.canonical_checks import adversarial, check, check_texts
from tests.unit.test_vocabulary_sentencepiece import field, varint


def model(**options: Any) -> bytes:
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter((TEXT * 5).replace("\n", " ").split(". ")),
        model_writer=out,
        hard_vocab_limit=False,
        minloglevel=2,
        **{
            "model_type": "bpe",
            "vocab_size": 420,
            "byte_fallback": True,
            "normalization_rule_name": "identity",
            "remove_extra_whitespaces": False,
            "character_coverage": 0.99,
            **options,
        },
    )
    return out.getvalue()


MODELS: dict[str, dict[str, Any]] = {
    "bytes": {},
    "no prefix": {"add_dummy_prefix": False},
    "no bytes": {"byte_fallback": False, "vocab_size": 160},
    "user-defined": {"user_defined_symbols": ["<tool>", "▁▁", "the▁", "ab", "abc", "<0x41>x", "1"]},
    "user-defined, no prefix": {
        "user_defined_symbols": ["\n", "\n\n", "▁▁▁", "t", "▁the"],
        "add_dummy_prefix": False,
        "control_symbols": ["<turn>"],
    },
}


@pytest.mark.parametrize("name", MODELS)
def test_sentencepiece_models(name: str) -> None:
    data = model(**MODELS[name])
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    vocabulary = Vocabulary.from_sentencepiece(data)
    texts = adversarial("abthe \n1", 2000)
    assert check_texts(processor.encode, vocabulary, texts) > 1000
    languages = [r"( |a|b|t|the){0,4}", r"(é|e|日|中|\n| ){0,3}", r" {0,20}x?", r"[abc]{0,4}"]
    for pattern in (*languages, *LANGUAGES):
        check(processor.encode, vocabulary, pattern)


def by_hand(seed: int, *, prefix: bool) -> bytes:
    """Pieces with random scores, many of them equal."""
    rng = random.Random(seed)
    texts = {"".join(rng.choices("ab▁é", k=rng.randrange(2, 6))) for _ in range(40)}
    texts |= {text[:at] for text in list(texts)[:20] for at in range(2, len(text))}
    pieces = [("<unk>", 2, 0.0), ("<s>", 3, 0.0), ("</s>", 3, 0.0)]
    pieces += [(f"<0x{byte:02X}>", 6, 0.0) for byte in range(256)]
    score = rng.choice([lambda: -float(rng.randrange(5)), lambda: -1e9, lambda: -rng.random()])
    pieces += [(text, 1, score()) for text in rng.sample(sorted(texts), len(texts))]
    pieces += [(letter, 1, -100.0) for letter in "ab▁é"]
    if seed % 2:
        pieces.append(("ba", 4, 0.0) if "ba" not in texts else ("b▁ab▁", 4, 0.0))
    data = b""
    for text, kind, value in {piece[0]: piece for piece in pieces}.values():
        fields = field(1, text.encode()) + varint(2 << 3 | 5) + struct.pack("<f", value)
        data += field(1, fields + field(3, kind))
    normalizer = field(1, b"identity") + field(3, int(prefix)) + field(4, 0)
    return data + field(2, field(3, 2) + field(35, 1)) + field(3, normalizer)


@pytest.mark.parametrize("prefix", [False, True])
@pytest.mark.parametrize("seed", range(12))
def test_scores_that_are_equal_or_in_a_strange_order(seed: int, prefix: bool) -> None:
    data = by_hand(seed, prefix=prefix)
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    vocabulary = Vocabulary.from_sentencepiece(data)
    texts = ["".join(text) for length in range(1, 6) for text in product("ab é", repeat=length)]
    texts += [text * 3 for text in texts[-300:]]
    assert check_texts(processor.encode, vocabulary, texts) == len(texts)
    for pattern in (r"[ab]{0,6}", r"[ab é]{0,4}", r"(é|\n|a| ){0,3}"):
        check(processor.encode, vocabulary, pattern)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model_type": "word", "vocab_size": 30, "byte_fallback": False}, "whole words"),
        ({"model_type": "char", "vocab_size": 60, "byte_fallback": False}, "single characters"),
        ({"treat_whitespace_as_suffix": True}, "spaces after words"),
    ],
)
def test_models_that_are_refused(options: dict[str, Any], message: str) -> None:
    vocabulary = Vocabulary.from_sentencepiece(model(**options))
    with pytest.raises(VocabularyError, match=message):
        Constraint(Regex("a"), vocabulary, tokenization="canonical")


@pytest.mark.parametrize("pre", ["gpt-2", "llama-bpe", "dbrx", "whitespace"])
def test_gguf(pre: str, tmp_path: Path, write_gguf: Any) -> None:
    tokenizer = trained(PIECES["gpt2" if pre == "gpt-2" else "cl100k isolated False"])
    file = json.loads(tokenizer.to_str())
    file["model"]["ignore_merges"] = pre == "llama-bpe"
    ids = file["model"]["vocab"]

    def fill(writer: Any) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre(pre)
        writer.add_token_list(sorted(ids, key=ids.__getitem__))
        writer.add_token_types([1] * len(ids))
        writer.add_token_merges([" ".join(pair) for pair in file["model"]["merges"]])

    write_gguf(tmp_path / "model.gguf", fill)
    vocabulary = Vocabulary.from_gguf(tmp_path / "model.gguf")
    if pre == "whitespace":
        with pytest.raises(VocabularyError, match="does not know the pre-tokenizer"):
            vocabulary.encoder()
        return
    tokenizer = Tokenizer.from_str(json.dumps(file))

    def encode(text: str) -> list[int]:
        ids: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
        return ids

    for pattern in LANGUAGES[:6]:
        check(encode, vocabulary, pattern)
