"""Assertions on models: three outcomes, and none that nobody looked at."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from formalm import ArgumentError, Limits, Query, Regex, TableModel, mass
from formalm.testing import (
    Inconclusive,
    assert_conforms,
    assert_mass,
    assert_never,
    assert_rank,
)
from formalm.testing.threshold_verdict import open_claims
from tests.support.tiny_models import AB_MODEL, AB_VOCABULARY

ENDLESS = Query(Regex("(a|b)*b"), event="contains")


def test_masses_are_compared_for_all_that_is_known() -> None:
    truth = mass(AB_MODEL, ["a", "b"], event="complete", tolerance=0.0)
    assert truth.low == pytest.approx(0.1875)
    assert assert_mass(AB_MODEL, ["a", "b"], event="complete") < 0.19
    assert assert_mass(AB_MODEL, ["a", "b"], event="complete") >= 0.18
    with pytest.raises(AssertionError, match=r"must be < 0\.18") as failed:
        _ = assert_mass(AB_MODEL, ["a", "b"], event="complete") < 0.18
    assert not isinstance(failed.value, Inconclusive)
    with pytest.raises(AssertionError, match=r"must be > 0\.2"):
        _ = assert_mass(AB_MODEL, ["a", "b"], event="complete") > 0.2


def test_intervals_that_contain_the_threshold_are_inconclusive() -> None:
    some = Limits(forwards=2)
    with pytest.raises(Inconclusive, match="stopped by forwards"):
        _ = assert_mass(AB_MODEL, Regex("(a|b)*"), event="complete", limits=some) < 0.9
    assert (
        assert_mass(AB_MODEL, Regex("(a|b)*"), event="complete", limits=some) > 0.2
    )  # enough for this line


def test_work_stops_where_the_line_is_decided() -> None:
    # Nothing ends either search by itself: all texts are members, or lead to one.
    assert (
        assert_mass(AB_MODEL, Regex("(a|b)*"), event="complete", limits=Limits(forwards=None)) > 0.9
    )
    assert assert_mass(AB_MODEL, ENDLESS, limits=Limits(forwards=None)) > 0.2


def test_ranks() -> None:
    # a: 1/8, b: 1/16, "": 1/4, aa: 1/16 …
    assert assert_rank(AB_MODEL, Regex("(a|b)*"), "") == 1
    assert assert_rank(AB_MODEL, Regex("(a|b)*"), "a") <= 2
    assert assert_rank(AB_MODEL, Regex("(a|b)*"), "bbbbbb") > 10
    with pytest.raises(AssertionError, match="must be > 2"):
        _ = assert_rank(AB_MODEL, Regex("(a|b)*"), "a") > 2
    with pytest.raises(Inconclusive, match="stopped by hits"):
        _ = assert_rank(AB_MODEL, Regex("(a|b)*"), "bbbbbb", limits=Limits(hits=3)) > 10
    with pytest.raises(ArgumentError, match="text must be a member to have a rank, got 'b'"):
        assert_rank(AB_MODEL, Regex("a"), "b")


def test_never_is_below_a_line() -> None:
    sure = TableModel(AB_VOCABULARY, {}, default=[0.5, 0.0, 0.5])
    assert_never(sure, ["b"], max_tokens=40)
    with pytest.raises(AssertionError, match=r"must be < 1e-06") as failed:
        assert_never(AB_MODEL, ["b"])
    assert not isinstance(failed.value, Inconclusive)
    with pytest.raises(Inconclusive, match="stopped by length"):
        assert_never(sure, ["b"], max_tokens=3)


def test_outputs_conform() -> None:
    assert_conforms(AB_MODEL, Regex("(a|b)*"), max_tokens=200)
    with pytest.raises(AssertionError, match=r"outputs conform, not 'a?b") as failed:
        assert_conforms(AB_MODEL, Regex("a*"), max_tokens=200)
    assert not isinstance(failed.value, Inconclusive)
    with pytest.raises(Inconclusive, match="of 5 outputs"):
        assert_conforms(AB_MODEL, Regex("(a|b)*"), draws=5, max_tokens=200)


def test_a_claim_is_compared_or_refused() -> None:
    with open_claims() as claims:
        claim = assert_mass(AB_MODEL, ["a"], event="complete")
    assert claims[0] is claim
    with pytest.raises(ArgumentError, match="must be compared with a number"):
        bool(claim)
    with pytest.raises(ArgumentError, match="never proves !="):
        _ = claim != 1
    assert "mass" in repr(claim)


CONFTEST = """
import pytest
from formalm import TableModel, Vocabulary
vocabulary = Vocabulary.from_tokens([b"a", b"b", None], end_token_ids=[2])

@pytest.fixture(scope="session")
def formalm_model():
    return TableModel(vocabulary, {}, default=[0.5, 0.25, 0.25])
