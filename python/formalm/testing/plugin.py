"""The pytest plugin: fixtures for the assertions, and the outcome "inconclusive"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from types import TracebackType
from typing import Any

import pytest

from formalm.errors import FormalmError
from formalm.testing.assertions import (
    assert_conforms,
    assert_mass,
    assert_never,
    assert_rank,
)
from formalm.testing.threshold_verdict import Inconclusive, open_claims

INCONCLUSIVE = 3
"""Exit status of a session in which nothing failed and something was inconclusive."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the option for the model of the fixtures."""
    group = parser.getgroup("formalm")
    group.addoption("--formalm-model", default=None, help="folder of a model; canary if omitted")


@pytest.fixture(scope="session")
def formalm_model(request: pytest.FixtureRequest) -> Any:
    """The model; override it in ``conftest.py``, or name a folder with ``--formalm-model``."""
    folder = request.config.getoption("--formalm-model")
    if folder is None:
        from formalm.models.canary import canary

        return canary()
    from formalm.models import from_transformers

    return from_transformers(folder)


def _bound(name: str, check: Callable[..., Any]) -> Any:
    def fixture(formalm_model: Any) -> Callable[..., Any]:
        return partial(check, formalm_model)

    fixture.__doc__ = f"``formalm.testing.{check.__name__}`` of the model."
    return pytest.fixture(name=name)(fixture)


mass_fixture = _bound("assert_mass", assert_mass)
rank_fixture = _bound("assert_rank", assert_rank)
never_fixture = _bound("assert_never", assert_never)
conforms_fixture = _bound("assert_conforms", assert_conforms)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fails a test that makes a claim and never compares it."""
    with open_claims() as claims:
        result = yield
        if claims:
            names = ", ".join(claim.name for claim in claims)
            pytest.fail(f"never compared: {names}", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Marks inconclusive tests, and ends a traceback where a test called formalm."""
    whole = ("fulltrace", "usepdb")
    if call.excinfo is not None and not any(item.config.getoption(one, False) for one in whole):
        _end_outside(call.excinfo)
    report = yield
    if call.excinfo is not None and call.excinfo.errisinstance(Inconclusive):
        report.formalm_inconclusive = True
    return report


def _end_outside(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Removes formalm's frames from the end of an error that is meant for the author of a test.

    pytest rebuilds its output from the chain of the traceback, so the chain itself is cut.
    """
    if not excinfo.errisinstance((AssertionError, Inconclusive, FormalmError)):
        return
    entries: list[TracebackType] = []
    entry = excinfo.value.__traceback__
    while entry is not None:
        entries.append(entry)
        entry = entry.tb_next
    kept = len(entries)
    while kept and _is_ours(entries[kept - 1]):
        kept -= 1
    if 0 < kept < len(entries):
        entries[kept - 1].tb_next = None
        excinfo.traceback = type(excinfo.traceback)(entries[0])


def _is_ours(entry: TracebackType) -> bool:
    """Returns whether a frame belongs to this package; methods made by dataclasses have no file."""
    name = str(entry.tb_frame.f_globals.get("__name__", ""))
    return name.partition(".")[0] == "formalm"


def pytest_report_teststatus(report: Any) -> tuple[str, str, str] | None:
    """Reports inconclusive as an outcome of its own."""
    if getattr(report, "formalm_inconclusive", False):
        return "inconclusive", "?", "INCONCLUSIVE"
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Shows why tests are inconclusive, as pytest shows why tests fail."""
    reports = terminalreporter.stats.get("inconclusive", [])
    if not reports or terminalreporter.config.getoption("tbstyle", "auto") == "no":
        return
    terminalreporter.write_sep("=", "INCONCLUSIVE")
    for report in reports:
        terminalreporter.write_sep("_", report.head_line or report.nodeid)
        terminalreporter.write_line(report.longreprtext)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Exits with 3 if nothing failed outright and something was inconclusive, expected or not."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    stats = getattr(reporter, "stats", {})
    failed = stats.get("failed") or stats.get("error")
    finished = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if finished and stats.get("inconclusive") and not failed:
        session.exitstatus = INCONCLUSIVE
