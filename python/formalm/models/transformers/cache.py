"""Key-value caches of ``transformers``: fork without copies, select rows, join.

The library's own cache layers never write into the tensors of the attention's past: each forward
pass makes longer ones. A cache is therefore forked by copying the small objects around the tensors,
and the old cache stays valid. Recurrent layers write in place; they are of fixed size and are
cloned.

Only known layers are taken apart. A cache with any other layer is not used at all, and the model
evaluates its prefixes from the start: slower, and correct.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

__all__ = ["fork", "is_known", "is_recurrent", "join", "size_of"]

ATTENTION = {"DynamicLayer", "DynamicSlidingWindowLayer", "DummyLayer"}
RECURRENT = {
    "LinearAttentionLayer",
    "LinearAttentionAndFullAttentionLayer",
    "LinearAttentionAndSlidingWindowAttentionLayer",
}
PAST = ("keys", "values")
STATES = ("conv_states", "recurrent_states")

Part = tuple[Any, Sequence[int]]


def is_known(cache: Any) -> bool:
    """Returns True if rows of this cache can be selected and joined."""
    layers = getattr(cache, "layers", ())
    return bool(layers) and all(type(layer).__name__ in ATTENTION | RECURRENT for layer in layers)


def is_recurrent(cache: Any) -> bool:
    """Returns True if the cache has states that every token changes, including padding."""
    layers = getattr(cache, "layers", None)
    return layers is None or any(type(layer).__name__ not in ATTENTION for layer in layers)


def fork(cache: Any) -> Any:
    """Returns a cache with the same past, which may grow without changing this one."""
    result = copy.copy(cache)
    result.layers = [_copied(layer) for layer in cache.layers]
    return result


def join(parts: Sequence[Part]) -> Any:
    """Returns one cache of the given rows of several caches, all of one length.

    Parameters
    ----------
    parts
        Pairs of a cache and the rows to take from it, in order; a row may be taken repeatedly.
    """
    caches = [cache for cache, _ in parts]
    chosen = [rows for _, rows in parts]
    result = copy.copy(caches[0])
    result.layers = [
        _joined(layers, chosen) for layers in zip(*(cache.layers for cache in caches), strict=True)
    ]
    return result


def size_of(cache: Any) -> int:
    """Returns the memory of a cache's tensors, in bytes."""
    held = [getattr(layer, name, None) for layer in cache.layers for name in PAST]
    for layer in cache.layers:
        held += [tensor for name in STATES for tensor in getattr(layer, name, {}).values()]
    return sum(tensor.nbytes for tensor in held if tensor is not None)


def _copied(layer: Any) -> Any:
    result = copy.copy(layer)
    for name, value in vars(layer).items():
        if isinstance(value, dict):
            setattr(result, name, {key: _cloned(item) for key, item in value.items()})
    return result


def _cloned(value: Any) -> Any:
    return value.clone() if hasattr(value, "clone") else value


def _joined(layers: Sequence[Any], chosen: Sequence[Sequence[int]]) -> Any:
    result = _copied(layers[0])
    for name in PAST:
        if getattr(layers[0], name, None) is not None:
            setattr(result, name, _rows([getattr(layer, name) for layer in layers], chosen))
    for name in STATES:
        for key, first in getattr(layers[0], name, {}).items():
            if first is not None:
                tensors = [getattr(layer, name)[key] for layer in layers]
                getattr(result, name)[key] = _rows(tensors, chosen)
    return result


def _rows(tensors: Sequence[Any], chosen: Sequence[Sequence[int]]) -> Any:
    """Returns the chosen rows of each tensor, one after another, in new memory."""
    import torch

    if tensors[0].numel() == 0:  # a layer that was created and never filled
        return tensors[0]
    return torch.cat(
        [
            tensor.index_select(0, torch.tensor(list(rows), device=tensor.device))
            for tensor, rows in zip(tensors, chosen, strict=True)
        ]
    )
