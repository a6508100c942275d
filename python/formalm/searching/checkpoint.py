"""Checkpoints of searches: writing the state to a file, and resuming from it.

A file has a header, JSON with a label, a version and the query, and arrays: the trie, the queue,
and the hits. It does not contain the model's answers, except for a few that identify the model.
Matchers are restored by walking the trie.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.atomic_write import path_of, write_atomically
from formalm.errors import ArgumentError, FormalmError, ModelError
from formalm.execution.query_execution import QueryExecution
from formalm.execution.sequence_trie import END, SLACK, UNKNOWN
from formalm.query.query import Query
from formalm.query.serialization import query_data
from formalm.searching.string_search import StringSearch
from formalm.searching.token_search import TokenSearch
from formalm.searching.tokenization_nodes import StringEntry

__all__ = ["FORMAT", "VERSION", "load", "queue_to_arrays", "restore_queue", "save"]

FORMAT = "formalm-search"
VERSION = 3
PROBES = 8
PROBED = 32
CLOSE = 1e-3
SPENT = ("forwards", "calls", "tokens_computed", "cache_hits")
# Exceptions of the zip reader for other files and unknown compression methods.
UNREADABLE = (
    *(OSError, ValueError, KeyError, EOFError, NotImplementedError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)
Arrays = dict[str, npt.NDArray[Any]]
Driver = TokenSearch | StringSearch


def save(path: str | PathLike[str], driver: Driver, query: Query, hits: int) -> None:
    """Writes a search to a file, completely or not at all.

    Raises
    ------
    ArgumentError
        If the search was interrupted in the middle of a step, or the file cannot be written.
    """
    if driver.execution.session.shown_tokens is not None:
        raise ArgumentError(
            "cannot save a search of a model that reports only its most probable tokens"
        )
    if not driver.is_consistent:
        raise ArgumentError(
            "cannot save a search that was interrupted in the middle of a step",
            hint="save it after a hit or after advance()",
        )
    execution, trie = driver.execution, driver.frontier.trie
    header = {**_question(execution, query), "hits": hits, "covered": execution.covered}
    header |= asdict(execution.cost())
    header |= {"cut_by_context": execution.cut_by_context, "cut_by_beam": execution.cut_by_beam}
    arrays = {f"trie.{name}": value for name, value in trie.arrays().items()}
    arrays["known"] = np.flatnonzero(np.array(trie.state) != UNKNOWN)
    arrays |= _probes(driver)
    arrays |= (
        queue_to_arrays(driver)
        if isinstance(driver, StringSearch)
        else _token_queue_to_arrays(driver)
    )
    text = json.dumps(header, sort_keys=True).encode()
    arrays["header"] = np.frombuffer(text, dtype=np.uint8)
    arrays["checksum"] = _checksum(arrays)
    try:
        write_atomically(path, lambda file: np.savez_compressed(file, **arrays))  # type: ignore[arg-type]
    except OSError as error:
        raise ArgumentError(f"cannot write {path_of(path)!r}: {error}") from None


def load(path: str | PathLike[str], driver: Driver, query: Query) -> int:
    """Restores a saved search into a new driver, and returns its number of hits.

    Raises
    ------
    ArgumentError
        If the file is not a saved search, or is one of another query.
    ModelError
        If it belongs to another vocabulary, or the model gives other answers.
    """
    file = path_of(path)
    arrays = _read(file)
    header = _checked_header(file, arrays)
    _check(header, driver.execution, query)
    trie = {name[5:]: value for name, value in arrays.items() if name.startswith("trie.")}
    execution = driver.execution
    try:
        _check_tokens(trie, execution)
        driver.frontier.restore(trie, arrays["known"])
        restore_queue(driver, arrays) if isinstance(driver, StringSearch) else _restore_token_queue(
            driver, arrays
        )
        hits, expansions = int(header["hits"]), int(header["expansions"])
        spent = {name: int(header[name]) for name in SPENT}
        execution.covered = header["covered"]
        execution.started = time.monotonic() - float(header["seconds"])
        execution.cut_by_context = bool(header["cut_by_context"])
        execution.cut_by_beam = bool(header["cut_by_beam"])
        _check_answers(driver, arrays)
    except FormalmError:
        raise
    except (ValueError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise ArgumentError(f"{file!r} is damaged: {error}") from None
    for name, number in spent.items():
        setattr(execution.session, name, getattr(execution.session, name) + number)
    execution.expansions += expansions
    return hits


def _read(path: str) -> Arrays:
    try:
        with open(path, "rb") as opened, np.load(opened, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except UNREADABLE as error:
        raise ArgumentError(f"{path!r} is not a saved search: {error}") from None


def _checked_header(path: str, arrays: Arrays) -> Any:
    """Removes and returns the header; refuses a file that was modified."""
    try:
        header = json.loads(arrays["header"].tobytes())
    except (KeyError, ValueError, RecursionError) as error:
        raise ArgumentError(f"{path!r} is not a saved search: {error}") from None
    _check_label(header)
    checksum = arrays.pop("checksum", None)
    if checksum is None or not np.array_equal(checksum, _checksum(arrays)):
        raise ArgumentError(
            f"{path!r} is damaged: its checksum does not match its contents",
            hint="start a new search, without resume",
        )
    del arrays["header"]
    return header


def _checksum(arrays: Arrays) -> npt.NDArray[Any]:
    """Returns a checksum of names, types, shapes and contents."""
    digest = hashlib.sha256()
    for name, value in sorted(arrays.items()):
        digest.update(repr((name, value.dtype.str, value.shape)).encode())
        digest.update(np.ascontiguousarray(value).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _question(execution: QueryExecution, query: Query) -> dict[str, Any]:
    """Returns everything that must be the same on resuming."""
    resolved = query_data(query)
    resolved.pop("limits", None)
    contexts = [
        [list(context.token_ids), base64.b64encode(context.data).decode(), context.logprob]
        for context in execution.contexts
    ]
    return {
        "format": FORMAT,
        "version": VERSION,
        "query": resolved,
        "beams": execution.limits.beams,
        "tolerance": execution.tolerance,
        "roots": contexts,
        "vocabulary": execution.session.vocabulary.fingerprint,
        "context_length": execution.session.model.context_length,
    }


def _check_label(header: Any) -> None:
    """Refuses a file that is not a saved search, or has another version."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise ArgumentError("the file is not a saved search")
    if header.get("version") != VERSION:
        found = header.get("version")
        raise ArgumentError(f"the version of the file format must be {VERSION}, got {found!r:.20}")


