"""Answers of a model to suite items, computed and stored as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from formalm.cost import Cost, Progress
from formalm.errors import ArgumentError
from formalm.models import LanguageModel
from formalm.probability import Mass, distortion, mass, mass_table
from formalm.probability.mass_tables import MassTable
from formalm.records.jsonl import split_lines
from formalm.records.record_sequence import Records
from formalm.searching import Search, search
from formalm.suites.answers.exposure import scored
from formalm.suites.answers.free_text import free, judged_text
from formalm.suites.suite_items import Item

__all__ = ["Answer", "answer_of", "table_of"]

Answer = dict[str, Any]


def answer_of(
    model: LanguageModel,
    item: Item,
    *,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
    judge: Callable[[str], bool] | None = None,
) -> Answer:
    """Puts an item to a model and returns the answer.

    Parameters
    ----------
    model
        The model.
    item
        The item.
    batch_size, progress
        As in :func:`~formalm.mass`.
    judge
        The oracle of the query, see :func:`~formalm.suites.judge_of`. It is called here, so that
        the answer is complete.

    Returns
    -------
    dict
        JSON data from which all metrics are computed.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupted it; half an answer is never returned.
    """
    if item.question.oracle is not None and judge is None:
        raise ArgumentError(
            f"judge must be given, because the query {item.question.name!r} has an oracle",
            hint="judge=judge_of(suite.oracles[name])",
        )
    if item.question.ask == "score":
        return scored(model, item, batch_size=batch_size, progress=progress)
    if item.question.ask == "free":
        return free(model, item, judge, batch_size=batch_size)
    options: dict[str, Any] = {"prompt": item.question.prompt, "batch_size": batch_size}
    options["progress"] = progress
    if item.question.ask == "search":
        return _listed(model, item, options, judge)
    if item.question.ask == "distortion":
        return _moved(model, item, options)
    options["tolerance"] = float(item.question.tolerance or 0.0)
    if item.question.ask == "mass":
        return _bounded(mass(model, item.query, **options))
    return _tabled(mass_table(model, item.query, item.open, **options))


def _bounded(found: Mass) -> Answer:
    return {"ask": "mass", "low": found.low, "high": found.high, **_end(found)}


def _tabled(found: MassTable) -> Answer:
    return {
        "ask": "table",
        "groups": list(found.groups),
        "cells": [[list(cell), decided] for cell, decided in found.decided.items()],
        "error": found.error,
        "undecided": found.undecided,
        **_end(found),
    }


def _listed(
    model: LanguageModel,
    item: Item,
    options: dict[str, Any],
    judge: Callable[[str], bool] | None,
) -> Answer:
    bounds: list[float | None] = []
    progress = options["progress"]

    def heard(now: Progress) -> None:
        bounds.append(now.best_logprob)
        if progress is not None:
            progress(now)

    found = search(model, item.query, **{**options, "progress": heard})
    hits = [json.loads(row) for row in split_lines(Records(found).to_jsonl())]
    for hit in hits:
        # A reader of the answer has no vocabulary to decode the tokens.
        hit["tokens"] = [model.vocabulary.decode_text([one]) for one in hit["token_ids"]]
        if judge is not None:
            hit["valid"] = judge(judged_text(item, hit["text"]))
    # Upper bound for strings not found; from before the last batch, so still valid.
    bound = None if found.status == "exhausted" or not bounds else bounds[-1]
    return {"ask": "search", "hits": hits, "bound": bound, **_end(found)}


def _moved(model: LanguageModel, item: Item, options: dict[str, Any]) -> Answer:
    """Returns how far a mask moves the model, and the probability of the language without one."""
    question = item.question
    found = distortion(model, item.query, draws=question.draws, seed=question.seed, **options)
    if found.status == "interrupted":
        raise KeyboardInterrupt
    local = found.divergences["local"].total_variation
    return {
        "ask": "distortion",
        "exact": found.exact,
        "mass": [found.mass.low, found.mass.high],
        "variation": [local.low, local.high],
        "draws": 0 if found.exact else question.draws,
        "status": "done",
        "truncated_by": None,
        "work": _work(found.cost),
    }


def _end(found: Mass | MassTable | Search) -> Answer:
    """Returns how the search ended; raises if it was interrupted."""
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return {
        "status": found.status,
        "truncated_by": found.truncated_by,
        "work": _work(found.cost),
    }


def _work(cost: Cost) -> dict[str, int]:
    """Returns the cost without the seconds: an answer is the same whenever it is asked."""
    return {name: value for name, value in asdict(cost).items() if name != "seconds"}


def table_of(answer: Answer) -> MassTable:
    """Returns the mass table that an answer describes."""
    return MassTable(
        tuple(answer["groups"]),
        None,
        {tuple(cell): decided for cell, decided in answer["cells"]},
        answer["error"],
        answer["undecided"],
        answer["status"],
        answer["truncated_by"],
        dropped=0,  # a file has no functions
        cost=Cost(**answer["work"], seconds=math.nan),  # an answer is the same whenever it is asked
    )
