"""Conversion of a string search's queue to arrays and back, for checkpoints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.execution.sequence_trie import SLACK
from formalm.searching.string_search import StringSearch
from formalm.searching.tokenization_nodes import StringEntry

__all__ = ["queue_to_arrays", "restore_queue"]

Arrays = dict[str, npt.NDArray[Any]]


def queue_to_arrays(driver: StringSearch) -> Arrays:
    """Returns the queue's entries and the data of the readings as arrays."""
    entries = [entry for _, entry in driver.heap]
    ends = driver.tokenizations.ends
    token_ranges = [token_range for entry in entries for token_range in entry.token_ranges]
    return {
        **_joined("data", [entry.data for entry in entries], np.uint8),
        **_joined("done", [sorted(entry.done) for entry in entries], np.uint8),
        **_joined("exact", [entry.exact for entry in entries], np.int64),
        **_joined("pending", [entry.pending for entry in entries], np.int64),
        "roots": np.array([entry.context_index for entry in entries], dtype=np.int64),
        "members": np.array([entry.member for entry in entries], dtype=bool),
        "fans": np.array([token_range[:3] for token_range in token_ranges], dtype=np.int64).reshape(
            -1, 3
        ),
        "fans.logprobs": np.array(
            [token_range[3] for token_range in token_ranges], dtype=np.float64
        ),
        "fans.lengths": np.array([len(entry.token_ranges) for entry in entries], dtype=np.int64),
        "ends": np.array(list(ends), dtype=np.int64),
        "ends.logprobs": np.array(list(ends.values()), dtype=np.float64),
    }


def restore_queue(driver: StringSearch, arrays: Arrays) -> None:
    """Restores the queue that :func:`queue_to_arrays` described; the trie is already in place.

    Raises
    ------
    ValueError
        If the arrays do not describe a queue.
    """
    size, states = len(driver.frontier.trie), driver.frontier.states
    nodes = [arrays["exact"], arrays["pending"], arrays["fans"][:, 0], arrays["ends"]]
    if any(np.any(one < 0) or np.any(one >= size) for one in nodes):
        raise ValueError("a queue entry refers to nodes that do not exist")
    roots = driver.frontier.root_nodes
    if np.any(arrays["roots"] < 0) or np.any(arrays["roots"] >= len(roots)):
        raise ValueError("a queue entry has no context")
    logprobs = np.concatenate([arrays["fans.logprobs"], arrays["ends.logprobs"]])
    if not np.all(logprobs <= SLACK):
        raise ValueError("a log-probability is invalid")
    token_ranges = [
        (*row, logprob)
        for row, logprob in zip(
            arrays["fans"].tolist(), arrays["fans.logprobs"].tolist(), strict=True
        )
    ]
    entries = []
    for data, done, exact, pending, context_index, member, own in zip(
        map(bytes, _split(arrays["data"].tolist(), arrays["data.lengths"])),
        _split(arrays["done"].tolist(), arrays["done.lengths"]),
        _split(arrays["exact"].tolist(), arrays["exact.lengths"]),
        _split(arrays["pending"].tolist(), arrays["pending.lengths"]),
        arrays["roots"].tolist(),
        arrays["members"].tolist(),
        _split(token_ranges, arrays["fans.lengths"]),
        strict=True,
    ):
        state = states.step_bytes(driver.frontier.trie.state[roots[context_index]], data)
        done_bytes = frozenset(done)
        entries.append(
            StringEntry(
                data,
                state,
                context_index,
                member,
                list(exact),
                list(pending),
                list(own),
                done_bytes,
            )
        )
    ends = dict(zip(arrays["ends"].tolist(), arrays["ends.logprobs"].tolist(), strict=True))
    driver.restart(entries, ends)


def _joined(name: str, lists: Sequence[Sequence[int]], dtype: Any) -> Arrays:
    whole = [value for one in lists for value in one]
    lengths = np.array([len(one) for one in lists], dtype=np.int64)
    return {name: np.array(whole, dtype=dtype), f"{name}.lengths": lengths}


def _split(values: list[Any], lengths: npt.NDArray[Any]) -> Iterator[list[Any]]:
    if np.any(lengths < 0) or lengths.sum() != len(values):
        raise ValueError("a list has the wrong length")
    at = 0
    for length in lengths.tolist():
        yield values[at : at + length]
        at += length
