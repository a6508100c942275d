"""Vocabularies of SentencePiece models of type BPE, Unigram, word and character.

The model file is parsed here, so that token bytes need no other package; only encoding does. A
piece is its text with ``▁`` as a space; a byte piece such as ``<0x0A>`` is that byte. Control,
unknown and unused pieces have no bytes.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary.loaded_vocabulary import EndTokens, Parts, ended
from formalm.vocabulary.protobuf import BYTES, FIXED32, VARINT, fields
from formalm.vocabulary.tiktoken import shown
from formalm.vocabulary.tokenizer_libraries import missing

__all__ = ["SentencePieceTokenizer", "piece_bytes", "read_sentencepiece"]

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
SPACE = "▁"
_BYTE_PIECE = re.compile("<0x([0-9A-Fa-f]{2})>")
_TIKTOKEN_LINE = re.compile(rb"[A-Za-z0-9+/]+=* \d+\n")


class SentencePieceTokenizer:
    """A model that the sentencepiece package loads on first use."""

    kind = "sentencepiece"

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._processor: Any = None

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text; the package reads names of control pieces as ordinary text."""
        if self._processor is None:
            self._processor = _processor(self.data)
        ids: list[int] = self._processor.encode(
            text, add_bos=False, add_eos=False, enable_sampling=False
        )
        return ids


class SentencePieceModel(NamedTuple):
    """The fields of a SentencePiece model that affect token bytes and end tokens."""

    pieces: list[tuple[str, int]]
    """Text and type of each piece, in order of ids."""
    end_piece: str
    dummy_prefix: bool
    trims_spaces: bool
    normalizes: bool
    denormalizes: bool


def read_sentencepiece(source: object, end_token_ids: EndTokens | None) -> Parts:
    """Returns the vocabulary of a path, the bytes of a model, or a ``SentencePieceProcessor``."""
    data = _data(source)
    model = _model(data)
    if model.denormalizes:
        raise VocabularyError("the model rewrites text when it decodes, so tokens have no bytes")
    tokens = [
        piece_bytes(piece, kind, f"piece {token_id}")
        for token_id, (piece, kind) in enumerate(model.pieces)
    ]
    names = [
        (piece, token_id)
        for token_id, (piece, kind) in enumerate(model.pieces)
        if kind in (UNKNOWN, CONTROL)
    ]
    core = _core.Vocabulary.from_tokens(tokens, [], names, _notes(model))
    ends = [token_id for piece, token_id in names if piece == model.end_piece]
    core, place = ended(core, end_token_ids, [("SentencePiece model", ends)])
    return Parts(core, SentencePieceTokenizer(data), end_source=place)


def piece_bytes(piece: str, kind: int, place: str) -> bytes | None:
    """Returns the bytes of a piece of some type; None for those without text."""
    if kind == BYTE:
        match = _BYTE_PIECE.fullmatch(piece)
        if match is None:
            raise VocabularyError(f"{place} is {piece!r}, which is no byte such as <0x0A>")
        return bytes.fromhex(match[1])
    if kind in (NORMAL, USER_DEFINED):
        return piece.replace(SPACE, " ").encode()
    if kind in (UNKNOWN, CONTROL, UNUSED):
        return None
    raise VocabularyError(f"{place} is of type {kind}, which we do not know")


def _notes(model: SentencePieceModel) -> list[str]:
    unused = [at for at, (_, kind) in enumerate(model.pieces) if kind == UNUSED]
    notes = {
        f"tokens marked unused, never allowed: {shown(unused)}": bool(unused),
        "decoding drops a space at the start of a text; the bytes of the token keep it": (
            model.dummy_prefix or model.trims_spaces
        ),
        "encoding puts a space in front of a text": model.dummy_prefix,
        "encoding drops spaces at both ends of a text and repeated ones": model.trims_spaces,
        "encoding normalizes characters": model.normalizes,
    }
    return [note for note, holds in notes.items() if holds]


def _data(source: object) -> bytes:
    if isinstance(source, (bytes, bytearray)):
        return bytes(source)
    if isinstance(source, (str, os.PathLike)):
        from formalm.vocabulary.saved_vocabulary import read_bytes

        return read_bytes(Path(source))
    serialized = getattr(source, "serialized_model_proto", None)
    if serialized is None:
        kind = type(source).__name__
        raise ArgumentError(
            f"model must be the path or bytes of a SentencePiece model, or a processor, got {kind}"
        )
    data: bytes = serialized()
    if not data:
        raise VocabularyError("this SentencePieceProcessor has no model loaded")
    return data


def _model(data: bytes) -> SentencePieceModel:
    """Parses the message ``ModelProto``: pieces, trainer, normalizer, self-test, denormalizer."""
    if _TIKTOKEN_LINE.match(data):
        raise VocabularyError(
            "this tokenizer.model is a list of ranks as tiktoken reads it, no SentencePiece model",
            hint="use the tokenizer.json of the same model, or from_tiktoken with its pattern",
        )
    pieces: list[tuple[str, int]] = []
    trainer: dict[int, Any] = {}
    normalizer: dict[int, Any] = {}
    denormalizer: dict[int, Any] = {}
    for number, wire, value in fields(data):
        if number not in (1, 2, 3, 5):
            continue
        if wire != BYTES or isinstance(value, int):
            raise VocabularyError(f"field {number} of the model is not a message")
        if number == 1:
            pieces.append(_piece(value, len(pieces)))
        else:
            # If a message occurs twice, the later fields take precedence.
            message = {2: trainer, 3: normalizer, 5: denormalizer}[number]
            message.update({field: content for field, _, content in fields(value)})
    if not pieces or not any(kind == UNKNOWN for _, kind in pieces):
        raise VocabularyError(
            "this is no SentencePiece model: it has no pieces, or none for the unknown"
        )
    return SentencePieceModel(
        pieces,
        end_piece=_text(trainer.get(47, b"</s>"), "eos_piece"),
        dummy_prefix=bool(normalizer.get(3, True)),
        trims_spaces=bool(normalizer.get(4, True)),
        normalizes=bool(normalizer.get(2)),
        denormalizes=bool(denormalizer.get(2)),
    )


def _piece(data: bytes, at: int) -> tuple[str, int]:
    text, kind = b"", NORMAL
    for number, wire, value in fields(data):
        if number == 1 and wire == BYTES and isinstance(value, bytes):
            text = value
        elif number == 3 and wire == VARINT and isinstance(value, int):
            kind = value
        elif number in (1, 3) or (number == 2 and wire != FIXED32):
            raise VocabularyError(f"piece {at} of the model cannot be read")
    if not text:
        raise VocabularyError(f"piece {at} of the model is empty")
    return _text(text, f"piece {at}"), kind


def _text(value: object, place: str) -> str:
    try:
        if isinstance(value, bytes):
            return value.decode()
    except UnicodeDecodeError:
        pass
    raise VocabularyError(f"{place} of the model is not UTF-8 text")


def _processor(data: bytes) -> Any:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise missing("sentencepiece") from None
    try:
        return SentencePieceProcessor(model_proto=data)
    except Exception as error:  # RuntimeError of its core, among others
        raise VocabularyError(f"sentencepiece cannot read this model: {error}") from None
