"""Checkpoints of searches: writing the state to a file, and resuming from it.

A file has a header, JSON with a label, a version and the query, and the arrays of the native
frontier: the tree, the queue, and the hits. It does not contain the model's answers, except for a
few that identify the model. States of the language are restored by reading tokens and bytes again.
"""

from __future__ import annotations

import base64
import hashlib
import json
import time
import zipfile
import zlib
from dataclasses import asdict
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt

from formalm.atomic_write import path_of, write_atomically
from formalm.errors import ArgumentError, FormalmError, ModelError
from formalm.execution.query_execution import QueryExecution
from formalm.query.query import Query
from formalm.query.serialization import query_data
from formalm.searching.string_search import StringSearch
from formalm.searching.token_search import TokenSearch

__all__ = ["FORMAT", "VERSION", "load", "save"]

FORMAT = "formalm-search"
VERSION = 4
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
    execution = driver.execution
    header = {**_question(execution, query), "hits": hits, "covered": execution.covered}
    header |= asdict(execution.cost())
    header |= {"cut_by_context": execution.cut_by_context, "cut_by_beam": execution.cut_by_beam}
    arrays = driver.frontier.arrays() | _probes(driver)
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
    execution = driver.execution
    try:
        cut = (bool(header["cut_by_context"]), bool(header["cut_by_beam"]))
        driver.restart(arrays, cut)
        hits, expansions = int(header["hits"]), int(header["expansions"])
        spent = {name: int(header[name]) for name in SPENT}
        execution.covered = header["covered"]
        execution.started = time.monotonic() - float(header["seconds"])
        execution.cut_by_context, execution.cut_by_beam = cut
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
        raise ArgumentError(
            f"the version of the file format must be {VERSION}, got {found!r:.20}",
            hint="start the search again, without resume: other versions' files cannot be read",
        )


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


def _probes(driver: Driver) -> Arrays:
    """Returns a few answers of the model that are still cached."""
    positions = driver.rows.answer_cache
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
        driver.rows.answer_cache.evaluate(nodes),
        arrays["probes.ids"],
        arrays["probes.logprobs"],
        strict=True,
    ):
        row = np.asarray(position.logprobs, dtype=np.float64)
        if ids.max() >= len(row) or not np.allclose(row[ids], logprobs, rtol=0, atol=CLOSE):
            path = driver.frontier.path(node)
            raise ModelError(
                f"the model's log-probabilities differ from those of the saved search after {path}"
            )
