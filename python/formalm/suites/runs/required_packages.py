"""Checks that the optional packages a suite's metrics need are installed, before a run starts."""

from __future__ import annotations

from collections.abc import Iterator

from formalm.errors import ArgumentError
from formalm.stats.arguments import scipy_part
from formalm.suites.suite import Suite

__all__ = ["check_packages"]

SCIPY_METRICS = ("accuracy", "exposure", "jensen_shannon", "rate")
SCIPY_TESTS = ("mcnemar",)


def check_packages(suite: Suite) -> None:
    """Refuses a suite whose metrics could not be computed from its answers.

    Raises
    ------
    ArgumentError
        If a package is missing; names the part of the suite that needs it.
    """
    needing = next(_needing_scipy(suite), None)
    if needing is None:
        return
    try:
        scipy_part("special")
    except ArgumentError as error:
        raise ArgumentError(
            f"the suite {suite.name!r} requires the package scipy, for {needing}", hint=error.hint
        ) from None


def _needing_scipy(suite: Suite) -> Iterator[str]:
    for metric in suite.metrics.values():
        if metric.kind in SCIPY_METRICS:
            yield f"the metric {metric.name!r} ({metric.kind})"
    for comparison in suite.comparisons.values():
        if comparison.test in SCIPY_TESTS:
            yield f"the comparison {comparison.name!r} ({comparison.test})"
