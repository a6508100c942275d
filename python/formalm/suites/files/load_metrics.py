"""Reader of the metrics, comparisons and assertions of a suite file."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from formalm.languages import Regex
from formalm.suites.files.load_questions import Parts, columns_of
from formalm.suites.files.toml_section import TomlSection
from formalm.suites.slots_and_templates import Slot, resolved
from formalm.suites.suite_parts import METRICS, RATES, Assertion, Comparison, Metric, Question

__all__ = ["least_p_value", "read_assertion", "read_comparison", "read_metric"]

BETWEEN = ("total_variation", "jensen_shannon", "log_ratio", "log_odds_ratio")
RATIOS = ("log_ratio", "log_odds_ratio")
CORRECTIONS = ("holm", "benjamini_hochberg", "none")
LEVEL = 0.05


def read_metric(
    part: TomlSection, name: str, queries: Mapping[str, Question], parts: Parts
) -> Metric:
    """Reads a metric and checks it against its query."""
    kind = part.one_of("kind", tuple(METRICS))
    query = queries[part.one_of("query", tuple(queries))]
    asks = (METRICS[kind], "free") if kind in ("valid", "yield") else (METRICS[kind],)
    if query.ask not in asks:
        part.refuse(
            f"{part.where}: {kind} requires a query with ask = {asks[0]!r}, but"
            f" {query.name!r} has {query.ask!r}",
            "query",
        )
    between = part.one_of("between", query.each) if kind in BETWEEN else None
    if between is not None and len(parts.slots[between].texts or ()) != 2:
        part.refuse(f"{part.where}.between must be a slot with two texts", "between")
    more = _of(part, kind, query, parts)
    if kind in ("valid", "yield") and query.oracle is None:
        part.refuse(f"{part.where}: the query must have an oracle", "query")
    part.close()
    return Metric(name, kind, query.name, between, **more)


def _of(part: TomlSection, kind: str, query: Question, parts: Parts) -> dict[str, Any]:
    """Reads the subject of a metric: a slot, and which of its values."""
    if kind == "rate":
        known = [rate for rate in RATES if rate != "valid" or query.oracle is not None]
        return {"of": part.one_of("of", known)}
    if kind in ("logprob", "exposure"):
        targets = part.texts("targets", [])
        for number, text in enumerate(targets):
            if text not in query.targets:
                part.wrong("targets", number, f"must be a target of the query, got {text!r:.60}")
        return {"targets": targets}
    if kind not in ("rank", "accuracy") and METRICS[kind] != "table":
        return {}
    opened = _open_slots(query, parts)
    listed = [slot for slot in opened if parts.slots[slot].texts is not None]
    by_row = "answer" in part.left and kind in ("rank", "accuracy", "share")
    if kind in ("rank", "accuracy") or by_row:
        of = part.one_of("of", opened)
    else:
        of = part.one_of("of", listed)
    if by_row or kind == "accuracy":
        return {"of": of, "answer": _answer(part, query, parts, of)}
    if kind == "rank":
        return {"of": of, "targets": _targets(part, query, parts.slots[of])}
    return {"of": of}


def _answer(part: TomlSection, query: Question, parts: Parts, of: str) -> str:
    """Reads the column with the right string of each row."""
    _refuse_beams(part, query)
    answer: str = part.one_of("answer", columns_of(query, parts.rows))
    slot = parts.slots[of]
    if slot.pattern is not None and query.rows is not None:
        language = Regex(resolved(slot, {}, {}).group if slot.without is None else slot.group)
        for label, row in parts.rows[query.rows].labeled():
            if not language.matches(row[answer]):
                text = f"{row[answer]!r:.60} in the row {label!r:.60}"
                part.refuse(
                    f"{part.where}.answer must contain texts of the slot only, got {text}", "answer"
                )
    return answer


def _refuse_beams(part: TomlSection, query: Question) -> None:
    if "beams" in query.fields.get("limits", {}):
        part.refuse(
            f"{part.where}: the query must not limit beams, because its hits have no ranks", "query"
        )


def _targets(part: TomlSection, query: Question, slot: Slot) -> tuple[str, ...]:
    """Reads strings that a search can find."""
    _refuse_beams(part, query)
    targets = part.texts("targets")
    if not targets:
        part.refuse(f"{part.where}.targets must not be empty", "targets")
    language = Regex(slot.group)
    for number, text in enumerate(targets):
        if not language.matches(text):
            part.wrong("targets", number, f"must be a text of the slot, got {text!r:.60}")
    return targets


def _open_slots(query: Question, parts: Parts) -> tuple[str, ...]:
    """Returns the open slots that all templates of a query have."""
    filled = {*query.each, *columns_of(query, parts.rows)}
    opened = [set(parts.templates[name].slots) - filled for name in query.templates]
    common = set.intersection(*opened)
    return tuple(name for name in parts.slots if name in common)


def read_comparison(
    part: TomlSection,
    name: str,
    metrics: Mapping[str, Metric],
    queries: Mapping[str, Question],
    slots: Mapping[str, Slot],
) -> Comparison:
    """Reads a comparison; refuses one that could never find anything."""
    test = part.one_of("test", ("exact", "sign_flips", "mcnemar"))
    if test == "mcnemar":
        return _read_pair(part, name, metrics, queries)
    ratios = tuple(metric.name for metric in metrics.values() if metric.kind in RATIOS)
    metric = metrics[part.one_of("metric", ratios)]
    margin = _number(part, "margin", 0.0) or 0.0
    if not 0 <= margin < math.inf:
        part.refuse(f"{part.where}.margin must be at least 0", "margin")
    correction: str | None = None
    level: float | None = None
    if test == "sign_flips":
        correction = part.one_of("correction", CORRECTIONS, "holm")
        level = _level(part)
        units, tests = len(queries[metric.query].templates), len(slots[metric.of or ""].texts or ())
        if least_p_value(units, tests, str(correction)) > level:
            part.refuse(
                f"{part.where}: with {units} templates and {tests} values, no difference can be"
                f" significant at {level:g} ({correction})",
                "test",
                hint="add templates, or use test = 'exact', which applies to these templates only",
            )
    part.close()
    return Comparison(name, metric.name, test, margin, correction, level)


def _read_pair(
    part: TomlSection,
    name: str,
    metrics: Mapping[str, Metric],
    queries: Mapping[str, Question],
) -> Comparison:
    """Reads a comparison of two accuracies on the same rows."""
    known = [metric.name for metric in metrics.values() if metric.kind == "accuracy"]
    one, other = part.one_of("metric", known), part.one_of("other", known)
    questions = [queries[metrics[each].query] for each in (one, other)]
    if one == other or questions[0].rows != questions[1].rows:
        part.refuse(f"{part.where}.other must be another accuracy on the same rows", "other")
    if any(len(question.templates) > 1 or question.each for question in questions):
        part.refuse(f"{part.where}: a paired test requires one question per row", "metric")
    level = _level(part)
    part.close()
    return Comparison(name, one, "mcnemar", 0.0, None, level, other)


def least_p_value(units: int, tests: int, correction: str) -> float:
    """Returns the least adjusted p-value that two-sided sign flips of some units can reach."""
    # Benjamini-Hochberg does not adjust if all tests are equally small.
    factor = tests if correction == "holm" else 1
    return min(1.0, factor * 2.0 ** (1 - units))


def read_assertion(
    part: TomlSection,
    metrics: Mapping[str, Metric],
    comparisons: Mapping[str, Comparison],
    slots: Mapping[str, Slot],
) -> Assertion:
    """Reads an assertion about a metric or a comparison."""
    metric, comparison = part.take("metric", str, None), part.take("comparison", str, None)
    if (metric is None) == (comparison is None):
        part.refuse(f"{part.where} must name either a metric or a comparison")
    if metric is not None:
        _known(part, "metric", metric, metrics)
        low, high = _number(part, "min", None), _number(part, "max", None)
        if low is None and high is None:
            part.refuse(f"{part.where} must have 'min' or 'max'")
        if low is not None and high is not None and low > high:
            part.refuse(f"{part.where}.min must not be above max", "min")
        part.close()
        return Assertion(metric, low, high)
    _known(part, "comparison", comparison, comparisons)
    flagged = part.texts("flagged")
    of = metrics[comparisons[comparison].metric].of or ""
    pair = comparisons[comparison].other is not None
    values = (comparisons[comparison].metric,) if pair else slots[of].texts or ()
    for number, text in enumerate(flagged):
        if text not in values:
            part.wrong("flagged", number, f"must be a text of {of!r}, got {text!r:.60}")
    part.close()
    return Assertion(comparison=comparison, flagged=flagged)


def _known(part: TomlSection, key: str, name: str, known: Mapping[str, object]) -> None:
    if name not in known:
        names = ", ".join(map(repr, known)) or "none"
        part.refuse(f"{part.where}.{key} must be one of {names}, got {name!r:.60}", key)


def _level(part: TomlSection) -> float:
    level = _number(part, "level", LEVEL)
    if level is None or not 0 < level < 1:
        part.refuse(f"{part.where}.level must be between 0 and 1", "level")
    return level


def _number(part: TomlSection, key: str, default: float | None) -> float | None:
    value = part.take(key, (int, float), default)
    if value is not None and math.isnan(value):
        part.refuse(f"{part.where}.{key} must be a number", key)
    return None if value is None else float(value)
