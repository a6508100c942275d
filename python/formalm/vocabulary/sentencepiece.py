"""Vocabularies of SentencePiece models of type BPE, Unigram, word and character.

The core parses the model file, so that token bytes need no other package; only encoding does.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary.loaded_vocabulary import EndTokens, Parts, ended
from formalm.vocabulary.tokenizer_libraries import Description, PackedDescription, missing

__all__ = ["SentencePieceTokenizer", "read_sentencepiece"]

#: Types of pieces, as in ``sentencepiece_model.proto``.
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
SPACE = "▁"


class SentencePieceTokenizer(Description):
    """A model that the sentencepiece package loads on first use."""

    kind = "sentencepiece"

    def __init__(self, source: bytes | PackedDescription) -> None:
        super().__init__(source)
        self._processor: Any = None

    def encode(self, text: str) -> list[int]:
        """Returns the ids of a text; the package reads names of control pieces as ordinary text."""
        if self._processor is None:
            self._processor = _processor(self.data)
        ids: list[int] = self._processor.encode(
            text, add_bos=False, add_eos=False, enable_sampling=False
        )
        return ids


def read_sentencepiece(source: object, end_token_ids: EndTokens | None) -> Parts:
    """Returns the vocabulary of a path, the bytes of a model, or a ``SentencePieceProcessor``."""
    data = _data(source)
    core, ends = _core.Vocabulary.from_sentencepiece(data)
    core, place = ended(core, end_token_ids, [("SentencePiece model", ends)])
    return Parts(core, SentencePieceTokenizer(data), end_source=place)


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


def _processor(data: bytes) -> Any:
    try:
        from sentencepiece import SentencePieceProcessor
    except ImportError:
        raise missing("sentencepiece") from None
    try:
        return SentencePieceProcessor(model_proto=data)
    except Exception as error:  # RuntimeError of its core, among others
        raise VocabularyError(f"sentencepiece cannot read this model: {error}") from None
