"""Vocabularies of GGUF files, the model files of llama.cpp.

Token bytes are those of llama.cpp's pieces. Text can be encoded only if the file's name for its
pre-tokenizer is known; otherwise the vocabulary says that it cannot.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from formalm import _core
from formalm.errors import ArgumentError, VocabularyError
from formalm.vocabulary.chat_template import ChatTemplate
from formalm.vocabulary.gguf_header import read_metadata
from formalm.vocabulary.gguf_pretokenizers import BYTES_ONLY, KNOWN_PRE, MARKED_SPACES
from formalm.vocabulary.loaded_vocabulary import EndTokens, Parts, ended
from formalm.vocabulary.sentencepiece import (
    BYTE,
    CONTROL,
    NORMAL,
    UNKNOWN,
    UNUSED,
    USER_DEFINED,
)
from formalm.vocabulary.tiktoken import shown
from formalm.vocabulary.tokenizer_libraries import JsonTokenizer

__all__ = ["read_gguf"]

PREFIX = "tokenizer."
GGML = "tokenizer.ggml."
TEMPLATE = "tokenizer.chat_template"
BYTE_LEVEL, PIECES = ("gpt2",), ("llama", "t5", "gemma4")
END_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")


def read_gguf(source: object, end_token_ids: EndTokens | None) -> Parts:
    """Returns the vocabulary of a GGUF file; its tensors are not read."""
    if not isinstance(source, (str, os.PathLike)):
        raise ArgumentError(f"path must be the path of a GGUF file, got {type(source).__name__}")
    metadata = read_metadata(Path(source), PREFIX)
    model = metadata.get(GGML + "model")
    if model is None:
        raise VocabularyError(f"{source} has no tokenizer (no {GGML}model)")
    if model not in (*BYTE_LEVEL, *PIECES):
        raise VocabularyError(
            f"tokenizers of type {model!r} are not read, only {', '.join((*BYTE_LEVEL, *PIECES))}",
            hint="pass the bytes of each token to Vocabulary.from_tokens if you know them",
        )
    pieces, kinds = _pieces(metadata)
    byte_level = model in BYTE_LEVEL and metadata.get(GGML + "pre") not in MARKED_SPACES
    spelled = _byte_level(pieces, kinds) if byte_level else _spaced(pieces, kinds)
    names = [(pieces[at], at) for at, kind in enumerate(kinds) if kind in (CONTROL, UNKNOWN)]
    tokenizer, cannot = _tokenizer(metadata, pieces, kinds)
    unused = [at for at, kind in enumerate(kinds) if kind == UNUSED]
    notes = [f"tokens marked unused, never allowed: {shown(unused)}"] if unused else []
    # Printable ASCII stands for itself; other characters do so only if the whole piece does.
    raw = [
        at
        for at, (piece, kind) in enumerate(zip(pieces, kinds, strict=True))
        if byte_level
        and kind == NORMAL
        and spelled[at] == piece.encode()
        and not all("!" <= character <= "~" for character in piece)
    ]
    raw_note = "with characters that represent no byte; their bytes are the characters' UTF-8"
    notes += [f"tokens {raw_note}: {shown(raw)}"] if raw else []
    notes += [f"text cannot be encoded: {cannot}"] if cannot else []
    core = _core.Vocabulary.from_tokens(spelled, [], names, notes)
    ends = [_id(metadata, key) for key in END_KEYS]
    place = ", ".join(
        key for key, token_id in zip(END_KEYS, ends, strict=True) if token_id is not None
    )
    known = [token_id for token_id in ends if token_id is not None]
    core, found = ended(core, end_token_ids, [(place, sorted({*known}))])
    return Parts(core, tokenizer, _chat(metadata, pieces), found, cannot)


def _pieces(metadata: dict[str, Any]) -> tuple[list[str], list[int]]:
    pieces = metadata.get(GGML + "tokens")
    if not isinstance(pieces, list) or not all(isinstance(piece, str) for piece in pieces):
        raise VocabularyError(f"{GGML}tokens is not a list of texts")
    kinds = metadata.get(GGML + "token_type", [NORMAL] * len(pieces))
    if not isinstance(kinds, list) or len(kinds) != len(pieces):
        raise VocabularyError(f"{GGML}token_type is not a list with a type for each token")
    if not all(type(kind) is int and abs(kind) < 1 << 31 for kind in kinds):
        raise VocabularyError(f"{GGML}token_type is not a list of types")
    return pieces, kinds


def _byte_level(pieces: list[str], kinds: list[int]) -> list[bytes | None]:
    """Returns the bytes of byte-level pieces, by the reader of ``tokenizer.json``."""
    normal = sorted({piece for piece, kind in zip(pieces, kinds, strict=True) if kind == NORMAL})
    if not normal:
        raise VocabularyError(f"{GGML}tokens has no ordinary token")
    file = {
        "model": {"type": "BPE", "vocab": {piece: at for at, piece in enumerate(normal)}},
        "decoder": {"type": "ByteLevel"},
    }
    core = _core.Vocabulary.from_tokenizer_json(json.dumps(file).encode())
    bytes_of = dict(zip(normal, core.all_token_bytes(), strict=True))
    tokens = _spaced(pieces, kinds)
    for at, (piece, kind) in enumerate(zip(pieces, kinds, strict=True)):
        if kind == NORMAL:
            tokens[at] = bytes_of[piece]
        elif kind == USER_DEFINED:
            tokens[at] = piece.encode()  # llama.cpp prints these as they are
    return tokens


def _spaced(pieces: list[str], kinds: list[int]) -> list[bytes | None]:
    """Returns the bytes of SentencePiece pieces, whose types have the same numbers."""
    return _core.Vocabulary.piece_bytes(list(zip(pieces, kinds, strict=True)), f"{GGML}tokens")


def _tokenizer(
    metadata: dict[str, Any], pieces: list[str], kinds: list[int]
) -> tuple[JsonTokenizer | None, str]:
    """Returns the encoder, or the reason why there is none."""
    model, pre = metadata[GGML + "model"], metadata.get(GGML + "pre")
    if model == "gemma4":
        pre = model
    elif model not in BYTE_LEVEL:
        return None, f"a GGUF file of type {model!r} does not say how text is normalized"
    if pre not in KNOWN_PRE and pre not in MARKED_SPACES:
        return None, f"formalm does not know the pre-tokenizer {pre!r} of the file"
    split, whole_pieces = KNOWN_PRE.get(pre) or (MARKED_SPACES[pre], False)
    if split is None:
        return None, f"its pre-tokenizer {pre!r} takes runs of line breaks whole"
    marks_spaces = pre in MARKED_SPACES
    if marks_spaces and metadata.get(GGML + "add_space_prefix"):
        return None, f"its pre-tokenizer {pre!r} does not say which texts get a space in front"
    merges = metadata.get(GGML + "merges")
    if not isinstance(merges, list) or not all(isinstance(merge, str) for merge in merges):
        return None, f"the file has no {GGML}merges"
    if len({*pieces}) != len(pieces):
        return None, "two of its tokens have the same text"
    spelling = (NORMAL, BYTE) if marks_spaces else (NORMAL,)
    ids = {piece: at for at, piece in enumerate(pieces) if kinds[at] in spelling}
    pairs = [merge.split(" ") for merge in merges]
    if not all(len(pair) == 2 and {*pair, "".join(pair)} <= ids.keys() for pair in pairs):
        return None, f"{GGML}merges has pairs that are not made of its tokens"
    added: list[dict[str, Any]] = [
        {
            "id": at,
            "content": pieces[at],
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind != USER_DEFINED,
        }
        for at, kind in enumerate(kinds)
        if kind in (CONTROL, UNKNOWN, USER_DEFINED) and pieces[at]
    ]
    file: dict[str, Any] = {
        "version": "1.0",
        "added_tokens": added,
        "pre_tokenizer": split,
        "decoder": BYTES_ONLY,
        "model": {
            "type": "BPE",
            "vocab": {**ids, **{token["content"]: token["id"] for token in added}},
            "merges": pairs,
            "ignore_merges": whole_pieces,
            "byte_fallback": marks_spaces,
        },
    }
    if marks_spaces:
        mark = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
        space = {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}
        decoders = [space, {"type": "ByteFallback"}, {"type": "Fuse"}]
        file["normalizer"] = mark
        file["decoder"] = {"type": "Sequence", "decoders": decoders}
    return JsonTokenizer(json.dumps(file).encode()), ""


def _chat(metadata: dict[str, Any], pieces: list[str]) -> ChatTemplate | None:
    templates = {
        key.removeprefix(TEMPLATE).removeprefix(".") or "default": value
        for key, value in metadata.items()
        if (key == TEMPLATE or key.startswith(TEMPLATE + ".")) and isinstance(value, str)
    }
    ids = {name: _id(metadata, f"{name}_token_id") for name in ("bos", "eos")}
    variables = {
        f"{name}_token": pieces[at]
        for name, at in ids.items()
        if at is not None and 0 <= at < len(pieces)
    }
    return ChatTemplate(templates, variables) if templates else None


def _id(metadata: dict[str, Any], key: str) -> int | None:
    value = metadata.get(GGML + key)
    if value is not None and type(value) is not int:
        raise VocabularyError(f"{GGML}{key} is not a number of a token")
    return value
