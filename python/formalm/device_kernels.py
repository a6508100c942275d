"""Triton kernels. Imported only once logits are on a GPU, or by tests with Triton's interpreter."""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl

__all__ = ["launch"]

BLOCK = 4096
"""Logits of one program. Chosen, not measured."""


@triton.jit  # type: ignore[untyped-decorator, unused-ignore]
def _apply_bitmask(  # type: ignore[no-untyped-def]
    logits,
    logits_stride,
    words,
    words_stride,
    word_count,
    rows,
    width,
    HAS_ROWS: tl.constexpr,  # noqa: N803
    BLOCK: tl.constexpr,  # noqa: N803
):
    """Writes minus infinity where the bit of a logit is 0, or where there is no bit."""
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(rows + row) if HAS_ROWS else row
    places = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    at = places >> 5
    inside = places < width
    bits = tl.load(words + row * words_stride + at, mask=inside & (at < word_count), other=0)
    banned = ((bits >> (places & 31)) & 1) == 0
    lowest = tl.full((BLOCK,), float("-inf"), tl.float32)
    tl.store(logits + target * logits_stride + places, lowest, mask=inside & banned)


def launch(logits: Any, words: Any, rows: Any) -> None:
    """Applies a contiguous bitmask to rows of logits whose last dimension is contiguous."""
    count, width = words.shape[0], logits.shape[-1]
    if not count or not width:
        return
    grid = (count, triton.cdiv(width, BLOCK))
    _apply_bitmask[grid](
        logits,
        logits.stride(0),
        words,
        words.stride(0),
        words.shape[1],
        words if rows is None else rows,
        width,
        HAS_ROWS=rows is not None,
        BLOCK=BLOCK,
    )
