"""A least-recently-used cache of values by trie node, bounded in bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["ByteBudgetLru", "children_bytes"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Value = TypeVar("Value")


class ByteBudgetLru(Generic[Value]):
    """Values by node; the least recently used are evicted.

    The newest value is kept whatever its size, because it is needed next.

    Parameters
    ----------
    budget_bytes
        Maximum memory of all values.
    size_of
        Returns the bytes of a value.

    Attributes
    ----------
    memory_bytes
        Memory of the values.
    """

    def __init__(self, budget_bytes: int, size_of: Callable[[Value], int]) -> None:
        self.memory_bytes = 0
        self.budget_bytes = budget_bytes
        self._size_of = size_of
        self._kept: OrderedDict[int, Value] = OrderedDict()

    def __contains__(self, node: int) -> bool:
        return node in self._kept

    def __iter__(self) -> Iterator[int]:
        """Iterates over the nodes, the most recent last."""
        return iter(self._kept)

    def get(self, node: int) -> Value | None:
        """Returns the value of a node, if it is cached."""
        value = self._kept.get(node)
        if value is not None:
            self._kept.move_to_end(node)
        return value

    def keep(self, node: int, value: Value) -> None:
        """Caches a value, and replaces the node's previous one."""
        old = self._kept.pop(node, None)
        if old is not None:
            self.memory_bytes -= self._size_of(old)
        self._kept[node] = value
        self.memory_bytes += self._size_of(value)
        while self.memory_bytes > self.budget_bytes and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self.memory_bytes -= self._size_of(oldest)


def children_bytes(children: tuple[Ids, Floats]) -> int:
    """Returns the memory of an array of ids and the array of their numbers."""
    ids, numbers = children
    return ids.nbytes + numbers.nbytes
