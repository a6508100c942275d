"""What is known of nodes and could be found again, kept within a budget of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

__all__ = ["Recent", "children_bytes"]

Floats = npt.NDArray[np.float64]
Ids = npt.NDArray[np.int64]
Value = TypeVar("Value")


class Recent(Generic[Value]):
    """Values by node, of which those go first that were not asked for the longest.

    The newest stays whatever its size, since it is wanted next.

    Parameters
    ----------
    budget_bytes
        Most memory for all of them.
    size_of
        The bytes of a value.

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
        """The nodes, the latest last."""
        return iter(self._kept)

    def get(self, node: int) -> Value | None:
        """The value of a node, if it is still there."""
        value = self._kept.get(node)
        if value is not None:
            self._kept.move_to_end(node)
        return value

    def keep(self, node: int, value: Value) -> None:
        """Keep a value, in place of one that the node has."""
        old = self._kept.pop(node, None)
        if old is not None:
            self.memory_bytes -= self._size_of(old)
        self._kept[node] = value
        self.memory_bytes += self._size_of(value)
        while self.memory_bytes > self.budget_bytes and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self.memory_bytes -= self._size_of(oldest)


def children_bytes(children: tuple[Ids, Floats]) -> int:
    """Memory of ids and the numbers beside them."""
    ids, numbers = children
    return ids.nbytes + numbers.nbytes
