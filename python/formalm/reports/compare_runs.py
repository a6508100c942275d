"""Comparison of two runs of one suite: differences beyond rounding, and paired tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from formalm.errors import SuiteError
from formalm.reports.number_format import (
    escape,
    estimate,
    interval,
    measure,
    p_value,
    place,
    visible,
)
from formalm.reports.page import document, table
from formalm.reports.plots import Dot, axis_label, intervals
from formalm.reports.report_contents import Contents, contents_of
from formalm.reports.rounding_tolerance import Place, allowed, tied_bounds, tolerance_of
from formalm.stats import Quantity, holm, mcnemar, sign_flips
from formalm.suites import Measurement, Metric, Run
from formalm.suites.metrics.count_and_search_metrics import is_right
from formalm.suites.runs.manifest import LOG_TOLERANCE

__all__ = ["Row", "RunComparison", "Tested", "compare_runs"]

LEAST_PAIRS = 5
Ends = tuple[float, float]


@dataclass(frozen=True)
class Row:
    """A number in both runs.

    Attributes
    ----------
    where
        The subject of the number.
    first, second
        Its value in each run.
    apart
        ``"higher"`` or ``"lower"``: the second is, for every value within the intervals and the
        rounding tolerance; ``"equal"`` if both intervals lie within the tolerance; ``"open"``
        otherwise.
    tolerance
        How far rounding may move the two numbers apart.
    """

    where: dict[str, str]
    first: Quantity
    second: Quantity
    apart: str
    tolerance: float = 0.0


@dataclass(frozen=True)
class Tested:
    """A paired test of a metric.

    Attributes
    ----------
    name
        The test.
    p_value
        Under the hypothesis of no difference; the largest that open answers and bounds allow.
    pairs
        Number of rows, or templates.
    """

    name: str
    p_value: float
    pairs: int


@dataclass(frozen=True)
class RunComparison:
    """The comparison of two runs of one suite.

    Attributes
    ----------
    first, second
        The runs.
    rows
        Numbers that both have, by metric.
    tests
        Paired tests, by metric, where there are enough pairs.
    log_tolerance
        Rounding tolerance of a log-probability, in nats: the larger one of the two runs.
    """

    first: Contents
    second: Contents
    rows: dict[str, tuple[Row, ...]]
    tests: dict[str, Tested]
    log_tolerance: float = LOG_TOLERANCE

    @property
    def rounding(self) -> str:
        """A description of the effect of rounding."""
        said = (
            f"Rounding may change a log-probability by {self.log_tolerance:g} nats. Numbers that"
            " differ by no more than this explains count as equal."
        )
        sizes = [one.manifest.batch_size for one in (self.first, self.second)]
        if sizes[0] != sizes[1]:
            said += (
                f" The batch sizes are {sizes[0]:,} and {sizes[1]:,}, so the same work finds"
                " different"
                " texts. Differences in counts of valid texts and in yields are inconclusive."
            )
        return said

    def to_html(self, *, plots: bool = True) -> str:
        """Returns an HTML page, by default with plots, which need matplotlib."""
        heads = "".join(
            f"<div><p class=name>{label}</p><p><b>{escape(one.directory)}</b><br>"
            f'<span class="badge {one.verdict}">{one.verdict}</span></p></div>'
            for label, one in (("first", self.first), ("second", self.second))
        )
        suite = self.first.suite
        blocks = [
            f"<header><p class=name>{escape(suite.name)}</p><h1>{escape(suite.title)}</h1>"
            f"<div class=pair>{heads}</div><p class=how>{escape(self.rounding)}</p></header>\n"
        ]
        for name, rows in self.rows.items():
            several = len({row.where.get("template") for row in rows}) > 1
            cells = [
                (
                    escape(place(row.where, template=several)),
                    f"{estimate(row.first)}<br><small>{interval(row.first)}</small>",
                    f"{estimate(row.second)}<br><small>{interval(row.second)}</small>",
                    escape(row.apart),
                )
                for row in rows
            ]
            shown = table(("of", "first", "second", "the second is"), cells, " nn")
            kind = suite.metrics[name].kind
            drawn = _plot(rows, axis_label(name, suite), kind, several=several) if plots else ""
            about = f"<p class=how>{escape(measure(suite.metrics[name], suite))}</p>"
            said = f"<h2>{escape(name)}</h2>{about}<p>{escape(self._said(name))}</p>"
            blocks.append(f"<section>{said}{drawn}{shown}</section>\n")
        return document(f"{suite.name}: two runs", "".join(blocks))

    def to_markdown(self) -> str:
        """Returns the comparison as Markdown."""
        suite = self.first.suite
        lines = [f"# {suite.name}: two runs", ""]
        lines += [f"- first: {self.first.directory}, {self.first.verdict}"]
        lines += [f"- second: {self.second.directory}, {self.second.verdict}", ""]
        lines += [self.rounding, ""]
        for name, rows in self.rows.items():
            lines += [f"## {name}", "", f"{measure(suite.metrics[name], suite)}.", ""]
            lines += [self._said(name), ""]
            lines += ["| of | first | second | the second is |", "| --- | --- | --- | --- |"]
            several = len({row.where.get("template") for row in rows}) > 1
            for row in rows:
                cells = [
                    " ".join(visible(place(row.where, template=several)).split()).replace(
                        "|", "\\|"
                    )
                ]
                for one in (row.first, row.second):
                    ends = interval(one)
                    cells.append(estimate(one) + (f" ({ends})" if ends else ""))
                lines.append(f"| {' | '.join([*cells, row.apart])} |")
            lines.append("")
        return "\n".join(lines)

    def _said(self, name: str) -> str:
        tested = self.tests.get(name)
        if tested is None:
            return "Too few pairs for a test; intervals are compared one by one."
        return f"{tested.name} on {tested.pairs:,} pairs: p = {p_value(tested.p_value)}"


def _plot(rows: Sequence[Row], label: str, kind: str, *, several: bool) -> str:
    """Returns both runs in one plot; nothing if there are too many rows to read."""
    dots = [
        Dot(place(row.where, template=several), series, quantity)
        for row in rows
        for series, quantity in (("first", row.first), ("second", row.second))
    ]
    svg = intervals(dots, label, kind)
    return "" if svg is None else f"<figure>{svg}</figure>\n"


def compare_runs(first: Run, second: Run) -> RunComparison:
    """Compares two runs of one suite, with paired tests.

    Raises
    ------
    SuiteError
        If the suites differ.
    """
    suite = first.manifest.suite
    if suite.to_toml() != second.manifest.suite.to_toml():
        raise SuiteError(
            f"{str(first.directory)!r} and {str(second.directory)!r} must be runs of the same"
            " suite",
            hint="run both with the same file",
        )
    draws = [run.manifest.max_draws for run in (first, second)]
    if draws[0] != draws[1]:
        said = ["as many as the suite requires" if one is None else f"{one:,}" for one in draws]
        raise SuiteError(
            f"{str(first.directory)!r} and {str(second.directory)!r} must have the same draws"
            " per item:"
            f" {said[0]}, and {said[1]}",
            hint="run both with the same --max-draws",
        )
    one, other = contents_of(first), contents_of(second)
    tolerance = max(run.manifest.log_tolerance for run in (first, second))
    rows: dict[str, tuple[Row, ...]] = {}
    tests = {}
    for name, metric in suite.metrics.items():
        found = _paired(metric, first, second, one, other, tolerance)
        if not found:
            continue
        rows[name] = tuple(found)
        tested = _tested(metric, found, first, second)
        if tested is not None:
            tests[name] = tested
    return RunComparison(one, other, rows, tests, tolerance)


def _paired(
    metric: Metric, first: Run, second: Run, one: Contents, other: Contents, log_tolerance: float
) -> list[Row]:
    """Returns the numbers of a metric that both runs have."""
    there = _by_place(metric, other.evaluation.measurements)
    ties = [tied_bounds(metric, run, log_tolerance) for run in (first, second)]
    drawn = one.suite.queries[metric.query].ask == "free"
    rows = []
    for place_of, mine in _by_place(metric, one.evaluation.measurements).items():
        if place_of not in there:
            continue
        first_one, second_one = mine.quantity, there[place_of].quantity
        tolerance = tolerance_of(metric.kind, first_one, second_one, log_tolerance)
        ends = (
            _widened(first_one, ties[0].get(place_of)),
            _widened(second_one, ties[1].get(place_of)),
        )
        said = _apart(first_one, second_one, *ends, tolerance)
        if said in ("higher", "lower") and not allowed(
            metric.kind, first, second, first_one, second_one, drawn=drawn
        ):
            said = "open"
        rows.append(Row(mine.where, first_one, second_one, said, tolerance))
    return rows


def _by_place(metric: Metric, found: Sequence[Measurement]) -> dict[Place, Measurement]:
    return {tuple(one.where.items()): one for one in found if one.metric == metric.name}


def _widened(quantity: Quantity, tied: Ends | None) -> Ends:
    """Returns the bounds of a number, also if equally probable strings change places."""
    if tied is None:
        return quantity.low, quantity.high
    return min(quantity.low, tied[0]), max(quantity.high, tied[1])


def _apart(first: Quantity, second: Quantity, one: Ends, other: Ends, tolerance: float) -> str:
    if other[0] > one[1] + tolerance:
        return "higher"
    if other[1] < one[0] - tolerance:
        return "lower"
    proven = all(each.coverage in ("exact", "certified") for each in (first, second))
    low, high = min(first.low, second.low), max(first.high, second.high)
    # The difference of two infinite bounds is NaN, but they are equal.
    return "equal" if proven and (low == high or high - low <= tolerance) else "open"


def _tested(metric: Metric, rows: list[Row], first: Run, second: Run) -> Tested | None:
    """Applies McNemar's test to right and wrong answers, sign flips to other numbers."""
    if metric.kind == "accuracy":
        one, other = (_told(metric, run) for run in (first, second))
        both = [(one[key], other[key]) for key in one if key in other]
        return Tested("McNemar", largest_mcnemar(both), len(both)) if both else None
    # Templates are the sampling units; values within one template are dependent.
    by_value: dict[tuple[tuple[str, str], ...], list[Row]] = {}
    for row in rows:
        value = tuple(pair for pair in row.where.items() if pair[0] != "template")
        by_value.setdefault(value, []).append(row)
    found = [_flipped(listed) for listed in by_value.values() if len(listed) >= LEAST_PAIRS]
    known = [p for p in found if p is not None]
    if not known:
        return None
    name = "sign flips of templates"
    if len(known) > 1:
        name += f", the smallest of {len(known):,}, adjusted by Holm"
    return Tested(name, float(min(holm(known))), max(map(len, by_value.values())))


