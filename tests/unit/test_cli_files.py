"""What the command line reads and writes: records, saved searches, servers."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")

import nanoarrow  # noqa: E402
from nanoarrow.ipc import InputStream  # noqa: E402

from formalm import Choice, Query, Regex, TableModel, Vocabulary, score  # noqa: E402
from formalm.cli import exit_status  # noqa: E402
from formalm.cli.app import app  # noqa: E402
from formalm.models.canary import WEIGHTS, canary  # noqa: E402
from formalm.probability import distortion  # noqa: E402
from formalm.query import Decoding  # noqa: E402
from formalm.records import Records, rescore  # noqa: E402
from tests.support.completions_server import serving  # noqa: E402

VOCABULARY = Vocabulary.from_tokens(
    [b"a", b"b", b"ab", None],
    end_token_ids=[3],
    encode=lambda text: [{"a": 0, "b": 1}[c] for c in text],
)
MODEL = TableModel.random(VOCABULARY, seed=3, order=2)


@pytest.fixture
def small_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formalm.cli.shared_options.chosen_model", lambda name: MODEL)


def run(*arguments: str):
    return typer_testing.CliRunner().invoke(app, list(arguments))


def objects(output: str) -> list[dict]:
    return [json.loads(line) for line in output.splitlines()]


@pytest.mark.usefixtures("small_model")
@pytest.mark.parametrize(
    "arguments",
    [
        ("search", "-r", "[ab]{1,2}", "--unique", "tokens"),
        ("sample", "-r", "[ab]{1,2}", "--event", "complete", "-n", "4", "--seed", "1"),
        ("score", "ab", "b"),
    ],
)
def test_records_are_written(arguments: tuple[str, ...], tmp_path: Path) -> None:
    lines, table = tmp_path / "x.jsonl", tmp_path / "x.arrow"
    done = run(*arguments, "--jsonl", str(lines), "--arrow", str(table))
    assert done.exit_code == 0, done.output
    records = Records.read_jsonl(lines)
    assert len(records) == len(done.stdout.splitlines()) > 0
    for record, again in zip(records, rescore(MODEL, records), strict=True):
        assert record.token_logprobs == pytest.approx(again, abs=1e-9)
    with InputStream.from_path(table) as file:
        rows = nanoarrow.ArrayStream(file).read_all().to_pylist()
    assert [row["text"] for row in rows] == [record.text for record in records]
    assert [row["expansions"] for row in rows] == [record.expansions for record in records]


@pytest.mark.usefixtures("small_model")
def test_a_search_resumes_from_a_file(tmp_path: Path) -> None:
    path = str(tmp_path / "x.search")
    asked = ("search", "-r", "[ab]{1,4}", "--json")
    *whole, _ = objects(run(*asked, "-n", "7").stdout)
    *first, facts = objects(run(*asked, "-n", "3", "--save", path).stdout)
    assert facts["truncated_by"] == "hits"
    *rest, facts = objects(run(*asked, "-n", "7", "--resume", path).stdout)
    assert [hit["text"] for hit in (*first, *rest)] == [hit["text"] for hit in whole]
    assert [hit["rank"] for hit in rest] == [4, 5, 6, 7]
    other = run("search", "-r", "[ab]{1,5}", "--resume", path)
    assert other.exit_code == exit_status.USAGE
    assert "must be the same as in the saved search" in other.stderr


@pytest.mark.usefixtures("small_model")
def test_scores_of_a_query_file(tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    query = Query(Choice(["ab", "b"]), event="complete", decoding=Decoding(top_k=3))
    path.write_text(query.to_toml(), encoding="utf-8")
    told = objects(run("score", "-q", str(path), "--json").stdout)
    expected = score(MODEL, ["b", "ab"], event="complete", decoding=Decoding(top_k=3))
    assert [one["text"] for one in told] == ["b", "ab"]
    for one, known in zip(told, expected, strict=True):
        assert one["logprob"] == (None if known.logprob == -math.inf else known.logprob)
        assert one["possible"] == known.possible
    assert run("score", "-q", str(path), "a").exit_code == exit_status.USAGE
    assert run("score").exit_code == exit_status.USAGE
    path.write_text(Query(Choice(["ab"]), given="a").to_toml(), encoding="utf-8")
    refused = run("score", "-q", str(path))
    assert (refused.exit_code, "given" in refused.stderr) == (exit_status.USAGE, True)
    path.write_text(Query(Regex("a*")).to_toml(), encoding="utf-8")
    endless = run("score", "-q", str(path))
    assert (endless.exit_code, "members to score" in endless.stderr) == (exit_status.ERROR, True)


@pytest.mark.usefixtures("small_model")
def test_beams() -> None:
    asked = ("search", "-r", "[ab]{3}", "--unique", "tokens", "--json")
    *hits, facts = objects(run(*asked, "--beams", "1").stdout)
    assert facts["truncated_by"] == "beams"
    *every, facts = objects(run(*asked, "-n", "99").stdout)
    assert facts["truncated_by"] is None
    assert 1 <= len(hits) < len(every)


@pytest.mark.usefixtures("small_model")
def test_distortion() -> None:
    (told,) = objects(
        run("distortion", "-c", "ab", "-c", "b", "--event", "complete", "--json").stdout
    )
    found = distortion(MODEL, Choice(["ab", "b"]), event="complete")
    assert told["exact"] is True
    expected = found.divergences["local"].total_variation.low
    assert told["divergences"]["local"]["total_variation"][0] == pytest.approx(expected)
    assert told["texts"] == list(found.texts)
    assert "exact" in run("distortion", "-c", "ab", "-c", "b", "--event", "complete").stdout
    drawn = (
        "distortion",
        "-r",
        "[ab]*",
        "--event",
        "complete",
        "--estimate",
        "--draws",
        "50",
        "--seed",
        "1",
        "--json",
    )
    (told,) = objects(run(*drawn).stdout)
    assert (told["exact"], told["seed"], told["texts"]) == (False, 1, [])


def test_a_server_can_be_used_as_a_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORMALM_API_KEY", "secret")
    asked = ("search", "-c", "man", "-c", "woman", "--prompt", "The ", "--unique", "tokens")
    asked += ("--json", "-n", "2")
    *expected, _ = objects(run(*asked).stdout)
    with serving(canary(), most=5000) as served:
        server = ("--model", served.url, "--tokenizer", str(WEIGHTS), "--bos-token-id", "0")
        size = str(len(canary().vocabulary))
        done = run(*asked, *server, "--top-logprobs", size, "--served-model", "bird")
        assert done.exit_code == 0, done.output
        *hits, _ = objects(done.stdout)
        assert [hit["text"] for hit in hits] == [hit["text"] for hit in expected]
        for one, other in zip(hits, expected, strict=True):
            assert one["logprob"] == pytest.approx(other["logprob"], abs=1e-4)
        assert served.headers[0]["Authorization"] == "Bearer secret"
        assert served.bodies[0]["model"] == "bird"
        few = ("mass", "-c", "man", "--prompt", "The ", "--event", "prefix", *server, "--json")
        (found,) = objects(run(*few, "--top-logprobs", "40").stdout)
        assert 0 <= found["low"] <= found["high"] <= 1
        assert served.bodies[-1]["logprobs"] == 40
        assert run(*few, "--top-logprobs", "0").exit_code == exit_status.USAGE
    missing = run("score", "a", "--model", "http://localhost:1/", "--tokenizer", "/no such file")
    assert missing.exit_code == exit_status.ERROR
    assert len(missing.stderr.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no disk that is always full")
def test_a_full_disk_is_an_error_of_one_line() -> None:
    command = [sys.executable, "-m", "formalm", "automaton", "-r", "a"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["error: [Errno 28] No space left on device"]


@pytest.mark.parametrize(
    "model",
    [
        "HTTP://h:0/v1?api-key=tok-5f3a",
        "ftp://me:tok-5f3a@h/v1",
        "http://me:tok-5f3a@h/v1",
        "http://h:abc/v1?k=tok-5f3a",
        "ws://h/v1?k=tok-5f3a",
    ],
)
@pytest.mark.parametrize("more", [[], ["--top-logprobs", "3"], ["--json"]])
def test_no_key_in_an_address_is_shown(model: str, more: list[str]) -> None:
    tokenizer = [] if model[0] in "fw" else ["--tokenizer", str(WEIGHTS)]
    command = ["search", "-r", "a", "--model", model, *tokenizer, *more]
    done = typer_testing.CliRunner().invoke(app, command)
    assert done.exit_code == 2
    assert "5f3a" not in done.output
