"""Whole documents in rows of one length, hidden from each other.

Every document keeps its own positions from zero and sees only itself, so it is exactly as if it
stood alone after the start token. Packing without masks taught an earlier model that a row's first
document is one that fitted nowhere else, which made it wrong just where queries start.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

IGNORED = -100  # the label torch's cross-entropy leaves out


@dataclass(frozen=True)
class Packed:
    """Rows of token ids with what the network needs beside them; all of shape (rows, length)."""

    inputs: NDArray[np.int64]
    labels: NDArray[np.int64]
    positions: NDArray[np.int64]
    documents: NDArray[np.int64]  # number of the document within the row; padding is -1

    @property
    def mask(self) -> NDArray[np.bool_]:
        """Attention mask (rows, length, length): causal and within one document."""
        length = self.inputs.shape[1]
        same = self.documents[:, :, None] == self.documents[:, None, :]
        mask: NDArray[np.bool_] = same & np.tri(length, dtype=np.bool_)
        return mask


def load_volume(path: Path) -> tuple[NDArray[np.uint16], NDArray[np.int64]]:
    """Read an encoded volume: token ids and document offsets."""
    with np.load(path) as data:
        lengths = data["lengths"].astype(np.int64)
        offsets = np.zeros(len(lengths) + 1, dtype=np.int64)
        np.cumsum(lengths, out=offsets[1:])
        return data["ids"], offsets


def fill_rows(lengths: NDArray[np.int64], capacity: int, window: int = 64) -> list[list[int]]:
    """Assign documents to rows: first fit among the last `window` open rows."""
    rows: list[list[int]] = []
    open_rows: list[tuple[int, list[int]]] = []
    for document, length in enumerate(lengths.tolist()):
        if length > capacity:
            raise ValueError(f"document {document} has {length} tokens, a row {capacity}")
        for place, (room, row) in enumerate(open_rows):
            if room >= length:
                row.append(document)
                open_rows[place] = (room - length, row)
                if room - length < 4:
                    open_rows.pop(place)
                break
        else:
            row = [document]
            rows.append(row)
            open_rows.append((capacity - length, row))
            if len(open_rows) > window:
                open_rows.pop(0)
    return rows


def pack(
    ids: NDArray[np.uint16], offsets: NDArray[np.int64], capacity: int, end_id: int = 0
) -> Packed:
    """Pack documents (each ended by the end token) into rows.

    A document of tokens t1 … tn, end becomes the inputs end, t1 … tn with the labels t1 … tn, end.
    """
    rows = fill_rows(np.diff(offsets), capacity)
    shape = (len(rows), capacity)
    inputs = np.full(shape, end_id, dtype=np.int64)
    labels = np.full(shape, IGNORED, dtype=np.int64)
    positions = np.zeros(shape, dtype=np.int64)
    numbers = np.full(shape, -1, dtype=np.int64)
    for number, row in enumerate(rows):
        start = 0
        for place, document in enumerate(row):
            tokens = ids[offsets[document] : offsets[document + 1]]
            end = start + len(tokens)
            inputs[number, start + 1 : end] = tokens[:-1]
            labels[number, start:end] = tokens
            positions[number, start:end] = np.arange(len(tokens))
            numbers[number, start:end] = place
            start = end
    return Packed(inputs, labels, positions, numbers)


def batches(packed: Packed, rows: int, seed: int) -> Iterator[Packed]:
    """Yield batches of rows in a seeded order; the last incomplete one is left out."""
    order = np.random.default_rng(seed).permutation(len(packed.inputs))
    for start in range(0, len(order) - rows + 1, rows):
        chosen = order[start : start + rows]
        yield Packed(
            packed.inputs[chosen],
            packed.labels[chosen],
            packed.positions[chosen],
            packed.documents[chosen],
        )
