"""Grading of answers: whether the first hit is right, and the real strings found."""

from __future__ import annotations

from formalm.suites.answers.query_answers import Answer
from formalm.suites.items import Item
from formalm.suites.suite_parts import Metric

__all__ = ["found_texts", "is_right"]


def is_right(metric: Metric, item: Item, answer: Answer) -> bool | None:
    """Returns whether the first hit has the row's answer; None if a limit came first."""
    if not answer["hits"]:
        return False if answer["status"] == "exhausted" else None
    found = answer["hits"][0]["groups"].get(str(metric.of))
    return bool(found == item.row[str(metric.answer)])


def found_texts(answer: Answer) -> list[str]:
    """Returns the distinct strings found; with an oracle, only those it knows.

    For free texts, the members found in them count, not the text after them.
    """
    if answer["ask"] == "search":
        return list(dict.fromkeys(hit["text"] for hit in answer["hits"] if hit.get("valid", True)))
    return list(
        dict.fromkeys(
            text["found"]
            for text in answer["texts"]
            if text["found"] is not None and text.get("valid", True)
        )
    )
