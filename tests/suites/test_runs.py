"""Runs: killed and resumed, shared, cached, divided, damaged."""

import json
import random
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from formalm import ArgumentError, FunctionModel, SuiteError, TableModel
from formalm.models.canary import WEIGHTS, load
from formalm.models.model_identity import model_description
from formalm.suites import Run, Suite, run_suite
from tests.suites.small_suites import MODEL, TINY, VOCABULARY

SUITE = Suite.from_toml(TINY)
SLOW = Path(__file__).with_name("slow_run.py")


def whole(directory: Path, **options) -> bytes:
    with run_suite(SUITE, MODEL, directory, identity="small", **options) as run:
        assert run.is_complete
        return (run.directory / "results.jsonl").read_bytes()


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return whole(tmp_path_factory.mktemp("whole") / "run")


def start(directory: Path) -> subprocess.Popen:
    return subprocess.Popen(
        [sys.executable, str(SLOW), str(directory)], stdout=subprocess.PIPE, text=True
    )


def without_kind(text: bytes) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def test_a_run_is_what_its_suite_gives_without_one(results: bytes, tmp_path: Path) -> None:
    rows = without_kind(results)
    assert [row["where"] for row in rows] == [item.where for item in SUITE.items()]
    with run_suite(SUITE, MODEL, tmp_path / "run", identity="small") as run:
        found = run.evaluate()
        assert len(found.outcomes) == 3
        assert found.verdict in ("pass", "fail", "inconclusive")
        assert len(run.journal) == len(SUITE.items())
    # Without a model, from the directory alone.
    with Run(tmp_path / "run") as again:
        assert again.evaluate() == found
        assert again.manifest.suite == SUITE


@pytest.mark.parametrize("seed", range(2))
def test_a_killed_run_resumes_to_the_same_results(seed, results, tmp_path: Path) -> None:
    generator, kills = random.Random(seed), 0
    for _ in range(3):
        process = start(tmp_path / "run")
        for _ in range(generator.randint(0, 3)):
            assert process.stdout.readline()
        time.sleep(generator.uniform(0.0, 0.05))
        process.kill()
        process.communicate()
        kills += process.returncode != 0
    process = start(tmp_path / "run")
    lines = process.communicate(timeout=120)[0].splitlines()
    assert process.returncode == 0
    assert kills
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == results
    with Run(tmp_path / "run") as run:
        assert len(run.journal) == len(SUITE.items())
        assert len(lines) <= len(SUITE.items())
    assert not list((tmp_path / "run").glob("*-journal"))


