"""A pool of keys and values per token, shared by all prefixes with a common start.

A frontier of a search is a tree of prefixes. Each token in it has one slot in a pool of keys and
one of values, and a state holds the slots of its whole prefix. A forward pass gathers them into a
cache of the library's kind, padded on the left. A state therefore takes only the memory of its own
tokens, and prefixes of different lengths share a pass.

Only caches whose layers store exactly their inputs are laid out like this. Windows and recurrent
states are stored whole, see :mod:`formalm.models.transformers.cache`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.models.transformers.cache import fork

__all__ = ["Pool", "Slots", "can_pool"]

KEEPING = {"DynamicLayer", "DummyLayer"}
FIRST = 256
"""Number of tokens that a new pool has room for."""


def can_pool(cache: Any, length: int) -> bool:
    """Returns True if a cache holds keys and values of each of ``length`` tokens, and
    nothing else.
    """
    layers = getattr(cache, "layers", ())
    filled = [layer for layer in layers if _is_filled(layer)]
    return (
        bool(filled)
        and all(type(layer).__name__ in KEEPING for layer in layers)
        and all(
            tensor.dim() == 4 and tensor.shape[2] == length
            for layer in filled
            for tensor in (layer.keys, layer.values)
        )
    )


class Slots:
    """The slots of one prefix's tokens; dropping it frees those that no longer prefix uses.

    Attributes
    ----------
    pool
        The pool.
    places
        ``(length,)``: the slot of each token.
    """

    __slots__ = ("__weakref__", "_before", "_own", "places", "pool")

    def __init__(self, pool: Pool, before: Slots | None, own: list[int]) -> None:
        self.pool = pool
        self._before = before  # which keeps the slots of the shorter prefix from being freed
        self._own = own
        new = np.array(own, dtype=np.int64)
        self.places: npt.NDArray[np.int64] = (
            new if before is None else np.concatenate([before.places, new])
        )

    @property
    def memory_bytes(self) -> int:
        """Memory of the tokens that it added to the prefix before it."""
        size: int = len(self._own) * self.pool.token_bytes + self.places.nbytes
        return size

    def __del__(self) -> None:
        self.pool.release(self._own)


class Pool:
    """Keys and values of tokens, by layer.

    It lives as long as one of its :class:`Slots`.

    Parameters
    ----------
    name
        The name under which the model takes its cache.
    cache
        A cache of the model, after a forward pass. It is not changed.

    Attributes
    ----------
    token_bytes
        Memory of one token.
    """

    def __init__(self, name: str, cache: Any) -> None:
        self.name = name
        self.cache = fork(cache)  # for its layers' classes and flags; its tensors are replaced
        self._filled = [n for n, layer in enumerate(cache.layers) if _is_filled(layer)]
        self._capacity = 0
        self._free: list[int] = []
        self._released: deque[list[int]] = deque()
        self._tensors: list[tuple[Any, Any]] = []
        for number in self._filled:
            layer = self.cache.layers[number]
            pair = (_places(layer.keys, 0), _places(layer.values, 0))
            self._tensors.append(pair)
            layer.keys = layer.values = None
        self.token_bytes = sum(
            tensor[:0].new_empty(tensor.shape[1:]).nbytes
            for pair in self._tensors
            for tensor in pair
        )

    def __len__(self) -> int:
        """Returns the number of stored tokens."""
        self._collect()
        return self._capacity - len(self._free)

    def release(self, places: list[int]) -> None:
        """Marks slots as free. It runs during garbage collection, in any thread, so it only
        records.
        """
        self._released.append(places)

    def keep(self, cache: Any, before: Sequence[Slots | None], count: int) -> list[Slots]:
        """Stores the last ``count`` tokens of each row of a cache, which continue ``before``;
        returns their slots.
        """
        import torch

        needed = len(before) * count
        self._collect()
        if len(self._free) < needed:
            self._grow(needed)
        taken = [self._free.pop() for _ in range(needed)]
        for number, pair in zip(self._filled, self._tensors, strict=True):
            layer = cache.layers[number]
            places = torch.tensor(taken, device=pair[0].device)
            for kept, given in zip(pair, (layer.keys, layer.values), strict=True):
                rows = given[:, :, -count:].transpose(1, 2).flatten(0, 1)
                kept.index_copy_(0, places, rows)
        own = [taken[row * count : (row + 1) * count] for row in range(len(before))]
        return [Slots(self, *pair) for pair in zip(before, own, strict=True)]

    def gather(self, slots: Sequence[Slots]) -> Any:
        """Returns a cache with a row for each prefix, shorter ones padded on the left."""
        import torch

        longest = max(len(one.places) for one in slots)
        # Padding may be any token: it is masked.
        rows = np.full((len(slots), longest), slots[0].places[0], dtype=np.int64)
        for row, one in zip(rows, slots, strict=True):
            row[longest - len(one.places) :] = one.places
        flat = torch.from_numpy(rows.ravel())
        result = fork(self.cache)
        for number, (keys, values) in zip(self._filled, self._tensors, strict=True):
            layer, places = result.layers[number], flat.to(keys.device)
            layer.keys = _rows(keys, places, len(slots))
            layer.values = _rows(values, places, len(slots))
        return result

    def _collect(self) -> None:
        while self._released:
            self._free += self._released.popleft()

    def _grow(self, needed: int) -> None:
        old = self._capacity
        self._capacity = max(FIRST, old + needed, old + old // 2)
        self._free += range(self._capacity - 1, old - 1, -1)
        grown = []
        for pair in self._tensors:
            larger = tuple(tensor.new_empty((self._capacity, *tensor.shape[1:])) for tensor in pair)
            for new, tensor in zip(larger, pair, strict=True):
                new[:old] = tensor
            grown.append((larger[0], larger[1]))
        self._tensors = grown


def _is_filled(layer: Any) -> bool:
    """Returns True if a layer stores anything; one that shares another layer's keys does not."""
    keys = getattr(layer, "keys", None)
    return keys is not None and keys.numel() > 0


def _places(tensor: Any, count: int) -> Any:
    """Returns room for the tokens of a layer: ``(count, heads, size)``."""
    return tensor.new_empty((count, tensor.shape[1], tensor.shape[3]))


def _rows(tensor: Any, places: Any, count: int) -> Any:
    """Returns an array ``(count, heads, longest, size)``."""
    picked = tensor.index_select(0, places)
    return picked.view(count, -1, *tensor.shape[1:]).transpose(1, 2)
