"""What a model answers to one item, as plain data."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from formalm.drivers import Mass, Search, mass, mass_table, search
from formalm.drivers.intervals import MassTable
from formalm.drivers.lines import split_lines
from formalm.drivers.progress import Progress
from formalm.drivers.records import Records
from formalm.drivers.work import Work
from formalm.models import LanguageModel
from formalm.suites.items import Item

__all__ = ["Answer", "answer_of", "table_of"]

Answer = dict[str, Any]


def answer_of(
    model: LanguageModel,
    item: Item,
    *,
    batch_size: int = 16,
    progress: Callable[[Progress], None] | None = None,
) -> Answer:
    """Ask a model an item.

    Parameters
    ----------
    model
        The model.
    item
        What is asked.
    batch_size, progress
        As in :func:`~formalm.mass`.

    Returns
    -------
    dict
        What JSON can hold, and all that metrics are computed from.

    Raises
    ------
    KeyboardInterrupt
        If the user interrupted it: half an answer is none.
    """
    options: dict[str, Any] = {"prompt": item.question.prompt, "batch_size": batch_size}
    options["progress"] = progress
    if item.question.ask == "search":
        return _listed(model, item, options)
    options["eps"] = float(item.question.eps or 0.0)
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


def _listed(model: LanguageModel, item: Item, options: dict[str, Any]) -> Answer:
    found = search(model, item.query, **options)
    rows = split_lines(Records(found).to_jsonl())
    return {"ask": "search", "hits": [json.loads(row) for row in rows], **_end(found)}


def _end(found: Mass | MassTable | Search) -> Answer:
    """How it ended; an interrupted one is no answer."""
    if found.status == "interrupted":
        raise KeyboardInterrupt
    return {
        "status": found.status,
        "truncated_by": found.truncated_by,
        "work": {name: value for name, value in asdict(found.work).items() if name != "seconds"},
    }


def table_of(answer: Answer) -> MassTable:
    """The table that an answer describes."""
    return MassTable(
        tuple(answer["groups"]),
        {tuple(cell): decided for cell, decided in answer["cells"]},
        answer["error"],
        answer["undecided"],
        answer["status"],
        answer["truncated_by"],
        dropped=0,  # a file has no functions
        work=Work(**answer["work"], seconds=math.nan),  # an answer is the same whenever it is asked
    )
