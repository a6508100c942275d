"""Conversion of a string search's queue to arrays and back, for checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.drivers.marginal import Strings
from formalm.drivers.readings import String
from formalm.drivers.trie import SLACK

__all__ = ["pack", "unpack"]

Arrays = dict[str, npt.NDArray[Any]]


def pack(driver: Strings) -> Arrays:
    """Returns the queue's entries and the data of the readings as arrays."""
    items = [item for _, item in driver.heap]
    ends = driver.readings.ends
    fans = [fan for item in items for fan in item.fans]
    return {
        **_joined("data", [item.data for item in items], np.uint8),
        **_joined("done", [sorted(item.done) for item in items], np.uint8),
        **_joined("exact", [item.exact for item in items], np.int64),
        **_joined("pending", [item.pending for item in items], np.int64),
        "roots": np.array([item.root for item in items], dtype=np.int64),
        "members": np.array([item.member for item in items], dtype=bool),
        "fans": np.array([fan[:3] for fan in fans], dtype=np.int64).reshape(-1, 3),
        "fans.logprobs": np.array([fan[3] for fan in fans], dtype=np.float64),
        "fans.lengths": np.array([len(item.fans) for item in items], dtype=np.int64),
        "ends": np.array(list(ends), dtype=np.int64),
        "ends.logprobs": np.array(list(ends.values()), dtype=np.float64),
    }


def unpack(driver: Strings, arrays: Arrays) -> None:
    """Restores the queue that :func:`pack` described; the trie is already in place.

    Raises
    ------
    ValueError
        If the arrays do not describe a queue.
    """
    size, states = len(driver.frontier.trie), driver.frontier.states
    nodes = [arrays["exact"], arrays["pending"], arrays["fans"][:, 0], arrays["ends"]]
    if any(np.any(one < 0) or np.any(one >= size) for one in nodes):
        raise ValueError("an entry has nodes that are none")
    roots = driver.frontier.root_nodes
    if np.any(arrays["roots"] < 0) or np.any(arrays["roots"] >= len(roots)):
        raise ValueError("an entry has no beginning")
    logprobs = np.concatenate([arrays["fans.logprobs"], arrays["ends.logprobs"]])
    if not np.all(logprobs <= SLACK):
        raise ValueError("a log-probability is none")
    fans = [
        (*row, logprob)
        for row, logprob in zip(
            arrays["fans"].tolist(), arrays["fans.logprobs"].tolist(), strict=True
        )
    ]
    items = []
    for data, done, exact, pending, root, member, own in zip(
        map(bytes, _split(arrays["data"].tolist(), arrays["data.lengths"])),
        _split(arrays["done"].tolist(), arrays["done.lengths"]),
        _split(arrays["exact"].tolist(), arrays["exact.lengths"]),
        _split(arrays["pending"].tolist(), arrays["pending.lengths"]),
        arrays["roots"].tolist(),
        arrays["members"].tolist(),
        _split(fans, arrays["fans.lengths"]),
        strict=True,
    ):
        state = states.step_bytes(driver.frontier.trie.state[roots[root]], data)
        done_bytes = frozenset(done)
        items.append(
            String(data, state, root, member, list(exact), list(pending), list(own), done_bytes)
        )
    ends = dict(zip(arrays["ends"].tolist(), arrays["ends.logprobs"].tolist(), strict=True))
    driver.restart(items, ends)


def _joined(name: str, lists: Sequence[Sequence[int]], dtype: Any) -> Arrays:
    whole = [value for one in lists for value in one]
    lengths = np.array([len(one) for one in lists], dtype=np.int64)
    return {name: np.array(whole, dtype=dtype), f"{name}.lengths": lengths}


def _split(values: list[Any], lengths: npt.NDArray[Any]) -> Iterator[list[Any]]:
    if np.any(lengths < 0) or lengths.sum() != len(values):
        raise ValueError("a list has another length")
    at = 0
    for length in lengths.tolist():
        yield values[at : at + length]
        at += length
