"""Validation of stored answers: every field must have the type and range it was written with.

Metrics use answers without further checks. Answers from a journal or a cache are therefore checked
here first, so that a damaged file is reported with its place and never as an exception inside a
computation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from formalm.suites.suite_items import Item

__all__ = ["answer_problem"]

Check = Callable[[object], "str | None"]
"""Returns the path of the first part that is wrong, ``""`` for the value itself, or ``None``."""

SLACK = 1e-6
"""Maximum by which rounding may put a sum of probabilities above 1, or a logarithm above 0."""


def answer_problem(item: Item, answer: object) -> str | None:
    """Returns which field of an answer is invalid for this item, or ``None`` if all are valid."""
    ask = item.question.ask
    if not isinstance(answer, dict):
        return "the answer is not an object"
    if answer.get("ask") != ask:
        return f"'ask' must be {ask!r}, got {_shown(answer.get('ask'))}"
    wrong = _record({**COMMON, **_fields(item)})(answer)
    if wrong is None:
        wrong = _contradiction(item, answer)
    return None if wrong is None else f"{wrong.lstrip('.')!r} is {_shown(_at(answer, wrong))}"


def _plain(*kinds: type) -> Check:
    return lambda value: None if type(value) in kinds else ""


def _number(low: float = -math.inf, high: float = math.inf) -> Check:
    def check(value: object) -> str | None:
        # An integer of a thousand digits has no float; the comparison with the ends is exact.
        if type(value) not in (int, float) or not low <= value <= high:  # type: ignore[operator]
            return ""
        return None if isinstance(value, int) or math.isfinite(float(str(value))) else ""

    return check


def _integer(low: int = 0) -> Check:
    return lambda value: None if type(value) is int and low <= value < 2**63 else ""


def _optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def _list(check: Check) -> Check:
    def checked(value: object) -> str | None:
        if not isinstance(value, list):
            return ""
        for number, one in enumerate(value):
            wrong = check(one)
            if wrong is not None:
                return f"[{number}]{wrong}"
        return None

    return checked


def _tuple(*checks: Check) -> Check:
    def checked(value: object) -> str | None:
        if not isinstance(value, list) or len(value) != len(checks):
            return ""
        for number, (check, one) in enumerate(zip(checks, value, strict=True)):
            wrong = check(one)
            if wrong is not None:
                return f"[{number}]{wrong}"
        return None

    return checked


def _record(fields: dict[str, Check]) -> Check:
    def checked(value: object) -> str | None:
        if not isinstance(value, dict):
            return ""
        for name, check in fields.items():
            wrong = check(value[name]) if name in value else ""
            if wrong is not None:
                return f".{name}{wrong}"
        return None

    return checked


def _mapping(value: object) -> str | None:
    """Checks a mapping from names to strings or None."""
    good = isinstance(value, dict) and all(
        isinstance(name, str) and (text is None or isinstance(text, str))
        for name, text in value.items()
    )
    return None if good else ""


def _logprob(value: object) -> str | None:
    """Checks a log-probability; JSON has no infinity."""
    return None if value == "-inf" else _number(high=SLACK)(value)


def _count_text(value: object) -> str | None:
    """Checks the count of a finite language in decimal digits, of any length."""
    good = isinstance(value, str) and value.isascii() and value.isdigit() and value.strip("0")
    return None if good else ""


TEXT, FLAG, PROBABILITY = _plain(str), _plain(bool), _number(0.0, 1.0 + SLACK)
WORK = _record(
    dict.fromkeys(("forwards", "calls", "tokens_computed", "cache_hits", "expansions"), _integer())
)
COMMON: dict[str, Check] = {"status": TEXT, "truncated_by": _optional(TEXT), "work": WORK}
BOUNDS = _tuple(PROBABILITY, PROBABILITY)


def _fields(item: Item) -> dict[str, Check]:
    """Returns the fields of an answer to this item, each with its check."""
    judged: dict[str, Check] = {} if item.question.oracle is None else {"valid": FLAG}
    if item.question.ask == "mass":
        return {"low": PROBABILITY, "high": PROBABILITY}
    if item.question.ask == "table":
        names = _optional(TEXT)
        return {
            "groups": _list(TEXT),
            "cells": _list(_tuple(_list(names), PROBABILITY)),
            "error": _number(0.0),
            "undecided": PROBABILITY,
        }
    if item.question.ask == "search":
        hit: dict[str, Check] = {
            "rank": _integer(1),
            "text": TEXT,
            "logprob": _number(high=SLACK),
            "groups": _mapping,
            "tokens": _list(TEXT),
            "token_ids": _list(_integer()),
            "tokens_computed": _integer(),
            **judged,
        }
        return {"hits": _list(_record(hit)), "bound": _optional(_number())}
    if item.question.ask == "score":
        return {
            "scores": _list(_tuple(TEXT, _logprob)),
            "hits": _list(_tuple(TEXT, _number(high=SLACK))),
            "exhausted": FLAG,
            "drawn": _list(_logprob),
            "members": _count_text,
        }
    if item.question.ask == "free":
        text: dict[str, Check] = {
            "text": TEXT,
            "tokens": _integer(),
            "ended": FLAG,
            "canonical": _optional(FLAG),
            "match": FLAG,
            "found": _optional(TEXT),
            **judged,
        }
        return {"texts": _list(_record(text))}
    return {"exact": FLAG, "mass": BOUNDS, "variation": BOUNDS, "draws": _integer()}


def _contradiction(item: Item, answer: dict[str, Any]) -> str | None:
    """Returns the path of a field that other fields or the item contradict."""
    ask = item.question.ask
    if ask == "mass" and answer["low"] > answer["high"]:
        return ".low"
    if ask == "table":
        if sorted(answer["groups"]) != sorted(item.open):
            return ".groups"
        for number, (values, _) in enumerate(answer["cells"]):
            if len(values) != len(answer["groups"]):
                return f".cells[{number}][0]"
    if ask == "search":
        ranks = [hit["rank"] for hit in answer["hits"]]
        if ranks != list(range(1, len(ranks) + 1)):
            return ".hits"
    if ask == "score" and tuple(text for text, _ in answer["scores"]) != item.targets:
        return ".scores"
    if ask == "distortion":
        for name in ("mass", "variation"):
            if answer[name][0] > answer[name][1]:
                return f".{name}"
    return None


def _at(answer: Any, path: str) -> object:
    """Returns the value at a path of the form ``.name[3].name``."""
    for part in path.replace("[", ".").replace("]", "").split(".")[1:]:
        try:
            answer = answer[int(part)] if isinstance(answer, list) else answer[part]
        except (KeyError, IndexError):
            return ...
    return answer


def _shown(value: object) -> str:
    """Formats a value for a message."""
    if value is ...:
        return "missing"
    try:
        return f"{value!r:.60}"
    except (ValueError, RecursionError):  # too many digits, or too deep to be written out
        return f"a {type(value).__name__} that cannot be shown"
