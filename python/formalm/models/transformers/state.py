"""A prefix that a model of ``transformers`` has read, and the cache rows behind it."""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.models.transformers import cache as caches

__all__ = ["Block", "TransformersState"]

Thinned = deque["weakref.ref[Block]"]


class Block:
    """The cache of one forward pass, and which of its rows a state still stands for."""

    def __init__(self, name: str, cache: Any, size: int, thinned: Thinned) -> None:
        self.name = name
        self.cache = cache
        self.places = {row: row for row in range(size)}
        self.size = size
        self._thinned = thinned

    def release(self, row: int) -> None:
        """Note that no state stands for this row any more.

        Called when a state is collected, at any moment and from any thread, so it only notes: the
        model shrinks the cache at its next call.
        """
        self.places.pop(row, None)
        if 0 < 2 * len(self.places) <= self.size:
            self._thinned.append(weakref.ref(self))

    def shrink(self) -> None:
        """Let go of the rows that nobody needs, once they are half of all."""
        places = dict(self.places)
        if 0 < 2 * len(places) <= self.size:
            self.cache = caches.join([(self.cache, list(places.values()))])
            self.size = len(places)
            for place, row in enumerate(places):
                if row in self.places:
                    self.places[row] = place


class TransformersState:
    """A prefix that was read. An immutable value: forking is using it twice.

    Attributes
    ----------
    token_ids
        The prefix.
    logprobs
        ``(width,)``, the next token after it.
    """

    __slots__ = ("__weakref__", "block", "logprobs", "model", "row", "token_ids")

    def __init__(
        self,
        model: Any,
        token_ids: tuple[int, ...],
        logprobs: npt.NDArray[np.floating[Any]],
        block: Block | None,
        row: int,
    ) -> None:
        self.model = model
        self.token_ids = token_ids
        self.logprobs = logprobs
        self.block = block
        self.row = row

    @property
    def length(self) -> int:
        """Number of tokens read."""
        return len(self.token_ids)

    def __del__(self) -> None:
        if self.block is not None:
            self.block.release(self.row)

    def __repr__(self) -> str:
        return f"<TransformersState after {len(self.token_ids)} tokens>"
