"""Selection of the plots for each query of a report."""

from __future__ import annotations

from collections.abc import Sequence

from formalm.reports.number_format import place
from formalm.reports.plots import Dot, curves, intervals
from formalm.reports.report_contents import Part
from formalm.suites import Measurement
from formalm.suites.answers.query_answers import Answer

__all__ = ["figures_of"]


def figures_of(part: Part) -> list[str]:
    """Returns the plots of a query: an interval for each number, and findings by cost."""
    drawn = [
        intervals(_dots(found), name.replace("_", " "))
        for name, found in part.measurements.items()
        if not (part.question.ask == "search" and name.startswith("rank"))
    ]
    lines = {}
    if part.question.ask == "search" and part.question.oracle is not None:
        lines = {place(item.where): _real(answer) for item, answer in part.answered}
        drawn.append(curves(lines, ("tokens read by the model", "distinct real texts")))
    return [svg for svg in drawn if svg is not None]


def _dots(found: Sequence[Measurement]) -> list[Dot]:
    """Returns a series for each template, if numbers have more than that to distinguish them."""
    alone = all(set(one.where) == {"template"} for one in found)
    return [
        Dot(place(one.where), "" if alone else one.where.get("template", ""), one.quantity)
        for one in found
    ]


def _real(answer: Answer) -> list[tuple[float, float]]:
    """Returns the number of distinct real strings by number of tokens evaluated."""
    seen: set[str] = set()
    points = []
    for hit in answer["hits"]:
        if hit.get("valid", True) and hit["text"] not in seen:
            seen.add(hit["text"])
        points.append((float(hit["tokens_computed"]), float(len(seen))))
    return points
