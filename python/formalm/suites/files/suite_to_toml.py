"""Writer of suite files: a :class:`Suite` to TOML."""

from __future__ import annotations

from typing import Any

from formalm.query.toml import toml_key, toml_value
from formalm.suites.fact_rows import Rows
from formalm.suites.files.load import FORMAT, TEXTS, VERSION
from formalm.suites.files.load_metrics import LEVEL
from formalm.suites.files.load_questions import DRAWS, TOLERANCE
from formalm.suites.oracles.oracle import Oracle
from formalm.suites.slots_and_templates import Slot
from formalm.suites.suite import Suite
from formalm.suites.suite_parts import Assertion, Comparison, Metric, Question

__all__ = ["to_toml"]


def to_toml(suite: Suite) -> str:
    """Returns a suite as TOML; see :meth:`formalm.suites.Suite.to_toml`."""
    top: dict[str, Any] = {"format": FORMAT, "version": VERSION}
    top |= {"name": suite.name, "title": suite.title}
    top |= {key: getattr(suite, key) for key in TEXTS if getattr(suite, key)}
    lines = _pairs(top)
    lines += _table("slots", {slot.name: _slot(slot) for slot in suite.slots.values()})
    for rows in suite.rows.values():
        lines += _table(f"rows.{toml_key(rows.name)}", _rows(rows))
    for oracle in suite.oracles.values():
        lines += _table(f"oracles.{toml_key(oracle.name)}", _oracle(oracle))
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
    data = {"file": slot.file, "pattern": slot.pattern, "words_of": slot.words_of}
    data |= {"schema": slot.schema, "without": slot.without}
    given = {key: value for key, value in data.items() if value is not None}
    return given or list(slot.texts or ())


def _rows(rows: Rows) -> dict[str, Any]:
    data: dict[str, Any] = {"label": rows.label, "file": rows.file, "last_word": rows.last_word}
    if rows.file is None:
        data = {"label": rows.label, "rows": [dict(row) for row in rows.rows]}
    return {key: value for key, value in data.items() if value is not None}


def _oracle(oracle: Oracle) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": oracle.kind}
    if oracle.file is not None:
        data["file"] = oracle.file
    elif oracle.kind == "texts":
        data["texts"] = list(oracle.texts)
    if oracle.digest is not None:
        data["digest"] = oracle.digest
    if oracle.kind == "http":
        data["rate"] = oracle.rate
    return data


def _question(question: Question, everyone: tuple[str, ...]) -> dict[str, Any]:
    data: dict[str, Any] = {"ask": question.ask}
    if question.templates != everyone:
        data["templates"] = list(question.templates)
    if question.each:
        data["each"] = list(question.each)
    if question.given is not True:
        data["given"] = question.given
    if question.prompt is not None:
        data["prompt"] = question.prompt
    if question.tolerance not in (None, TOLERANCE):
        data["tolerance"] = question.tolerance
    named = ("rows", "targets", "answer", "seed", "oracle", "judge", "begins")
    for key in named:
        value = getattr(question, key)
        if value:
            data[key] = list(value) if isinstance(value, tuple) else value
    if question.draws != DRAWS.get(question.ask, 0):
        data["draws"] = question.draws
    return {**data, **question.fields}


def _metric(metric: Metric) -> dict[str, Any]:
    data: dict[str, Any] = {"kind": metric.kind, "query": metric.query}
    named: dict[str, Any] = {
        "between": metric.between,
        "of": metric.of,
        "targets": list(metric.targets),
    }
    named["answer"] = metric.answer
    return {**data, **{key: value for key, value in named.items() if value}}


def _comparison(comparison: Comparison) -> dict[str, Any]:
    data: dict[str, Any] = {"metric": comparison.metric, "test": comparison.test}
    if comparison.other is not None:
        data["other"] = comparison.other
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