def largest_mcnemar(pairs: Sequence[tuple[bool | None, bool | None]]) -> float:
    """Returns the largest p-value of McNemar's test over all completions of open answers (None)."""
    wins, losses = pairs.count((True, False)), pairs.count((False, True))
    if wins > losses:
        # More losses than wins would again be evidence for a difference.
        may_lose = sum(one is not True and other is not False for one, other in pairs) - losses
        losses = min(wins, losses + may_lose)
    elif losses > wins:
        may_win = sum(one is not False and other is not True for one, other in pairs) - wins
        wins = min(losses, wins + may_win)
    if wins == losses:
        return 1.0
    first = [True] * wins + [False] * losses
    return mcnemar(first, [not one for one in first]).p_value


def _flipped(rows: Sequence[Row]) -> float | None:
    """Returns the largest p-value that the bounds allow; None if they are infinite."""
    lows = [row.second.low - row.first.high - row.tolerance for row in rows]
    highs = [row.second.high - row.first.low + row.tolerance for row in rows]
    if not all(map(math.isfinite, [*lows, *highs])):
        return None
    above = sign_flips(lows, alternative="greater").p_value
    below = sign_flips(highs, alternative="less").p_value
    return min(1.0, 2 * min(above, below))


def _told(metric: Metric, run: Run) -> dict[tuple[tuple[str, str], ...], bool | None]:
    return {
        tuple(item.where.items()): is_right(metric, item, answer)
        for item, answer in run.answered
        if item.question.name == metric.query
    }
