"""Bitmasks applied to logits on a device: a fused kernel, or torch's own operations in slices.

Torch is never imported here: the tensors exist already.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from typing import Any

__all__ = ["apply_fused", "apply_in_slices", "apply_on_device"]

SLICE_ELEMENTS = 1 << 22
"""Logits whose mask bits are unpacked at a time: 16 MB of int32. The mask of 512 rows of 128,000
logits would otherwise take 262 MB. Chosen, not measured."""


def apply_on_device(logits: Any, words: Any, rows: Any) -> None:
    """Sets disallowed logits to minus infinity, in place.

    Parameters
    ----------
    logits
        Floating tensor ``(rows, width)``.
    words
        int32 tensor ``(count, words)``, on any device.
    rows
        int64 tensor ``(count,)``: the row of the logits for each row of the bitmask, all different;
        None if there are as many.
    """
    words = words.to(logits.device, non_blocking=True)
    rows = None if rows is None else rows.to(logits.device, non_blocking=True)
    if logits.device.type == "cuda" and logits.stride(-1) == 1 and _has_triton():
        apply_fused(logits, words, rows)
    else:
        apply_in_slices(logits, words, rows)


def apply_fused(logits: Any, words: Any, rows: Any) -> None:
    """Applies a bitmask with one kernel, which reads each word where it is needed and writes only
    disallowed logits; as :func:`apply_on_device`, on one device.
    """
    from formalm import device_kernels

    words = words.contiguous()
    device_kernels.launch(logits, words, rows)


def apply_in_slices(logits: Any, words: Any, rows: Any) -> None:
    """Applies a bitmask with torch's own operations, a few columns at a time; as
    :func:`apply_on_device`, on one device.
    """
    torch = sys.modules["torch"]
    width = logits.shape[-1]
    known = min(width, 32 * words.shape[-1])
    shifts = torch.arange(32, dtype=torch.int32, device=logits.device)
    step = max(1, SLICE_ELEMENTS // (32 * max(1, words.shape[0])))
    places = slice(None) if rows is None else rows
    for first in range(0, -(-known // 32), step):
        part = words[:, first : first + step]
        begin, end = 32 * first, min(known, 32 * (first + part.shape[1]))
        bits = (part.unsqueeze(-1) >> shifts) & 1
        banned = bits.flatten(-2)[:, : end - begin] == 0
        if rows is None:
            logits[:, begin:end].masked_fill_(banned, float("-inf"))
        else:
            masked = logits[rows, begin:end].masked_fill(banned, float("-inf"))
            logits[rows, begin:end] = masked
    if known < width:
        logits[places, known:] = float("-inf")


@lru_cache(maxsize=1)
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
