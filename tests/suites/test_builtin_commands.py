"""Every built-in suite on the command line: run, verdict, report, compare; killed and resumed.

In `make test` with few items and draws; the slow tests ask the whole suites.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from formalm.suites import builtin_names
from tests.support.processes import Ended, formalm, formalm_commands

NULL = Path(__file__).parents[1] / "data" / "canary-null"
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
"""Threads that wait for work take more time than the small matrices of canary."""
FEW = ("--items-per-slot", "2", "--max-draws", "3")
FORMS = {
    "html": "report.html",
    "markdown": "report.md",
    "junit": "junit.xml",
    "lm-eval": "lm-eval.json",
    "parquet": "numbers.parquet",
}
VERDICTS = {0: "pass", 1: "fail", 3: "inconclusive"}


def conclusion(ended: Ended) -> str:
    """The verdict that a command printed last, which its exit code has to say too."""
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.code in VERDICTS, (ended.code, ended.stderr)
    last = ended.stdout.splitlines()[-1]
    assert last.startswith(f"{VERDICTS[ended.code]}: ")
    return VERDICTS[ended.code]


def check_runs(
    name: str,
    folder: Path,
    options: tuple[str, ...],
    timeout: float,
    forms: tuple[str, ...] = tuple(FORMS),
) -> list[str]:
    """Run a suite on canary and on its twin, and everything that follows; the verdicts of both."""
    one, two = folder / "canary", folder / "null"
    reports = [("suite", "report", one, "--format", form) for form in forms]
    compared = ("suite", "compare", one, two)
    ended = formalm_commands(
        [
            ("suite", "run", name, one, *options),
            ("suite", "run", name, two, "--model", NULL, *options),
            ("suite", "verdict", one, "--json"),
            *reports,
            compared,
        ],
        timeout=timeout,
        env=ONE_THREAD,
    )
    verdicts = [conclusion(each) for each in ended[:2]]
    rows = [json.loads(line) for line in ended[2].stdout.splitlines()]
    assert rows[-1] == {"verdict": verdicts[0]}
    answered = rows[-2]["answered"]
    assert len((one / "results.jsonl").read_text().splitlines()) == answered
    assert sum("metric" in row for row in rows) > 0
    for each in ended[3:]:
        assert each.code == 0, each.stderr
        assert "Traceback" not in each.stderr
    for form in forms:
        assert (one / FORMS[form]).stat().st_size > 100
    if "markdown" in forms:
        assert verdicts[0] in (one / "report.md").read_text().splitlines()[0]
    assert "Rounding may change" in ended[-1].stdout
    if "junit" in forms:
        junit = ElementTree.parse(one / "junit.xml").getroot()  # noqa: S314 - it is ours
        told = {"fail": "failures", "inconclusive": "errors"}.get(verdicts[0])
        assert told is None or int(junit.attrib[told]) > 0
        assert len(junit.findall("testcase")) == int(junit.attrib["tests"]) > 0
        assert json.loads((one / "lm-eval.json").read_text())["verdict"] == verdicts[0]
    return verdicts


@pytest.mark.parametrize("name", builtin_names())
def test_a_built_in_suite_runs_from_the_command_line(name: str, tmp_path: Path) -> None:
    forms = tuple(FORMS) if name == "memorization.urls" else ("html",)
    few = ("--items-per-slot", "1") if name == "knowledge.lambada" else FEW
    verdicts = check_runs(name, tmp_path, few, 120, forms)
    # Few items and draws are never taken for the whole; some suites have no more.
    assert "pass" not in verdicts or name in ("bias.professions", "pii")


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", builtin_names())
def test_a_whole_built_in_suite_runs_from_the_command_line(name: str, tmp_path: Path) -> None:
    canary, _ = check_runs(name, tmp_path, (), 1500)
    mastered = ("knowledge.lambada", "knowledge.structured")
    mastered += ("structured.conformance", "tokenization.canonical_rate")
    assert canary == ("pass" if name in mastered else "fail")


def killed(folder: Path, arguments: tuple[str, ...], after: int) -> None:
    """Begin a run, and kill it without warning once so many items are answered."""
    process = subprocess.Popen(
        [sys.executable, "-m", "formalm", "suite", "run", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **ONE_THREAD},
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(f"{after}/"):
            break
    process.send_signal(signal.SIGKILL if hasattr(signal, "SIGKILL") else signal.SIGTERM)
    process.communicate()
    assert process.returncode != 0
    assert not (folder / "results.jsonl").exists()


@pytest.mark.parametrize(
    ("name", "options"),
    [("bias.professions", ()), ("memorization.canaries", ("--max-draws", "2"))],
)
def test_a_killed_run_is_resumed_to_the_same_results(name, options, tmp_path: Path) -> None:
    whole, part = tmp_path / "whole", tmp_path / "part"
    killed(part, (name, str(part), *options), after=2)
    ended = formalm_commands(
        [
            ("suite", "verdict", part),
            ("suite", "resume", part),
            ("suite", "resume", part),
            ("suite", "run", name, whole, *options),
        ],
        env=ONE_THREAD,
    )
    assert ended[0].code == 3
    assert conclusion(ended[1]) == conclusion(ended[2]) == conclusion(ended[3])
    assert ended[1].stdout == ended[3].stdout
    assert ended[2].stderr == ""  # nothing was left to be asked
    results = (part / "results.jsonl").read_bytes()
    assert results == (whole / "results.jsonl").read_bytes()


@pytest.mark.parametrize(
    "name",
    [
        "bias.professions",
        pytest.param("memorization.urls", marks=pytest.mark.slow),
        pytest.param("memorization.near_verbatim", marks=pytest.mark.slow),
        pytest.param("memorization.canaries", marks=pytest.mark.slow),
        pytest.param("pii", marks=pytest.mark.slow),
    ],
)
def test_batches_of_other_sizes_make_no_difference(name: str, tmp_path: Path) -> None:
    runs = [tmp_path / size for size in ("4", "16")]
    *_, compared, page = formalm_commands(
        [
            *(("suite", "run", name, run, "--batch-size", run.name, *FEW) for run in runs),
            ("suite", "compare", *runs, "--json"),
            ("suite", "compare", *runs),
        ],
        env=ONE_THREAD,
    )
    rows = [json.loads(line) for line in compared.check().stdout.splitlines()]
    assert rows
    for row in rows:
        assert (row["higher"], row["lower"]) == (0, 0), row
        assert row["p_value"] in (None, 1.0)
    assert sum(row["equal"] for row in rows) > 0
    assert "The batch sizes are 4 and 16" in page.check().stdout


def test_models_that_differ_beyond_rounding_are_distinguished(tmp_path: Path) -> None:
    runs = [tmp_path / model for model in ("canary", "null")]
    *_, compared, page = formalm_commands(
        [
            ("suite", "run", "bias.professions", runs[0]),
            ("suite", "run", "bias.professions", runs[1], "--model", NULL),
            ("suite", "compare", *runs, "--json"),
            ("suite", "compare", *runs, "--format", "html", "--out", tmp_path / "compare.html"),
        ],
        env=ONE_THREAD,
    )
    rows = {row["metric"]: row for row in map(json.loads, compared.check().stdout.splitlines())}
    assert rows["log_ratio"]["higher"] + rows["log_ratio"]["lower"] > 0
    page.check()
    assert "Rounding may change" in (tmp_path / "compare.html").read_text()


def test_few_items_and_draws_are_recorded(tmp_path: Path) -> None:
    run, name = tmp_path / "run", "toxicity.explicit"
    ended, resumed, other, compared = formalm_commands(
        [
            ("suite", "run", name, run, "--items-per-slot", 1, "--max-draws", 2),
            ("suite", "resume", run, "--items-per-slot", 2),
            ("suite", "run", name, run, "--items-per-slot", 1),
            ("suite", "run", name, tmp_path / "more", "--items-per-slot", 1, "--max-draws", 3),
        ],
        env=ONE_THREAD,
    )
    assert "at most 2 draws per item" in ended.stdout
    assert conclusion(ended) != "pass"
    answered = [int(re.findall(r"(\d+)/19 items", each.stdout)[0]) for each in (ended, resumed)]
    assert answered == [6, 11]
    assert other.code == 2
    assert "with different values of max_draws" in other.stderr
    compared = formalm("suite", "compare", str(run), str(tmp_path / "more"))
    assert compared.code == 2
    assert "same draws per item: 2, and 3" in compared.stderr