def test_processes_share_a_run(results: bytes, tmp_path: Path) -> None:
    processes = [start(tmp_path / "run") for _ in range(3)]
    told = [process.communicate(timeout=120)[0].split() for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == results
    # An item was asked once, whoever asked it.
    assert sum(lines.count("model") for lines in told) == len(SUITE.items())


def test_shards_together_are_the_whole(results: bytes, tmp_path: Path) -> None:
    for number in (1, 2, 3):
        with run_suite(SUITE, MODEL, tmp_path / "one", identity="small", shard=(number, 3)) as run:
            assert run.is_complete == (number == 3)
    assert (tmp_path / "one" / "results.jsonl").read_bytes() == results
    for number in (1, 2):
        directory = tmp_path / f"shard{number}"
        run_suite(SUITE, MODEL, directory, identity="small", shard=(number, 2)).close()
    with Run(tmp_path / "shard1") as run:
        assert run.evaluate().verdict != "pass"
        assert run.absorb(tmp_path / "shard2") == len(SUITE.items()) // 2
        assert run.absorb(tmp_path / "shard2") == 0
        assert run.write_results().read_bytes() == results


def test_a_limit_is_a_number_of_items(results: bytes, tmp_path: Path) -> None:
    for done in (5, 10, len(SUITE.items())):
        with run_suite(SUITE, MODEL, tmp_path / "run", identity="small", limit=5) as run:
            assert len(run.answered) == done
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == results


def counting() -> tuple[FunctionModel, list[int]]:
    calls = []

    def logits(prefixes):
        calls.append(len(prefixes))
        return MODEL.next_logprobs(prefixes)

    return FunctionModel(VOCABULARY, logits), calls


def test_a_cache_saves_every_question(tmp_path: Path) -> None:
    model, calls = counting()
    sources: list[str] = []
    options = {"identity": "small", "cache": tmp_path / "cache.sqlite"}
    told = lambda step: sources.append(step.source)  # noqa: E731
    run_suite(SUITE, model, tmp_path / "one", progress=told, **options).close()
    assert set(sources) == {"model"}
    assert calls
    before = (tmp_path / "one" / "results.jsonl").read_bytes()
    calls.clear(), sources.clear()
    run_suite(SUITE, model, tmp_path / "two", progress=told, **options).close()
    assert (set(sources), calls) == ({"cache"}, [])
    assert (tmp_path / "two" / "results.jsonl").read_bytes() == before
    # Another batch size rounds otherwise, so nothing is found.
    run_suite(SUITE, model, tmp_path / "three", batch_size=3, **options).close()
    assert calls


def test_one_weight_changes_the_key(tmp_path: Path) -> None:
    plain, changed = load(WEIGHTS), load(WEIGHTS)
    assert model_description(plain) == model_description(load(WEIGHTS))
    weights = changed.network._layers[1].weights["mlp.c_fc.weight"]
    weights[0, 0] = np.nextafter(weights[0, 0], np.float32(9), dtype=np.float32)
    assert model_description(plain) != model_description(changed)
    text = TINY.replace('["a", "b", "ab"]', '["art"]').replace('["m", "w"]', '["man", "woman"]')
    head = text.split("[queries.both]")[0]
    suite, sources = Suite.from_toml(head), []
    for model, name in ((plain, "one"), (plain, "two"), (changed, "three")):
        run_suite(
            suite, model, tmp_path / name, cache=tmp_path / "cache",
            progress=lambda step: sources.append(step.source),
        ).close()  # fmt: skip
    assert sources == ["model"] * 2 + ["cache"] * 2 + ["model"] * 2


def test_tables_of_different_models_are_distinguished() -> None:
    def table(share: float) -> TableModel:
        vocabulary = type(VOCABULARY).from_tokens([b"a", None], end_token_ids=[1])
        return TableModel(vocabulary, {(): [share, 1 - share]}, default=[0.5, 0.5], order=1)

    assert model_description(table(0.25)) == model_description(table(0.25))
    assert model_description(table(0.25)) != model_description(table(0.250001))


def test_indistinguishable_models_need_a_name(tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match="identity must be given"):
        run_suite(SUITE, MODEL, tmp_path / "run")
    with pytest.raises(ArgumentError, match="identity must be None"):
        model_description(load(WEIGHTS), "canary")


def test_a_directory_holds_one_run(tmp_path: Path) -> None:
    options = {"identity": "small", "limit": 1}
    run_suite(SUITE, MODEL, tmp_path / "run", **options).close()
    other = Suite.from_toml(TINY.replace("max = 0.9", "max = 0.8"))
    with pytest.raises(SuiteError, match="contains a run with different values of suite"):
        run_suite(other, MODEL, tmp_path / "run", **options)
    with pytest.raises(SuiteError, match="different values of model and batch_size"):
        run_suite(SUITE, MODEL, tmp_path / "run", identity="large", batch_size=2)
    with (
        Run(tmp_path / "run") as run,
        pytest.raises(SuiteError, match="contains a run with different values of model"),
    ):
        run.work(MODEL, identity="large")
    path = tmp_path / "run" / "run.json"
    data = json.loads(path.read_text())
    data["versions"]["numpy"] = "1.0"
    path.write_text(json.dumps(data))
    with (
        Run(tmp_path / "run") as run,
        pytest.raises(SuiteError, match="contains a run with different values of versions"),
    ):
        run.work(MODEL, identity="small")


def test_word_lists_are_part_of_a_run(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text("a\nb\nab\n")
    text = TINY.replace('what = ["a", "b", "ab"]', 'what = {file = "words.txt"}')
    suite = Suite.from_toml(text, folder=tmp_path)
    run_suite(suite, MODEL, tmp_path / "run", identity="small", limit=1).close()
    (tmp_path / "words.txt").unlink()
    with Run(tmp_path / "run") as run:
        assert run.manifest.suite == SUITE


@pytest.mark.parametrize(
    ("text", "said"),
    [(None, "cannot read"), ("{", "damaged"), ("[]", "damaged"), ("{}", "damaged"),
     ('{"format": "x", "version": 1}', "must have the format 'formalm-run'"),
     ("[" * 100_000, "damaged"),
     ('{"format": "formalm-run", "version": 1, "suite": "x"}', "not valid TOML"),
     ('{"format": "formalm-run", "version": 1, "suite": 3}', "damaged")],
)  # fmt: skip
def test_a_damaged_run_is_reported_as_damaged(text, said, tmp_path: Path) -> None:
    if text is not None:
        (tmp_path / "run.json").write_text(text)
    with pytest.raises(SuiteError, match=said):
        Run(tmp_path)


def test_a_damaged_journal_is_reported_as_damaged(tmp_path: Path) -> None:
    run_suite(SUITE, MODEL, tmp_path / "run", identity="small", limit=1).close()
    path = tmp_path / "run" / "journal.sqlite"
    data = path.read_bytes()
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(SuiteError, match="not a database"):
        Run(tmp_path / "run")
    path.write_bytes(data[:4096] + b"\xff" * (len(data) - 4096))
    with pytest.raises(SuiteError, match="journal"), Run(tmp_path / "run") as run:
        run.evaluate()
    path.unlink()
    path.mkdir()
    with pytest.raises(SuiteError, match="unable to open"):
        Run(tmp_path / "run")


def test_a_full_disk_loses_nothing(results: bytes, tmp_path: Path) -> None:
    """SQLite is told that there is no more room, which it reports as a full disk."""
    with Run.begin(tmp_path / "run", SUITE, MODEL, identity="small") as run:
        pages = run.journal._file.execute("PRAGMA page_count").fetchone()[0]
        run.journal._file.execute(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(SuiteError, match=r"(?s)full.*free disk space and resume"):
            run.work(MODEL, identity="small")
        kept = len(run.journal)
        assert kept < len(SUITE.items())
    with run_suite(SUITE, MODEL, tmp_path / "run", identity="small") as run:
        assert run.is_complete
    assert (tmp_path / "run" / "results.jsonl").read_bytes() == results


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SuiteError, match="cannot write"):
        run_suite(SUITE, MODEL, tmp_path / "file" / "run", identity="small")


def test_an_interruption_keeps_what_was_answered(results: bytes, tmp_path: Path) -> None:
    def interrupt(step) -> None:
        if step.done == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_suite(SUITE, MODEL, tmp_path / "run", identity="small", progress=interrupt)
    with Run(tmp_path / "run") as run:
        assert len(run.journal) == 4
    assert whole(tmp_path / "run") == results


def test_progress_reports_finished_and_total_items(tmp_path: Path) -> None:
    steps: list = []
    whole(tmp_path / "run", progress=steps.append)
    total = len(SUITE.items())
    assert [step.done for step in steps] == list(range(1, total + 1))
    assert {step.total for step in steps} == {total}
    assert steps[-1].remaining_seconds == 0
    assert all(step.remaining_seconds > 0 for step in steps[:-1])


@pytest.mark.parametrize(
    "options",
    [{"limit": 0}, {"limit": 1.5}, {"shard": (0, 2)}, {"shard": (3, 2)}, {"shard": (1,)},
     {"shard": "1/2"}, {"shard": (True, 2)}, {"batch_size": 0}],
)  # fmt: skip
def test_wrong_options_are_refused(options, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=next(iter(options))):
        run_suite(SUITE, MODEL, tmp_path / "run", identity="small", **options)
