"""The part of suite files that says what is computed, compared and demanded."""

from __future__ import annotations

import math
from collections.abc import Mapping

from formalm.languages import Regex
from formalm.suites.parts import METRICS, Assertion, Comparison, Metric, Question
from formalm.suites.section import Section
from formalm.suites.slots import Slot, Template

__all__ = ["least_p_value", "read_assertion", "read_comparison", "read_metric"]

BETWEEN = ("total_variation", "jensen_shannon", "log_ratio", "log_odds_ratio")
RATIOS = ("log_ratio", "log_odds_ratio")
CORRECTIONS = ("holm", "benjamini_hochberg", "none")
LEVEL = 0.05


def read_metric(
    part: Section,
    name: str,
    queries: Mapping[str, Question],
    templates: Mapping[str, Template],
    slots: Mapping[str, Slot],
) -> Metric:
    """A metric, checked against the query that it is about."""
    kind = part.one_of("kind", tuple(METRICS))
    query = queries[part.one_of("query", tuple(queries))]
    if query.ask != METRICS[kind]:
        part.refuse(
            f"{part.where}: {kind} is of a query that asks {METRICS[kind]!r}, and"
            f" {query.name!r} asks {query.ask!r}",
            "query",
        )
    between = part.one_of("between", query.each) if kind in BETWEEN else None
    if between is not None and len(slots[between].texts or ()) != 2:
        part.refuse(f"{part.where}.between is a slot of two texts", "between")
    of = None
    if METRICS[kind] == "table":
        listed = _open_slots(query, templates, slots)
        of = part.one_of("of", [slot for slot in listed if slots[slot].texts is not None])
    targets: tuple[str, ...] = ()
    if kind == "rank":
        of = part.one_of("of", _open_slots(query, templates, slots))
        targets = _targets(part, query, slots[of])
    part.close()
    return Metric(name, kind, query.name, between, of, targets)


def _targets(part: Section, query: Question, slot: Slot) -> tuple[str, ...]:
    """Texts that a search can find."""
    if "beam" in query.fields.get("limits", {}):
        part.refuse(f"{part.where}: the query has a beam, so its hits have no ranks", "query")
    targets = part.texts("targets")
    if not targets:
        part.refuse(f"{part.where}.targets has a text", "targets")
    language = Regex(slot.group)
    for number, text in enumerate(targets):
        if not language.matches(text):
            part.wrong("targets", number, f"is {text!r:.60}, which the slot cannot have")
    return targets


def _open_slots(
    query: Question, templates: Mapping[str, Template], slots: Mapping[str, Slot]
) -> tuple[str, ...]:
    """Open slots that all templates of a query have."""
    opened = [set(templates[name].slots) - set(query.each) for name in query.templates]
    common = set.intersection(*opened)
    return tuple(name for name in slots if name in common)


def read_comparison(
    part: Section,
    name: str,
    metrics: Mapping[str, Metric],
    queries: Mapping[str, Question],
    slots: Mapping[str, Slot],
) -> Comparison:
    """A comparison; one that could never find anything is refused."""
    ratios = tuple(metric.name for metric in metrics.values() if metric.kind in RATIOS)
    metric = metrics[part.one_of("metric", ratios)]
    test = part.one_of("test", ("exact", "sign_flips"))
    margin = _number(part, "margin", 0.0) or 0.0
    if not 0 <= margin < math.inf:
        part.refuse(f"{part.where}.margin is from 0", "margin")
    correction: str | None = None
    level: float | None = None
    if test == "sign_flips":
        correction = part.one_of("correction", CORRECTIONS, "holm")
        level = _level(part)
        units, tests = len(queries[metric.query].templates), len(slots[metric.of or ""].texts or ())
        if least_p_value(units, tests, str(correction)) > level:
            part.refuse(
                f"{part.where}: with {units} templates and {tests} values no difference can be"
                f" significant at {level:g} ({correction})",
                "test",
                hint="add templates, or say test = 'exact', which is about these templates only",
            )
    part.close()
    return Comparison(name, metric.name, test, margin, correction, level)


def least_p_value(units: int, tests: int, correction: str) -> float:
    """The least adjusted p-value that two-sided sign flips of so many units can have."""
    # By Benjamini and Hochberg all tests can be as small at once, and are then not adjusted.
    factor = tests if correction == "holm" else 1
    return min(1.0, factor * 2.0 ** (1 - units))


def read_assertion(
    part: Section,
    metrics: Mapping[str, Metric],
    comparisons: Mapping[str, Comparison],
    slots: Mapping[str, Slot],
) -> Assertion:
    """An assertion about a metric or a comparison."""
    metric, comparison = part.take("metric", str, None), part.take("comparison", str, None)
    if (metric is None) == (comparison is None):
        part.refuse(f"{part.where} is about a metric or a comparison")
    if metric is not None:
        _known(part, "metric", metric, metrics)
        low, high = _number(part, "min", None), _number(part, "max", None)
        if low is None and high is None:
            part.refuse(f"{part.where} has 'min' or 'max'")
        if low is not None and high is not None and low > high:
            part.refuse(f"{part.where}.min is above max", "min")
        part.close()
        return Assertion(metric, low, high)
    _known(part, "comparison", comparison, comparisons)
    flagged = part.texts("flagged")
    of = metrics[comparisons[comparison].metric].of or ""
    for number, text in enumerate(flagged):
        if text not in (slots[of].texts or ()):
            part.wrong("flagged", number, f"is {text!r:.60}, which is no text of {of!r}")
    part.close()
    return Assertion(comparison=comparison, flagged=flagged)


def _known(part: Section, key: str, name: str, known: Mapping[str, object]) -> None:
    if name not in known:
        names = ", ".join(map(repr, known)) or "none"
        part.refuse(f"{part.where}.{key} is {name!r:.60}; there is {names}", key)


def _level(part: Section) -> float:
    level = _number(part, "level", LEVEL)
    if level is None or not 0 < level < 1:
        part.refuse(f"{part.where}.level is between 0 and 1", "level")
    return level


def _number(part: Section, key: str, default: float | None) -> float | None:
    value = part.take(key, (int, float), default)
    if value is not None and math.isnan(value):
        part.refuse(f"{part.where}.{key} is a number", key)
    return None if value is None else float(value)
