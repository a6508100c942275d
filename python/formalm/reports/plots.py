"""SVG plots of intervals and curves, with colors inherited from the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from formalm.reports.number_format import measure, place
from formalm.reports.report_contents import Contents, Part
from formalm.reports.svg_figure import INK, MARKS, SERIES, svg_figure, svg_of
from formalm.stats import Quantity
from formalm.suites import Measurement, Suite
from formalm.suites.answers.query_answers import Answer

__all__ = ["Dot", "axis_label", "curves", "figures_of", "intervals", "side_by_side"]

MOST_ROWS = 36
DECADES = 2.5
MARGIN = 0.04
"""Space at both ends of an axis, as a share of it, so that no mark is cut."""
WIDEST, NARROWEST = 5.0, 1.5
"""Widths of the first and the last curve in points: equal curves are seen below each other."""


WHOLE = ("rank", "valid")
"""Kinds of metrics whose numbers are integers."""
LOGARITHMS = ("exposure", "logprob", "log_ratio", "log_odds_ratio")
"""Kinds of metrics whose numbers are logarithms."""


@dataclass(frozen=True)
class Dot:
    """A number in its row, of one of the series."""

    row: str
    series: str
    quantity: Quantity


def intervals(dots: Sequence[Dot], title: str, kind: str = "") -> str | None:
    """Returns an SVG with a dot and an interval for each number, one below the other.

    Series differ in color and mark. None if there is nothing to draw: fewer than two numbers, or
    none that is finite.

    Parameters
    ----------
    dots
        The numbers.
    title
        The label of the axis.
    kind
        The kind of the metric: ranks and counts have ticks at integers only, and logarithms no
        logarithmic scale.
    """
    rows = list(dict.fromkeys(dot.row for dot in dots))
    series = list(dict.fromkeys(dot.series for dot in dots))
    points = [dot for dot in dots if math.isfinite(dot.quantity.value)]
    if len(points) < 2 or len(rows) > MOST_ROWS or len(series) > len(SERIES):
        return None
    with svg_figure(0.27 * len(rows) + (1.25 if len(series) > 1 else 0.9)) as (figure, axes):
        spread = 0.5 / max(1, len(series))
        for dot in points:
            number = series.index(dot.series)
            y = rows.index(dot.row) + (number - (len(series) - 1) / 2) * spread
            low, high = dot.quantity.low, dot.quantity.high
            if math.isfinite(low) and math.isfinite(high):
                axes.plot([low, high], [y, y], color=SERIES[number], linewidth=2.2, alpha=0.55)
            axes.plot([dot.quantity.value], [y], MARKS[number], color=SERIES[number], markersize=5)
        axes.set_yticks(range(len(rows)), rows)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(title)
        axes.margins(x=MARGIN)
        _scale(axes, [dot.quantity for dot in points], logarithmic=kind not in LOGARITHMS)
        if kind in WHOLE and axes.get_xscale() == "linear":
            axes.xaxis.get_major_locator().set_params(integer=True)
        if len(series) > 1:
            for number, name in enumerate(series):
                axes.plot([], [], MARKS[number], color=SERIES[number], label=name)
            _legend(figure, axes, len(series))
        return svg_of(figure, title)


def curves(lines: dict[str, list[tuple[float, float]]], labels: tuple[str, str]) -> str | None:
    """Returns an SVG of increasing step functions, one per name; None without data."""
    drawn = {name: points for name, points in lines.items() if points}
    if not drawn or len(drawn) > len(SERIES):
        return None
    with svg_figure(2.9) as (figure, axes):
        for number, (name, points) in enumerate(drawn.items()):
            xs, ys = [0.0, *(x for x, _ in points)], [0.0, *(y for _, y in points)]
            wide = WIDEST - (WIDEST - NARROWEST) * number / max(1, len(drawn) - 1)
            axes.step(xs, ys, where="post", color=SERIES[number], linewidth=wide)
            mark = {"color": SERIES[number], "clip_on": False, "label": name}
            axes.plot(xs[-1:], ys[-1:], MARKS[number], **mark)
        axes.set_xlabel(labels[0])
        axes.set_ylabel(labels[1])
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.yaxis.get_major_locator().set_params(integer=True)
        _legend(figure, axes, len(drawn))
        return svg_of(figure, " against ".join(labels))


def _scale(axes: Any, points: Sequence[Quantity], *, logarithmic: bool) -> None:
    """Sets the scale: logarithmic over decades if it may be, all of it for shares, else from 0."""
    values = [one.value for one in points]
    ends = [end for one in points for end in (one.low, one.high) if math.isfinite(end)]
    positive = [value for value in values if value > 0]
    all_positive = logarithmic and len(positive) == len(values)
    if all_positive and math.log10(max(values) / min(values)) > DECADES:
        axes.set_xscale("log")
    elif all(0 <= value <= 1 for value in values) and max(values) > 0.3:
        axes.set_xlim(-0.02, 1.02)
    elif min([*values, *ends]) >= 0:
        most = max([*values, *ends]) or 1.0
        axes.set_xlim(-MARGIN * most, (1 + MARGIN) * most)


def _legend(figure: Any, axes: Any, count: int) -> None:
    box = (0.5, 1.0)
    columns = min(3, count)
    legend = axes.legend(
        loc="lower center", bbox_to_anchor=box, ncols=columns, frameon=False, fontsize=9
    )
    for text in legend.get_texts():
        text.set_color(INK)


def axis_label(name: str, suite: Suite) -> str:
    """Returns the name of a metric and the quantity that it measures, with its unit."""
    said, shown = measure(suite.metrics[name], suite), name.replace("_", " ")
    return said if shown in said else f"{shown}: {said}"


def figures_of(part: Part, suite: Suite, others: Sequence[Part] = ()) -> list[str]:
    """Returns the plots of a query: an interval for each number, and findings by cost.

    The findings of a search are drawn with those of free texts that the same oracle judged. The
    ranks of its hits are not drawn: they are 1, 2, 3 and so on.
    """
    kinds = {name: suite.metrics[name].kind for name in part.measurements}
    drawn = [
        intervals(_dots(found), axis_label(name, suite), kinds[name])
        for name, found in part.measurements.items()
        if not (part.question.ask == "search" and kinds[name] == "rank")
    ]
    if part.question.ask == "search" and part.question.oracle is not None:
        found = {place(item.where): _real(answer) for item, answer in part.answered}
        drawn_freely = {}
        for other in others:
            if other.question.ask == "free" and other.question.oracle == part.question.oracle:
                for item, answer in other.answered:
                    if place(item.where) in found:
                        drawn_freely[_line_name(other, place(item.where))] = _drawn(answer)
        # Without others, the place alone tells the lines apart.
        named = {_line_name(part, one): points for one, points in found.items()}
        lines = {**(named if drawn_freely else found), **drawn_freely}
        drawn.append(curves(lines, ("tokens read by the model", "distinct real texts")))
    return [svg for svg in drawn if svg is not None]


def side_by_side(contents: Contents) -> list[str]:
    """Returns a plot for each kind of metric of which several have one number each.

    Examples are the accuracies of several forms of a question, and the yields of several methods.
    """
    suite = contents.suite
    alone: dict[tuple[str, str], list[Dot]] = {}
    for part in contents.parts:
        for name, found in part.measurements.items():
            if len(found) == 1:
                metric = suite.metrics[name]
                same = (measure(metric, suite), metric.kind)
                alone.setdefault(same, []).append(Dot(name, "", found[0].quantity))
    drawn = [intervals(dots, *same) for same, dots in alone.items() if len(dots) > 1]
    return [svg for svg in drawn if svg is not None]


def _line_name(part: Part, where: str) -> str:
    return f"{part.question.name.replace('_', ' ')}: {where}"


def _dots(found: Sequence[Measurement]) -> list[Dot]:
    """Returns a series for each template, if numbers have more than that to distinguish them."""
    alone = all(set(one.where) == {"template"} for one in found)
    return [
        Dot(place(one.where), "" if alone else one.where.get("template", ""), one.quantity)
        for one in found
    ]


def _drawn(answer: Answer) -> list[tuple[float, float]]:
    """Returns the number of distinct real strings in free texts by number of tokens evaluated."""
    seen: set[str] = set()
    tokens = answer["work"]["tokens_computed"] - sum(one["tokens"] for one in answer["texts"])
    points = []
    for one in answer["texts"]:
        tokens += one["tokens"]
        if one.get("valid") and one["found"] is not None:
            seen.add(one["found"])
        points.append((float(tokens), float(len(seen))))
    return points


def _real(answer: Answer) -> list[tuple[float, float]]:
    """Returns the number of distinct real strings by number of tokens evaluated."""
    seen: set[str] = set()
    points = []
    for hit in answer["hits"]:
        if hit.get("valid", True) and hit["text"] not in seen:
            seen.add(hit["text"])
        points.append((float(hit["tokens_computed"]), float(len(seen))))
    # The search went on after its last hit.
    points.append((float(answer["work"]["tokens_computed"]), float(len(seen))))
    return points
