"""SentencePiece vocabularies, and GGUF files made of them, against the sentencepiece package."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

from formalm import Vocabulary

SENTENCES = ["the cat sat on the mat, the hat", "hello world é ü 12345", "über-naïve cats sat"] * 60
KINDS: dict[str, dict[str, Any]] = {
    "bpe": {"model_type": "bpe", "byte_fallback": True, "vocab_size": 320},
    "bpe with user-defined": {
        "model_type": "bpe",
        "byte_fallback": True,
        "vocab_size": 330,
        "user_defined_symbols": ["<tool>", "▁▁", "<0x41>x"],
        "control_symbols": ["<turn>"],
    },
    "bpe, ends elsewhere": {"model_type": "bpe", "vocab_size": 70, "eos_id": 5, "eos_piece": "<e>"},
    "bpe without ends": {"model_type": "bpe", "vocab_size": 70, "eos_id": -1, "bos_id": -1},
    "unigram": {"model_type": "unigram", "vocab_size": 60},
    "unigram with bytes": {"model_type": "unigram", "byte_fallback": True, "vocab_size": 310},
    "spaces as they are": {
        "model_type": "unigram",
        "vocab_size": 60,
        "add_dummy_prefix": False,
        "remove_extra_whitespaces": False,
        "normalization_rule_name": "identity",
    },
    "spaces behind": {
        "model_type": "unigram",
        "vocab_size": 60,
        "treat_whitespace_as_suffix": True,
    },
    "characters": {"model_type": "char", "vocab_size": 30},
    "words": {"model_type": "word", "vocab_size": 20},
}


def trained(kind: str) -> bytes:
    sentencepiece = pytest.importorskip("sentencepiece")
    out = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_writer=out,
        hard_vocab_limit=False,
        minloglevel=2,
        **KINDS[kind],
    )
    return out.getvalue()


@pytest.mark.parametrize("kind", KINDS)
def test_sentencepiece(kind: str, tmp_path: Path) -> None:
    data = trained(kind)
    import sentencepiece

    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    (tmp_path / "tokenizer.model").write_bytes(data)
    made = [
        Vocabulary.from_tokenizer(processor),
        Vocabulary.from_sentencepiece(data),
        Vocabulary.from_sentencepiece(tmp_path / "tokenizer.model"),
        Vocabulary.from_pretrained(tmp_path),
    ]
    assert len(set(made)) == 1
    vocabulary = made[0]
    assert len(vocabulary) == processor.get_piece_size()
    assert list(vocabulary.end_token_ids) == [end for end in [processor.eos_id()] if end >= 0]
    before = next(
        at
        for at in range(len(vocabulary))
        if (token := vocabulary.token_bytes(at))
        and not processor.is_byte(at)
        and token.strip().isalpha()
    )
    start, then = processor.decode([before]), vocabulary.decode_text([before])
    for token_id, token in enumerate(vocabulary.tokens()):
        # Between two others: what is dropped at the ends of a text is no business of the token's.
        text = processor.decode([before, token_id, before])
        if token is None:
            assert processor.is_control(token_id) or processor.is_unknown(token_id)
            assert text == start + ("" if processor.is_control(token_id) else " ⁇ ") + then
        else:
            assert text == start + token.decode(errors="replace") + then, token_id
    for text in ["the cat  sat", " hello é\n🙂", "<turn></s><tool><0x41>x", ""]:
        assert vocabulary.encode(text) == processor.encode(text)


def test_bytes_of_sentencepiece_join_to_characters() -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    data = trained("bpe")
    vocabulary = Vocabulary.from_sentencepiece(data)
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    ids = processor.encode("a🙂b你c")
    assert processor.decode(ids) == "a🙂b你c"
    assert vocabulary.decode(ids).decode() == " a🙂b你c"


def test_unused_pieces_are_never_allowed() -> None:
    """The package would print them; whoever marked them unused does not want them."""
    sentencepiece = pytest.importorskip("sentencepiece")
    data = trained("unigram")
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    piece = processor.id_to_piece(10).encode()
    # A piece is text, score and type; the type is left out where it is the normal one.
    at = data.index(b"\x0a" + bytes([len(piece)]) + piece + b"\x15") - 1
    length = data[at]
    data = (
        data[:at]
        + bytes([length + 2])
        + data[at + 1 : at + 1 + length]
        + b"\x18\x05"
        + data[at + 1 + length :]
    )
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    assert [n for n in range(processor.get_piece_size()) if processor.is_unused(n)] == [10]
    vocabulary = Vocabulary.from_tokenizer(processor)
    assert vocabulary.token_bytes(10) is None
    assert any("unused, never allowed: 10" in note for note in vocabulary.notes)


def test_gguf_of_pieces(tmp_path: Path, write_gguf: Any) -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    data = trained("bpe with user-defined")
    processor = sentencepiece.SentencePieceProcessor(model_proto=data)
    size = processor.get_piece_size()

    def kind(at: int) -> int:
        if processor.is_unknown(at):
            return 2
        if processor.is_control(at):
            return 3
        return 6 if processor.is_byte(at) else 1

    def fill(writer: Any) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list([*map(processor.id_to_piece, range(size)), "[PAD]"])
        writer.add_token_scores([*map(processor.get_score, range(size)), 0.0])
        writer.add_token_types([*map(kind, range(size)), 5])
        writer.add_bos_token_id(1)
        writer.add_eos_token_id(2)
        writer.add_eot_token_id(processor.piece_to_id("<turn>"))
        writer.add_chat_template("{{ bos_token }}{{ messages[0].content }}")

    path = tmp_path / "model.gguf"
    write_gguf(path, fill)
    vocabulary = Vocabulary.from_gguf(path)
    own = Vocabulary.from_sentencepiece(data)
    assert vocabulary.tokens() == [*own.tokens(), None]
    assert vocabulary.end_token_ids == (2, processor.piece_to_id("<turn>"))
    assert vocabulary.end_token_source == "eos_token_id, eot_token_id"
    assert not vocabulary.can_encode
    assert not vocabulary.can_chat
    assert any("cannot be encoded" in note for note in vocabulary.notes)
    assert any("unused" in note for note in vocabulary.notes)
