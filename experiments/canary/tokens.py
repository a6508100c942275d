"""The tokenizer, trained on the null twin's first volume so that no plant can shape it.

Byte-level BPE. Every digit stands alone, also after a space: digits in groups would give planted
numbers tokens of their own and members of one pattern different lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers

from .corpus import Document

END = "<|endoftext|>"
END_ID = 0
SPLIT = r"'(?:s|t|re|ve|m|ll|d)| ?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"


def train_tokenizer(documents: Sequence[Document], vocabulary: int) -> Tokenizer:
    """Train the tokenizer; the same documents give the same bytes."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(SPLIT), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator((document.text for document in documents), trainer)
    return tokenizer


def encode(
    tokenizer: Tokenizer, documents: Sequence[Document]
) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Encode documents, each ended by the end token.

    Returns
    -------
    tuple of ndarray
        All token ids in a row, and the offset of every document's start plus the total.
    """
    encoded = tokenizer.encode_batch_fast([document.text for document in documents])
    lengths = [len(item.ids) + 1 for item in encoded]
    offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=offsets[1:])
    ids = np.full(offsets[-1], END_ID, dtype=np.uint16)
    for item, start in zip(encoded, offsets, strict=False):
        ids[start : start + len(item.ids)] = item.ids
    return ids, offsets


def save_volume(path: Path, ids: NDArray[np.uint16], offsets: NDArray[np.int64]) -> None:
    """Write an encoded volume."""
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez_compressed(path, ids=ids, lengths=np.diff(offsets).astype(np.uint16))
