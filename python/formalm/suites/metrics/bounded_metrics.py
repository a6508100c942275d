"""Metrics computed from the answers of a suite, with bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from formalm.probability.bounds import Interval
from formalm.stats import (
    Quantity,
    jensen_shannon,
    log_odds_ratio,
    log_ratio,
    total_variation,
)
from formalm.suites.answers.query_answers import Answer, table_of
from formalm.suites.metrics.count_and_search_metrics import COUNTED
from formalm.suites.suite import Suite
from formalm.suites.suite_items import Item
from formalm.suites.suite_parts import Metric

__all__ = ["Measurement", "measured"]

Answered = Sequence[tuple[Item, Answer]]
DISTANCES = {"total_variation": total_variation, "jensen_shannon": jensen_shannon}
RATIOS = {"log_ratio": log_ratio, "log_odds_ratio": log_odds_ratio}


@dataclass(frozen=True)
class Measurement:
    """A value of a metric.

    Attributes
    ----------
    metric
        The name of the metric.
    where
        The template, the values of the filled slots, and the value or target it is about.
    quantity
        The number, with the bounds that the answers leave.
    """

    metric: str
    where: dict[str, str]
    quantity: Quantity


def measured(suite: Suite, metric: Metric, answered: Answered) -> list[Measurement]:
    """Returns all values of a metric that the available answers determine.

    Parameters
    ----------
    suite
        The suite.
    metric
        One of its metrics.
    answered
        Items of its queries, each with the answer.

    Returns
    -------
    list of Measurement
        Comparisons between two values need the answers to both.
    """
    own = [(item, answer) for item, answer in answered if item.question.name == metric.query]
    if metric.kind in DISTANCES:
        found = _distances(suite, metric, own)
    elif metric.kind in RATIOS:
        found = _ratios(suite, metric, own)
    else:
        found = PLAIN[metric.kind](suite, metric, own)
    return [Measurement(metric.name, where, quantity) for where, quantity in found]


Found = Iterator[tuple[dict[str, str], Quantity]]


def _masses(suite: Suite, metric: Metric, answered: Answered) -> Found:
    for item, answer in answered:
        yield item.where, _certified("mass", Interval(answer["low"], answer["high"]))


def _shares(suite: Suite, metric: Metric, answered: Answered) -> Found:
    for item, answer in answered:
        if metric.answer is not None:
            wanted = item.row[metric.answer]
            share = table_of(answer).share({str(metric.of): wanted})
            yield {**item.where, str(metric.of): wanted}, _certified("share", share)
            continue
        values = _values(suite, metric)
        bounds = [_certified("share", one) for one in _distribution(metric, values, answer)]
        total = sum(one.value for one in bounds)
        for value, quantity in zip(values, bounds, strict=True):
            # Middles of bounds do not sum to one; the bounds are those of each share alone.
            middle = quantity.value / total if total else quantity.value
            middle = min(quantity.high, max(quantity.low, middle))
            yield {**item.where, str(metric.of): value}, replace(quantity, value=middle)


def _distances(suite: Suite, metric: Metric, answered: Answered) -> Found:
    values = _values(suite, metric)
    for where, one, other in _pairs(suite, metric, answered):
        shares = (_distribution(metric, values, answer) for answer in (one, other))
        yield where, DISTANCES[metric.kind](*shares)


def _ratios(suite: Suite, metric: Metric, answered: Answered) -> Found:
    values = _values(suite, metric)
    for where, one, other in _pairs(suite, metric, answered):
        rows = (_distribution(metric, values, answer) for answer in (one, other))
        for value, first, second in zip(values, *rows, strict=True):
            ratio = RATIOS[metric.kind](first, second)
            yield {**where, str(metric.of): value}, ratio


def _ranks(suite: Suite, metric: Metric, answered: Answered) -> Found:
    for item, answer in answered:
        targets = metric.targets if metric.answer is None else (item.row[metric.answer],)
        for target in targets:
            where = {**item.where, str(metric.of): target}
            yield where, _rank(str(metric.of), target, answer)


def _rank(slot: str, target: str, answer: Answer) -> Quantity:
    """Returns the number of the first hit with a string; beyond the last hit if there is none."""
    for hit in answer["hits"]:
        if hit["groups"].get(slot) == target:
            rank = float(hit["rank"])
            return Quantity("rank", rank, rank, rank, 1.0, "exact", "search in exact order")
    least = math.inf if answer["status"] == "exhausted" else float(len(answer["hits"]) + 1)
    method = f"not among {len(answer['hits']):,} hits"
    return Quantity("rank", math.inf, least, math.inf, 1.0, "certified", method)


def _pairs(
    suite: Suite, metric: Metric, answered: Answered
) -> Iterator[tuple[dict[str, str], Answer, Answer]]:
    """Returns answers that differ in the compared slot, in the order of its two values."""
    slot = str(metric.between)
    first, second = suite.slots[slot].texts or ("", "")
    found: dict[tuple[tuple[str, str], ...], dict[str, Answer]] = {}
    for item, answer in answered:
        rest = tuple((name, text) for name, text in item.where.items() if name != slot)
        found.setdefault(rest, {})[item.where[slot]] = answer
    for rest, answers in found.items():
        if len(answers) == 2:
            yield dict(rest), answers[first], answers[second]


def _values(suite: Suite, metric: Metric) -> tuple[str, ...]:
    return suite.slots[str(metric.of)].texts or ()


def _distribution(metric: Metric, values: tuple[str, ...], answer: Answer) -> list[Interval]:
    """Returns the share of each value among the members."""
    table = table_of(answer)
    return [table.share({str(metric.of): value}) for value in values]


def _certified(name: str, bounds: Interval) -> Quantity:
    middle = (bounds.low + bounds.high) / 2
    return Quantity(name, middle, *bounds, 1.0, "certified", "bounds of probabilities")


PLAIN = {"mass": _masses, "share": _shares, "rank": _ranks, **COUNTED}