def _check(header: Any, execution: QueryExecution, query: Query) -> None:
    """Refuses a file of another query."""
    wanted = json.loads(json.dumps(_question(execution, query)))
    for name in ("vocabulary", "context_length"):
        if header.get(name) != wanted[name]:
            raise ModelError(
                f"the model must have the same {name} as the model of the saved search"
            )
    for name in ("query", "beams", "tolerance"):
        if header.get(name) != wanted[name]:
            raise ArgumentError(f"{name} must be the same as in the saved search")
    saved = header.get("roots")
    same = isinstance(saved, list) and [one[:2] for one in saved] == [
        one[:2] for one in wanted["roots"]
    ]
    if not same:
        raise ArgumentError("prompt and given must have the same tokens as in the saved search")
    assert isinstance(saved, list)
    pairs = zip(saved, wanted["roots"], strict=True)
    if any(abs(one[2] - other[2]) > CLOSE for one, other in pairs):
        raise ModelError("the model's log-probabilities differ from those of the saved search")


def _check_tokens(trie: Arrays, execution: QueryExecution) -> None:
    size, roots = len(execution.session.vocabulary), len(execution.contexts)
    tokens, listed = trie["token"], trie["_listed_ids"]
    inside = np.all((tokens[roots:] >= END) & (tokens[roots:] < size))
    if not inside or np.any(listed < 0) or np.any(listed >= size):
        raise ValueError("a token is outside the vocabulary")
    if not np.all(trie["parent"][:roots] == -1) or not np.all(trie["parent"][roots:] >= 0):
        raise ValueError("its contexts differ from those of the query")


def _probes(driver: Driver) -> Arrays:
    """Returns a few answers of the model that are still cached."""
    positions = driver.frontier.answer_cache
    nodes = positions.kept()[-PROBES:]
    ids, logprobs = [], []
    for node in nodes:
        row = np.asarray(positions.recall(node).logprobs, dtype=np.float64)
        best = np.argsort(-row, kind="stable")[:PROBED]
        ids.append(best)
        logprobs.append(row[best])
    shape = (len(nodes), len(ids[0]) if ids else 0)
    return {
        "probes": np.array(nodes, dtype=np.int64),
        "probes.ids": np.array(ids, dtype=np.int64).reshape(shape),
        "probes.logprobs": np.array(logprobs, dtype=np.float64).reshape(shape),
    }


def _check_answers(driver: Driver, arrays: Arrays) -> None:
    """Refuses a model that gives other answers."""
    nodes = arrays["probes"].tolist()
    if not nodes:
        return
    for node, position, ids, logprobs in zip(
        nodes,
        driver.frontier.answer_cache.evaluate(nodes),
        arrays["probes.ids"],
        arrays["probes.logprobs"],
        strict=True,
    ):
        row = np.asarray(position.logprobs, dtype=np.float64)
        if ids.max() >= len(row) or not np.allclose(row[ids], logprobs, rtol=0, atol=CLOSE):
            path = driver.frontier.trie.path(node)
            raise ModelError(
                f"the model's log-probabilities differ from those of the saved search after {path}"
            )


def _token_queue_to_arrays(driver: TokenSearch) -> Arrays:
    return {
        "queue": np.array(driver.frontier.queue.nodes(), dtype=np.int64),
        "hits": np.array(sorted(driver.hits), dtype=np.int64),
        "kept": np.array(sorted(driver.kept.items()), dtype=np.int64).reshape(-1, 2),
    }


def _restore_token_queue(driver: TokenSearch, arrays: Arrays) -> None:
    size = len(driver.frontier.trie)
    queue, hits = arrays["queue"], arrays["hits"]
    if np.any(queue < 0) or np.any(queue >= size) or not np.all(np.isin(hits, queue)):
        raise ValueError("the queue refers to nodes that do not exist")
    driver.restart(queue.tolist(), set(hits.tolist()), Counter(dict(arrays["kept"].tolist())))


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
