"""A search that was saved and resumed finds what a whole one finds."""

import json
import os
from contextlib import suppress
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import BinaryIO

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import (
    ArgumentError,
    Choice,
    ConcurrencyError,
    FunctionModel,
    Limits,
    ModelError,
    Query,
    Regex,
    TableModel,
    Vocabulary,
    search,
)
from formalm.constraint import Constraint
from formalm.execution.query_contexts import query_contexts
from formalm.execution.query_execution import QueryExecution
from formalm.models import Session
from formalm.models.canary import canary
from formalm.query import Decoding
from formalm.searching.string_search import StringSearch

TOKENS = [b"a", b"b", b"ab", b"ba", b" ", None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[5], encode=lambda text: [{"a": 0, "b": 1, " ": 4}[c] for c in text]
)
MODEL = TableModel.random(VOCABULARY, seed=5, order=2)
QUERIES = [
    Query(Regex("(a|b){1,5}"), event="complete"),
    Query(Regex("[ab]*"), unique="tokens"),
    Query(Regex("[ab]*"), unique="tokens", limits=Limits(beams=2), max_tokens=4),
    Query(Regex("ab? (a|b)+"), given=Choice(["a", "ab "]), prefix_cost="joint", max_tokens=4),
    Query(Regex("ab? (a|b)+"), given=Choice(["a", "ab "]), unique="tokens", event="complete"),
    Query(Regex("(a|b|ab)*"), decoding=Decoding(top_k=3), renormalize=True, max_tokens=5),
]


@settings(max_examples=40)
@given(
    st.sampled_from(QUERIES),
    st.integers(0, 60),
    st.sampled_from([1, 4, 16]),
    st.sampled_from([0.0, 1e-2]),
)
def test_a_resumed_search_is_a_whole_one(
    tmp_path_factory: pytest.TempPathFactory,
    query: Query,
    steps: int,
    batch_size: int,
    tolerance: float,
) -> None:
    path = tmp_path_factory.mktemp("saved") / "search"
    options = {"prompt": "b", "batch_size": batch_size, "tolerance": tolerance}
    whole = list(islice(search(MODEL, query, **options), 40))
    first = search(MODEL, query, **options)
    found = [hit for hit in (first.advance() for _ in range(steps)) if hit is not None]
    if first.status == "running":
        first.save(path)
        again = search(
            TableModel.random(VOCABULARY, seed=5, order=2), query, resume=path, **options
        )
        assert again.hits == len(found)
        assert again.forwards >= first.forwards
        found += islice(again, max(0, 40 - len(found)))
    assert found[:40] == whole
    records = [hit.record() for hit in found[:40]]
    assert [one.token_logprobs for one in records] == [one.record().token_logprobs for one in whole]


@pytest.mark.parametrize("unique", ["tokens", "strings"])
def test_a_search_resumes_after_limits_and_interruptions(tmp_path: Path, unique: str) -> None:
    language = Regex("[ab]*")
    whole = list(islice(search(MODEL, language, unique=unique), 60))
    found, path = [], None
    for forwards in (3, 9, 30, 200):
        limits = Limits(forwards=forwards)
        part = search(MODEL, language, unique=unique, limits=limits, resume=path)
        found += list(part)
        assert part.truncated_by == "forwards"
        path = tmp_path / f"{forwards}"
        part.save(path)
    assert found[:60] == whole[: len(found)]
    calls = []

    def logits(prefixes: list) -> list:
        calls.append(len(prefixes))
        if len(calls) == 4:
            raise KeyboardInterrupt
        return [MODEL.next_logprobs([prefix])[0] for prefix in prefixes]

    model = FunctionModel(VOCABULARY, logits)
    options = {"unique": unique, "batch_size": 2}
    part = search(model, language, **options)
    found = list(part)
    assert part.status == "interrupted"
    part.save(tmp_path / "interrupted")
    rest = search(model, language, resume=tmp_path / "interrupted", **options)
    found += islice(rest, 60 - len(found))
    assert [(hit.text, hit.token_ids) for hit in found] == [
        (hit.text, hit.token_ids) for hit in whole
    ]


def test_evicted_answers_are_computed_again() -> None:
    def strings(budget: int | None) -> list:
        session = Session(MODEL)
        query = Query(Regex("[ab ]{1,3}"))
        constraint = Constraint(query.effective_language, VOCABULARY)
        roots = query_contexts(session, constraint, query, None, shares=False)
        limits = Limits(None, state_bytes=budget)
        execution = QueryExecution(
            session, constraint, roots, Decoding(), False, True, 4, None, limits
        )
        driver = StringSearch(execution)
        return [found for found in driver.run() if found is not None]

    assert strings(1) == strings(None)


