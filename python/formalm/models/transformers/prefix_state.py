"""States of a ``transformers`` model: a prefix that was read, and its cache rows."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.models.transformers import kv_cache as caches
from formalm.models.transformers.kv_pool import PoolSlots

__all__ = ["CacheBlock", "CacheRow", "TransformersState", "cache_of"]

Thinned = deque["weakref.ref[CacheBlock]"]


class CacheBlock:
    """The cache of one forward pass, and the rows that states still use."""

    def __init__(self, name: str, cache: Any, size: int, thinned: Thinned) -> None:
        self.name = name
        self.cache = cache
        self.places = {row: row for row in range(size)}
        self.size = size
        self._thinned = thinned

    @property
    def row_bytes(self) -> int:
        """Memory of one row."""
        return caches.size_of(self.cache) // max(1, self.size)

    def release(self, row: int) -> None:
        """Records that no state uses this row any longer.

        It runs when a state is garbage-collected, at any moment and in any thread, so it only
        records. The model shrinks the cache at its next call.
        """
        self.places.pop(row, None)
        if 0 < 2 * len(self.places) <= self.size:
            self._thinned.append(weakref.ref(self))

    def shrink(self) -> None:
        """Frees the unused rows once they are half of all."""
        places = dict(self.places)
        if 0 < 2 * len(places) <= self.size:
            self.cache = caches.join([(self.cache, list(places.values()))])
            self.size = len(places)
            for place, row in enumerate(places):
                if row in self.places:
                    self.places[row] = place


class CacheRow:
    """One row of a block, for as long as a state uses it."""

    __slots__ = ("block", "row")

    def __init__(self, block: CacheBlock, row: int) -> None:
        self.block = block
        self.row = row

    @property
    def memory_bytes(self) -> int:
        """Memory of the whole prefix: blocks share nothing with each other."""
        return self.block.row_bytes

    def __del__(self) -> None:
        self.block.release(self.row)


class TransformersState:
    """A prefix that was read. It is an immutable value; using it twice forks it.

    Attributes
    ----------
    token_ids
        The prefix.
    logits
        ``(width,)``, the model's logits of the next token: a tensor on its device.
    kept
        Its keys and values; None if the model caches nothing.
    """

    __slots__ = ("__weakref__", "kept", "logits", "model", "token_ids")

    def __init__(
        self,
        model: Any,
        token_ids: tuple[int, ...],
        logits: Any,
        kept: PoolSlots | CacheRow | None,
    ) -> None:
        self.model = model
        self.token_ids = token_ids
        self.logits = logits
        self.kept = kept

    @property
    def logprobs(self) -> npt.NDArray[np.floating[Any]]:
        """``(width,)``, log-probabilities of the next token: a new array."""
        if not len(self.logits):  # see bare()
            return np.empty(0, dtype=np.float32)
        found: npt.NDArray[np.floating[Any]]
        found = self.model.network.logprobs(self.logits[None], [self.length])[0]
        return found

    @property
    def length(self) -> int:
        """Number of tokens read."""
        return len(self.token_ids)

    @property
    def memory_bytes(self) -> int:
        """Memory that its keys and values add to those of the state it was extended from."""
        return 0 if self.kept is None else self.kept.memory_bytes

    def bare(self) -> TransformersState:
        """Returns the same prefix without its logits, to continue from."""
        return TransformersState(self.model, self.token_ids, self.logits[:0].clone(), self.kept)

    def __repr__(self) -> str:
        return f"<TransformersState after {len(self.token_ids)} tokens>"


def cache_of(state: TransformersState) -> Any:
    """Returns a cache with the layers of the model's caches; None if the model caches nothing."""
    if isinstance(state.kept, PoolSlots):
        return state.kept.pool.cache
    return None if state.kept is None else state.kept.block.cache
