"""One call that works on a run: selection and order of items, locks, cache, progress."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from formalm.errors import ArgumentError
from formalm.models import LanguageModel
from formalm.store import Entry, ItemLocks, Journal
from formalm.suites.answers.answer_checks import answer_problem
from formalm.suites.answers.query_answers import Answer, answer_of
from formalm.suites.oracles.oracle import judge_of
from formalm.suites.suite_items import Item

if TYPE_CHECKING:
    from formalm.suites.runs.run import Run

__all__ = ["Step", "Worker", "checked", "chosen_items", "work_on"]

PAUSE_SECONDS = 0.05


@dataclass(frozen=True)
class Step:
    """An item that was just answered.

    Attributes
    ----------
    item
        The item.
    done, total
        Number of answered items, and of all items.
    seconds
        Time since this call began.
    remaining_seconds
        Estimate of this call's remaining time, from the mean of the items it answered; None before
        the first one.
    source
        ``"model"``, ``"cache"``, or ``"other"`` process.
    tokens_computed
        Its cost: number of tokens that the model evaluated for it, whenever that was.
    covered
        Share of the model's probability that the answer decides: that of the strings listed, or of
        a language with bounds; None if this does not apply.
    """

    item: Item
    done: int
    total: int
    seconds: float
    remaining_seconds: float | None
    source: str
    tokens_computed: int
    covered: float | None


def covered_by(answer: Answer) -> float | None:
    """Returns the probability that an answer decides."""
    if answer["ask"] == "search":
        return math.fsum(math.exp(min(0.0, hit["logprob"])) for hit in answer["hits"])
    if answer["ask"] == "mass":
        return 1.0 - (float(answer["high"]) - float(answer["low"]))
    if answer["ask"] == "table":
        return 1.0 - float(answer["undecided"])
    return None


class Worker:
    """The state of one call of :meth:`Run.work`: the model, and the items answered."""

    def __init__(
        self,
        run: Run,
        model: LanguageModel,
        cache: Journal | None,
        progress: Callable[[Step], None] | None,
        allow_http: bool = False,
        waiting: Callable[[int], None] | None = None,
    ) -> None:
        oracles = run.manifest.suite.oracles
        self.judges = {
            name: judge_of(oracles[name], allow_http=allow_http)
            for name in dict.fromkeys(item.question.oracle for item in run.items)
            if name is not None
        }
        self.run, self.model, self.cache, self.progress = run, model, cache, progress
        self.waiting = waiting
        self.started = time.monotonic()
        self.done = len(run.answered)
        self.answered_now, self.answering_seconds = 0, 0.0
        self.left: int | None = None

    def answer(self, number: int, pending: int) -> None:
        """Answers an item, unless another process has."""
        self.left = pending if self.left is None else self.left
        self.left -= 1
        source, answer = self._answer(number)
        self.done += 1
        if self.progress is not None:
            mean = self.answering_seconds / self.answered_now if self.answered_now else None
            self.progress(
                Step(
                    self.run.items[number],
                    self.done,
                    len(self.run.items),
                    time.monotonic() - self.started,
                    None if mean is None else mean * self.left,
                    source,
                    int(answer.get("work", {}).get("tokens_computed", 0)),
                    covered_by(answer),
                )
            )

    def _answer(self, number: int) -> tuple[str, Answer]:
        key, run = self.run.keys[number], self.run
        item = run.items[number]
        known = run.journal.entry(key)
        if known is not None:
            return "other", checked(run.journal, item, known)
        if self.cache is not None and (entry := self.cache.entry(key)) is not None:
            kept = checked(self.cache, item, entry)
            run.journal.add(key, kept, 0.0)
            return "cache", kept
        began = time.monotonic()
        judge = None if item.question.oracle is None else self.judges[item.question.oracle]
        answer = answer_of(self.model, item, batch_size=run.manifest.batch_size, judge=judge)
        seconds = time.monotonic() - began
        self.answered_now += 1
        self.answering_seconds += seconds
        run.journal.add(key, answer, seconds)
        if self.cache is not None:
            self.cache.add(key, answer, seconds)
        return "model", answer


def checked(journal: Journal, item: Item, entry: Entry) -> Answer:
    """Returns the answer of an entry.

    Raises
    ------
    SuiteError
        If it cannot be an answer to the item.
    """
    problem = answer_problem(item, entry.answer)
    if problem is not None:
        where = " ".join(f"{name}={text!r:.40}" for name, text in item.where.items())
        raise journal.damaged(
            entry.number, f"the answer for {where} of {item.question.name!r}: {problem}"
        )
    return entry.answer


def work_on(run: Run, worker: Worker, pending: list[int]) -> None:
    """Answers items; those that other processes are working on come last."""
    claims = ItemLocks(run.directory / "claims.lock")
    try:
        while pending:
            later = []
            for number in pending:
                with claims.claim(run.keys[number]) as mine:
                    if mine or run.keys[number] in run.journal:
                        worker.answer(number, len(pending))
                    else:
                        later.append(number)
            if len(later) == len(pending):
                if worker.waiting is not None:
                    worker.waiting(len(later))
                    worker.waiting = None  # once
                time.sleep(PAUSE_SECONDS)  # others are at all of them
            pending = later
    finally:
        claims.close()


def chosen_items(
    run: Run, limit: int | None, shard: tuple[int, int], items_per_slot: int | None
) -> list[int]:
    """Returns the numbers of the items to answer, each question once."""
    given: object = shard
    numbers = isinstance(given, tuple) and [type(one) for one in given] == [int, int]
    if not numbers or not 1 <= shard[0] <= shard[1]:
        raise ArgumentError(f"shard must be (i, n) with i from 1 to n, got {given!r:.60}")
    index, count = shard
    for name, value in (("limit", limit), ("items_per_slot", items_per_slot)):
        if value is not None and (type(value) is not int or value < 1):
            raise ArgumentError(f"{name} must be a positive integer, got {value!r}")
    seen = {entry.key for entry in run.journal.entries()}
    chosen = []
    for number in range(index - 1, len(run.items), count):
        if run.keys[number] not in seen and _is_among_first(run, number, items_per_slot):
            seen.add(run.keys[number])
            chosen.append(number)
    return chosen[:limit]


def _is_among_first(run: Run, number: int, count: int | None) -> bool:
    """Returns whether an item has only the first ``count`` values of each slot and rows."""
    if count is None:
        return True
    item, suite = run.items[number], run.manifest.suite
    if any(text not in (suite.slots[name].texts or ())[:count] for name, text in item.values):
        return False
    if item.question.rows is None:
        return True
    rows = suite.rows[item.question.rows].labeled()
    return item.label in [label for label, _ in islice(rows, count)]
