"""Suites written as files."""

from __future__ import annotations

from typing import Any

from formalm.query.toml import toml_key, toml_value
from formalm.suites.parts import Assertion, Comparison, Metric, Question
from formalm.suites.reading import EPS, FORMAT, TEXTS, VERSION
from formalm.suites.scoring import LEVEL
from formalm.suites.slots import Slot
from formalm.suites.suite import Suite

__all__ = ["to_toml"]


def to_toml(suite: Suite) -> str:
    """See :meth:`formalm.suites.Suite.to_toml`."""
    top: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    top |= {"name": suite.name, "title": suite.title}
    top |= {key: getattr(suite, key) for key in TEXTS if getattr(suite, key)}
    lines = _pairs(top)
    lines += _table("slots", {slot.name: _slot(slot) for slot in suite.slots.values()})
    lines += _table("templates", {one.name: one.text for one in suite.templates.values()})
    everyone = tuple(suite.templates)
    for question in suite.queries.values():
        lines += _table(f"queries.{toml_key(question.name)}", _question(question, everyone))
    for metric in suite.metrics.values():
        lines += _table(f"metrics.{toml_key(metric.name)}", _metric(metric))
    for comparison in suite.comparisons.values():
        lines += _table(f"comparisons.{toml_key(comparison.name)}", _comparison(comparison))
    for assertion in suite.assertions:
        lines += ["", "[[assertions]]", *_pairs(_assertion(assertion))]
    return "\n".join(lines) + "\n"


def _pairs(data: dict[str, Any]) -> list[str]:
    return [f"{toml_key(key)} = {toml_value(value)}" for key, value in data.items()]


def _table(name: str, data: dict[str, Any]) -> list[str]:
    return ["", f"[{name}]", *_pairs(data)] if data else []


def _slot(slot: Slot) -> object:
    if slot.file is not None:
        return {"file": slot.file}
    return {"pattern": slot.pattern} if slot.texts is None else list(slot.texts)


def _question(question: Question, everyone: tuple[str, ...]) -> dict[str, Any]:
    data: dict[str, Any] = {"ask": question.ask}
    if question.templates != everyone:
        data["templates"] = list(question.templates)
    if question.each:
        data["each"] = list(question.each)
    if not question.given:
        data["given"] = False
    if question.prompt is not None:
        data["prompt"] = question.prompt
    if question.eps not in (None, EPS):
        data["eps"] = question.eps
    return {**data, **question.fields}


def _metric(metric: Metric) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": metric.kind, "query": metric.query}
    named = {"between": metric.between, "of": metric.of, "targets": list(metric.targets)}
    return {**data, **{key: value for key, value in named.items() if value}}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    data: dict[str, Any] = {"metric": comparison.metric, "test": comparison.test}
    defaults = {"margin": 0.0, "correction": "holm", "level": LEVEL}
    for key, default in defaults.items():
        value = getattr(comparison, key)
        if value not in (None, default):
            data[key] = value
    return data


def _assertion(assertion: Assertion) -> dict[str, Any]:
    if assertion.comparison is not None:
        return {"comparison": assertion.comparison, "flagged": list(assertion.flagged)}
    limits = {"min": assertion.minimum, "max": assertion.maximum}
    given = {key: value for key, value in limits.items() if value is not None}
    return {"metric": assertion.metric, **given}