"""
CASES = {
    "passes": "assert assert_mass(['a'], event='complete') < 0.2",
    "fails": "assert assert_mass(['a'], event='complete') < 0.1",
    "open": "assert assert_mass(Regex('(a|b)*'), event='complete', limits=Limits(forwards=2))"
    " < 0.9",
    "forgotten": "assert_mass(['a'], event='complete')",
    "ranked": "assert assert_rank(['a', 'b'], 'a') == 1",
}


@pytest.mark.parametrize(
    ("chosen", "code", "said"),
    [
        (["passes", "ranked"], 0, "2 passed"),
        (["passes", "fails"], 1, "1 failed, 1 passed"),
        (["passes", "open"], 3, "1 passed, 1 inconclusive"),
        (["fails", "open"], 1, "1 failed, 1 inconclusive"),
        (["forgotten"], 1, "never compared: "),
    ],
)
def test_the_plugin_has_three_outcomes(chosen, code, said, tmp_path: Path) -> None:
    done = session(tmp_path, [claiming(name) for name in chosen])
    assert said in done.stdout
    assert done.returncode == code


FAILURES = {
    "mass": ("assert assert_mass(['a'], event='complete') < 0.1", "AssertionError: the mass of"),
    "at_least": (
        "assert assert_mass(['a'], event='complete') >= 0.3",
        "AssertionError: the mass of",
    ),
    "equal": ("assert assert_mass(['a'], event='complete') == 0.3", "AssertionError: the mass of"),
    "unequal": (
        "assert assert_mass(['a'], event='complete') != 0.3",
        "ArgumentError: a claim must be compared",
    ),
    "alone": ("assert assert_mass(['a'], event='complete')", "ArgumentError: the mass of"),
    "no_number": (
        "assert assert_mass(['a'], event='complete') < 'x'",
        "ArgumentError: a claim must be compared with",
    ),
    "open": (CASES["open"], "Inconclusive: inconclusive: the mass of"),
    "rank": ("assert assert_rank(['a', 'b'], 'b') == 1", "AssertionError: the rank of"),
    "no_member": (
        "assert assert_rank(['a'], 'c') < 1",
        "ArgumentError: text must be a member to have a rank",
    ),
    "never": ("assert_never(['b'])", "AssertionError: the mass of"),
    "conforms": (
        "assert_conforms(['b'], draws=20, max_tokens=9)",
        "AssertionError: the share that conforms",
    ),
    "prompt": (
        "assert assert_mass(['a'], event='complete', prompt=3) < 1",
        "ArgumentError: prompt must be",
    ),
    "given": (
        "assert assert_mass(Query(['a'], given='b'), event='complete') < 1",
        "LanguageError: given must be",
    ),
    "pattern": ("assert assert_mass(Regex('('), event='complete') < 1", "LanguageError: "),
}


def test_a_failure_shows_the_test_and_the_message_and_nothing_from_inside(tmp_path: Path) -> None:
    fixtures = "assert_mass, assert_rank, assert_never, assert_conforms"
    tests = [f"def test_{name}({fixtures}):\n    {line}" for name, (line, _) in FAILURES.items()]
    out = session(tmp_path, ["from formalm import Query", *tests]).stdout
    assert f"{len(FAILURES) - 1} failed, 1 inconclusive" in out
    shown = out.split("= FAILURES =")[1]
    assert "formalm/" not in shown.replace("tests.formalm", "")
    for name, (line, said) in FAILURES.items():
        part = shown.split(f"_ test_{name} _")[1].split("\n____")[0].split("\n====")[0]
        assert f">       {line}" in part
        assert said in part
        assert len(part.splitlines()) < 20, part
    # Whoever asks for all of it has it.
    whole = session(tmp_path, ["from formalm import Query", *tests[-3:]], "--full-trace").stdout
    assert "formalm/probability" in whole


def test_an_inconclusive_test_is_not_an_expected_failure(tmp_path: Path) -> None:
    expected = "import pytest\n@pytest.mark.xfail\n" + claiming("open")
    done = session(tmp_path, [claiming("passes"), expected])
    assert "1 passed, 1 inconclusive" in done.stdout
    assert done.returncode == 3


def claiming(name: str) -> str:
    return f"def test_{name}(assert_mass, assert_rank):\n    {CASES[name]}"


def session(folder: Path, tests: list[str], *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "conftest.py").write_text(CONFTEST)
    lines = ["from formalm import Limits, Regex", *tests]
    (folder / "test_model.py").write_text("\n".join(lines))
    package = Path(__file__).parents[2] / "python"
    path = {"PYTHONPATH": str(package), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    plugins = ["-p", "formalm.testing.plugin", "-p", "no:cacheprovider"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, *options, str(folder)],
        cwd=folder,
        env={**os.environ, **path},
        capture_output=True,
        text=True,
        check=False,
    )