def test_a_search_of_the_canary_resumes_from_a_file(tmp_path: Path) -> None:
    query = Query(Regex("The (man|woman|doctor)( was)?"), given="The", tokenization="canonical")
    whole = list(search(canary(), query))
    first = search(canary(), query)
    found = [next(first), next(first)]
    first.save(tmp_path / "search")
    found += search(canary(), query, resume=tmp_path / "search")
    assert [hit.text for hit in found] == [hit.text for hit in whole]
    assert np.allclose([hit.logprob for hit in found], [hit.logprob for hit in whole], atol=1e-5)


def saved(path: Path, query: Query = QUERIES[0], model: TableModel = MODEL) -> Path:
    hits = search(model, query, prompt="b")
    next(hits)
    hits.save(path)
    return path


def test_other_questions_are_refused(tmp_path: Path) -> None:
    path = saved(tmp_path / "search")
    query = QUERIES[0]
    search(MODEL, query, prompt="b", resume=path, limits=Limits(hits=3), batch_size=3)
    with pytest.raises(ArgumentError, match="query"):
        search(MODEL, Query(Regex("a")), prompt="b", resume=path)
    with pytest.raises(ArgumentError, match="query"):
        search(MODEL, query, prompt="b", unique="tokens", resume=path)
    with pytest.raises(ArgumentError, match="prompt"):
        search(MODEL, query, prompt="a", resume=path)
    with pytest.raises(ArgumentError, match="tolerance"):
        search(MODEL, query, prompt="b", tolerance=0, resume=path)
    with pytest.raises(ModelError, match="the model's log-probabilities differ from those of the"):
        search(TableModel.random(VOCABULARY, seed=6, order=2), query, prompt="b", resume=path)
    other = Vocabulary.from_tokens(
        [*TOKENS[:5], b"x", None],
        end_token_ids=[6],
        encode=lambda text: [{"a": 0, "b": 1, " ": 4}[c] for c in text],
    )
    with pytest.raises(ModelError, match="vocabulary"):
        search(TableModel.random(other, seed=5, order=2), query, prompt="b", resume=path)
    beam = saved(tmp_path / "beam", QUERIES[2])
    with pytest.raises(ArgumentError, match="beam"):
        search(MODEL, QUERIES[2], prompt="b", resume=beam, limits=Limits(beams=3))


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    for query in (QUERIES[0], QUERIES[1]):
        path = saved(tmp_path / "search", query)
        whole = path.read_bytes()
        for bad in (b"", b"x", whole[: len(whole) // 2]):
            path.write_bytes(bad)
            with pytest.raises(ArgumentError, match="not a saved search"):
                search(MODEL, query, prompt="b", resume=path)
        path.write_bytes(whole)
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        for name, value in arrays.items():
            if name == "header":
                continue
            wrong = [None]
            if value.dtype.itemsize > 1 and name != "kept":
                wrong += [value[:-1], np.full_like(value, 10_000)] if value.size else []
            for changed in wrong:
                broken = {key: one for key, one in arrays.items() if key != name}
                if changed is not None:
                    broken[name] = changed
                with open(path, "wb") as out:
                    np.savez(out, **broken)
                with pytest.raises(ArgumentError, match="damaged"):
                    search(MODEL, query, prompt="b", resume=path)
        header = json.loads(arrays["header"].tobytes())
        header["version"] = 99
        arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
        with open(path, "wb") as out:
            np.savez(out, **arrays)
        with pytest.raises(ArgumentError, match="version"):
            search(MODEL, query, prompt="b", resume=path)
    with pytest.raises(ArgumentError, match="cannot write"):
        search(MODEL, QUERIES[0]).save(tmp_path / "none" / "search")


@pytest.mark.parametrize("unique", ["tokens", "strings"])
@pytest.mark.parametrize("failing", [1, 2, 5])
def test_a_search_continues_after_an_error(unique: str, failing: int) -> None:
    language = Regex("[ab ]{1,3}")
    whole = [(hit.text, hit.token_ids) for hit in search(MODEL, language, unique=unique)]
    calls = 0

    def logits(prefixes: list) -> np.ndarray:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError("no answer")
        return MODEL.next_logprobs(prefixes)

    model = FunctionModel(VOCABULARY, logits)
    found = search(model, language, unique=unique, batch_size=2)
    hits = []
    for _ in range(2):
        with suppress(OSError):
            for hit in found:
                hits.append((hit.text, hit.token_ids))
    assert (found.status, calls > failing) == ("exhausted", True)
    assert sorted(hits) == sorted(whole)


@pytest.mark.parametrize("query", QUERIES[:2])
def test_any_change_is_refused(tmp_path: Path, query: Query) -> None:
    path = saved(tmp_path / "search", query)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    changes = {}
    for name, value in arrays.items():
        if value.size:
            # What other checks have nothing to say about: a row fewer, one number a little off.
            changes[name] = value[:-1]
            last = value.copy()
            last.flat[-1] = last.flat[-1] * 0.5 if last.dtype.kind == "f" else last.flat[-1] ^ 1
            changes[f"{name}, last"] = last
    for name, value in changes.items():
        with open(path, "wb") as out:
            np.savez(out, **{**arrays, name.partition(",")[0]: value})
        with pytest.raises(ArgumentError, match=r"damaged|is not a saved search|version"):
            search(MODEL, query, prompt="b", resume=path)
    for extra in ({}, {"more": np.zeros(1)}):
        with open(path, "wb") as out:
            np.savez(
                out,
                **{key: one for key, one in arrays.items() if extra or key != "checksum"},
                **extra,
            )
        with pytest.raises(ArgumentError, match="damaged"):
            search(MODEL, query, prompt="b", resume=path)


def test_changed_bytes_are_refused_or_make_no_difference(tmp_path: Path) -> None:
    path = saved(tmp_path / "search")
    whole, generator = path.read_bytes(), np.random.default_rng(1)
    wanted = list(islice(search(MODEL, QUERIES[0], prompt="b", resume=path), 3))
    refused = 0
    for _ in range(80):
        changed = bytearray(whole)
        changed[generator.integers(len(whole))] ^= 1 << generator.integers(8)
        path.write_bytes(changed)
        try:
            found = search(MODEL, QUERIES[0], prompt="b", resume=path)
        except ArgumentError:
            refused += 1
        else:  # a time or a field of the zip file that nobody reads
            assert list(islice(found, 3)) == wanted
    assert refused > 40


def test_a_device_is_not_replaced(tmp_path: Path) -> None:
    hits = search(MODEL, QUERIES[0])
    next(hits)
    pipe, link = tmp_path / "pipe", tmp_path / "link"
    os.mkfifo(pipe)
    link.symlink_to(pipe)
    (tmp_path / "folder").mkdir()
    for path in (pipe, link, tmp_path / "folder", "/dev/null"):
        with pytest.raises(ArgumentError, match="not a regular file"):
            hits.save(path)
    assert pipe.is_fifo()
    assert link.is_symlink()
    assert sorted(one.name for one in tmp_path.iterdir()) == ["folder", "link", "pipe"]


def test_the_target_of_a_link_is_written(tmp_path: Path) -> None:
    hits = search(MODEL, QUERIES[0], prompt="b")
    next(hits)
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    target.chmod(0o600)
    link.symlink_to(target)
    (tmp_path / "target.part").write_text("mine")
    hits.save(link)
    assert link.is_symlink()
    assert target.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "target.part").read_text() == "mine"
    assert search(MODEL, QUERIES[0], prompt="b", resume=target).hits == 1
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()])
def test_a_failed_write_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    path = tmp_path / "search"
    path.write_text("before")

    def fails(file: BinaryIO, **arrays: object) -> None:
        file.write(b"half")
        raise error

    monkeypatch.setattr(np, "savez_compressed", fails)
    hits = search(MODEL, QUERIES[0])
    with pytest.raises((ArgumentError, KeyboardInterrupt)):
        hits.save(path)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]


@pytest.mark.parametrize("path", [5, None, 1.5, b"x", "", "a\0b"])
def test_invalid_paths_are_refused(path: object) -> None:
    with pytest.raises(ArgumentError, match="path"):
        search(MODEL, QUERIES[0]).save(path)
    if path is not None:
        with pytest.raises(ArgumentError, match="path"):
            search(MODEL, QUERIES[0], resume=path)


def test_one_search_in_several_threads() -> None:
    raised = []

    def report(progress: object) -> None:
        thread = Thread(target=use)
        thread.start()
        thread.join()

    def use() -> None:
        for call in (lambda: next(found), lambda: found.save("none")):
            try:
                call()
            except ConcurrencyError as error:
                raised.append(error)

    found = search(MODEL, QUERIES[0], progress=report)
    assert next(found) == next(search(MODEL, QUERIES[0]))
    assert len(raised) >= 2
    assert found.status == "running"
