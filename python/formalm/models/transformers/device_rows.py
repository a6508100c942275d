"""A step of a generation over rows on a device: only tokens and sums cross over.

The definitions are those of the native kernels: sums in float64 over float32 exponentials, ties by
token id, draws as the inverse of cumulative sums.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["device_step"]

Words = npt.NDArray[np.int32]
Rules = tuple[float, int | None, float | None, float | None]
StepResult = tuple[int, float, float, float, float, int]


def device_step(
    logits: Any,
    is_normalized: bool,
    size: int,
    masks: Sequence[Words | None],
    byte_masks: Sequence[Words | None] | None,
    rules: Rules,
    uniforms: Sequence[float],
) -> list[StepResult]:
    """Returns for each row of ``logits`` ``(count, width)`` what ``_core.generation_step`` returns,
    without the last entry: the caller's matchers advance later.
    """
    import torch

    wide = logits if logits.dtype == torch.float64 else logits.float()
    whole_top, whole = _log_sums(wide)
    allowed = _bits(masks, size, wide)
    masked = torch.where(allowed, wide[:, :size], -torch.inf)
    top, log_allowed = _log_sums(masked)
    log_bytes = torch.full_like(log_allowed, torch.nan)
    if byte_masks is not None:
        others = _bits(byte_masks, size, wide)
        _, found = _log_sums(torch.where(others, wide[:, :size], -torch.inf))
        has_mask = torch.tensor([mask is not None for mask in byte_masks], device=wide.device)
        log_bytes = torch.where(has_mask, found, log_bytes)
    tokens = _draws(masked, top, rules, uniforms)
    values = wide.gather(1, tokens[:, None])[:, 0].double()
    is_dead = log_allowed == -torch.inf
    tokens = torch.where(is_dead, -1, tokens)
    values = torch.where(is_dead, torch.nan, values)
    codes = torch.zeros_like(tokens)
    codes[whole_top == -torch.inf] = 3
    codes[whole_top == torch.inf] = 2
    codes[torch.isnan(whole_top)] = 1
    if is_normalized:
        tolerance = 2e-2 if logits.element_size() == 2 else 1e-3
        codes[(codes == 0) & ((whole.exp() - 1).abs() > tolerance)] = 4
    columns = [tokens.double(), values, whole, log_allowed, log_bytes, codes.double()]
    found = torch.stack(columns, dim=1).cpu().tolist()  # the only copy
    return [(int(row[0]), row[1], row[2], row[3], row[4], int(row[5])) for row in found]


def _log_sums(rows: Any) -> tuple[Any, Any]:
    """Returns the maximum of each row, and the log-sum-exp in float64."""
    import torch

    top = rows.amax(dim=1)
    reference = torch.where(torch.isinf(top), torch.zeros_like(top), top)
    sums = (rows - reference[:, None]).exp().sum(dim=1, dtype=torch.float64)
    return top, reference.double() + sums.log()


def _bits(masks: Sequence[Words | None], size: int, like: Any) -> Any:
    """Returns bitmasks as booleans on the device of the rows, ``(count, size)``."""
    import torch

    count = -(-size // 32)
    packed = np.full((len(masks), count), -1, dtype=np.int32)
    for row, mask in zip(packed, masks, strict=True):
        if mask is not None:
            row[:] = 0
            row[: len(mask)] = mask[:count]
    words = torch.from_numpy(packed).to(like.device, non_blocking=True)
    shifts = torch.arange(32, device=like.device, dtype=torch.int32)
    bits = (words[:, :, None] >> shifts) & 1
    return bits.bool().reshape(len(masks), -1)[:, :size]


def _draws(masked: Any, top: Any, rules: Rules, uniforms: Sequence[float]) -> Any:
    """Returns the token of each row; any for a row without one."""
    import torch

    temperature, top_k, top_p, min_p = rules
    if temperature == 0:
        return _first_best(masked, top)
    scaled = (masked - top[:, None]) / max(temperature, 1e-30)
    weights = scaled.exp().nan_to_num(nan=0.0)
    places = None
    if top_k is not None:
        places = _best_places(masked, min(top_k, masked.shape[1]))
        weights = weights.gather(1, places)
    elif top_p is not None or min_p is not None:
        places = masked.sort(dim=1, descending=True, stable=True).indices
        weights = weights.gather(1, places)
    sums = weights.cumsum(dim=1, dtype=torch.float64)
    kept = torch.full_like(sums[:, 0], sums.shape[1], dtype=torch.int64)
    if top_p is not None:
        reached = torch.searchsorted(sums, top_p * sums[:, -1:])[:, 0] + 1
        kept = torch.minimum(kept, reached)
    if min_p is not None:
        kept = torch.minimum(kept, (weights >= min_p * weights[:, :1]).sum(dim=1))
    kept = kept.clamp(min=1, max=sums.shape[1])
    total = sums.gather(1, kept[:, None] - 1)
    draws = torch.tensor(uniforms, dtype=torch.float64, device=masked.device)[:, None] * total
    found = torch.searchsorted(sums, draws, right=True)
    # Rounding can put a draw at the end, where the last token with a weight is meant.
    last = torch.searchsorted(sums, total)
    found = torch.minimum(torch.minimum(found, last), kept[:, None] - 1)
    return (found if places is None else places.gather(1, found))[:, 0]


def _first_best(masked: Any, top: Any) -> Any:
    """Returns the best token with the smallest id; argmax promises no order on every device."""
    import torch

    ids = torch.arange(masked.shape[1], device=masked.device)
    return torch.where(masked == top[:, None], ids, masked.shape[1] - 1).amin(dim=1)


def _best_places(masked: Any, count: int) -> Any:
    """Returns the ``count`` best tokens of each row, the smaller id first on a tie."""
    least = masked.topk(count, dim=1).values[:, -1:]
    above, ties = masked > least, masked == least
    left = count - above.sum(dim=1, keepdim=True)
    chosen = above | (ties & (ties.cumsum(dim=1) <= left))
    places = chosen.nonzero()[:, 1].reshape(masked.shape[0], count)
    order = masked.gather(1, places).sort(dim=1, descending=True, stable=True).indices
    return places.gather(1, order)
