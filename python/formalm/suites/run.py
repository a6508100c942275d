"""Runs of suites that survive being killed."""

from __future__ import annotations

import json
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from types import TracebackType

from formalm.drivers.files import write_whole
from formalm.errors import ArgumentError, SuiteError
from formalm.models import LanguageModel
from formalm.models.fingerprints import model_description
from formalm.store import Journal
from formalm.suites.answers import Answer
from formalm.suites.items import Item
from formalm.suites.manifest import Manifest, described, key_of
from formalm.suites.packages import check_packages
from formalm.suites.rounding import log_tolerance_of
from formalm.suites.suite import Suite
from formalm.suites.verdicts import Evaluation, evaluate
from formalm.suites.working import Step, Worker, checked, chosen_items, work_on

__all__ = ["Run", "run_suite"]

RESULTS = "results.jsonl"
JOURNAL = "journal.sqlite"


class Run:
    """A run: a directory with what it is of, a journal of answers, and results.

    Parameters
    ----------
    directory
        Of a run that was begun.

    Attributes
    ----------
    directory, manifest
        Where it is, and what it is of.
    items
        What is asked.
    journal
        The answers so far.

    Raises
    ------
    SuiteError
        If there is no run, or it is damaged.
    """

    def __init__(self, directory: str | PathLike[str]) -> None:
        self.directory = Path(directory)
        self.manifest = Manifest.read(self.directory)
        self.items = self.manifest.asked.items()
        self.keys = [key_of(item, self.manifest) for item in self.items]
        self.journal = Journal(self.directory / JOURNAL, create=False)

    @classmethod
    def begin(
        cls,
        directory: str | PathLike[str],
        suite: Suite,
        model: LanguageModel,
        *,
        identity: str | None = None,
        batch_size: int = 16,
        max_draws: int | None = None,
    ) -> Run:
        """Begin a run, or open it if it was begun.

        Parameters
        ----------
        directory
            Where; it is made if there is none.
        suite, model
            What is asked of whom.
        identity
            A name for a model that cannot be told from others: a function, or one on a server.
        batch_size
            Most prefixes a call of the model.
        max_draws
            Most draws of an item, where the suite wants more. It is recorded: such a run is not the
            whole, and what is demanded of drawn numbers stays inconclusive.

        Raises
        ------
        SuiteError
            If there is a run of something else.
        ArgumentError
            If the model needs an identity, or a package is missing that the suite's numbers need.
        """
        for name, value in (("batch_size", batch_size), ("max_draws", max_draws)):
            if value is not None and (type(value) is not int or value < 1):
                raise ArgumentError(f"{name} is an integer from 1, not {value!r}")
        if batch_size is None:
            raise ArgumentError("batch_size is an integer from 1, not None")
        check_packages(suite)
        manifest = described(
            suite,
            model_description(model, identity),
            batch_size,
            max_draws=max_draws,
            log_tolerance=log_tolerance_of(model),
        )
        # The journal is there before the run is: a run without one has lost its answers.
        manifest.write(Path(directory), before=lambda: Journal(Path(directory) / JOURNAL).close())
        return cls(directory)

    def __enter__(self) -> Run:  # noqa: PYI034 - typing.Self came with 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the journal."""
        self.journal.close()

    @property
    def answered(self) -> list[tuple[Item, Answer]]:
        """The items that have an answer, with it, in the order of the suite."""
        entries = {entry.key: entry for entry in self.journal.entries()}
        pairs = zip(self.items, self.keys, strict=True)
        return [
            (item, checked(self.journal, item, entries[key]))
            for item, key in pairs
            if key in entries
        ]

    @property
    def is_complete(self) -> bool:
        """Whether every item has an answer."""
        return len(self.answered) == len(self.items)

    @property
    def is_whole(self) -> bool:
        """Whether every item has an answer, with as many draws as the suite wants."""
        return self.is_complete and self.manifest.asked == self.manifest.suite

    def work(
        self,
        model: LanguageModel,
        *,
        identity: str | None = None,
        limit: int | None = None,
        shard: tuple[int, int] = (1, 1),
        items_per_slot: int | None = None,
        cache: str | PathLike[str] | None = None,
        allow_http: bool = False,
        progress: Callable[[Step], None] | None = None,
        waiting: Callable[[int], None] | None = None,
    ) -> None:
        """Ask what has no answer yet.

        Each answer is on the disk before the next item is asked. A process that is killed loses the
        item it was at, and whoever goes on asks that one anew. Several processes may work on one
        directory; an item is asked by one of them.

        Parameters
        ----------
        model, identity
            The model that the run is of.
        limit
            Ask at most so many items.
        shard
            ``(i, n)``: only every n-th item, from the i-th on.
        items_per_slot
            Only items of the first so many texts of each slot, and of the first so many rows. The
            others stay unanswered, so the run is never taken for the whole.
        cache
            A file of answers for many runs, with keys of all that matters: a model with one other
            weight finds nothing in it.
        allow_http
            Whether oracles may ask servers; nothing else opens a connection.
        progress
            Called after each item.
        waiting
            Called with their number when only items are left that other processes are at.

        Raises
        ------
        SuiteError
            If the model or a version is another one, or the disk is full; what was answered is
            kept.
        """
        now = described(
            self.manifest.suite,
            model_description(model, identity),
            self.manifest.batch_size,
            max_draws=self.manifest.max_draws,
            log_tolerance=log_tolerance_of(model),
        )
        now.check(self.manifest, self.directory)
        check_packages(self.manifest.suite)
        pending = chosen_items(self, limit, shard, items_per_slot)
        kept = None if cache is None else Journal(Path(cache))
        try:
            worker = Worker(self, model, kept, progress, allow_http, waiting)
            work_on(self, worker, pending)
        finally:
            if kept is not None:
                kept.close()

    def absorb(self, directory: str | PathLike[str]) -> int:
        """Take over the answers of another run of the same, such as another shard's.

        Returns
        -------
        int
            How many were new.

        Raises
        ------
        SuiteError
            If it is a run of something else.
        """
        with Run(directory) as other:
            self.manifest.check(other.manifest, other.directory)
            wanted = set(self.keys)
            return sum(
                self.journal.add(entry.key, entry.answer, entry.seconds)
                for entry in other.journal.entries()
                if entry.key in wanted
            )

    def evaluate(self) -> Evaluation:
        """What follows from the answers so far."""
        asked, whole = self.manifest.asked, self.manifest.suite
        return evaluate(asked, self.answered, whole=whole, items=self.items)

    def write_results(self) -> Path:
        """Write the answers as lines of JSON, in the order of the suite; timings are not in it.

        Returns
        -------
        Path
            The file. Equal runs have equal files, however often they were killed.
        """
        lines = []
        for item, answer in self.answered:
            row = {"query": item.question.name, "where": item.where, "answer": _untimed(answer)}
            lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        path = self.directory / RESULTS
        try:
            text = "".join(lines)
            write_whole(path, lambda file: file.write(text.encode()))
        except OSError as error:
            raise SuiteError(f"cannot write {str(path)!r}: {error.strerror}") from None
        return path


def run_suite(
    suite: Suite,
    model: LanguageModel,
    directory: str | PathLike[str],
    *,
    identity: str | None = None,
    batch_size: int = 16,
    max_draws: int | None = None,
    limit: int | None = None,
    shard: tuple[int, int] = (1, 1),
    items_per_slot: int | None = None,
    cache: str | PathLike[str] | None = None,
    allow_http: bool = False,
    progress: Callable[[Step], None] | None = None,
) -> Run:
    """Begin a run of a suite or go on with it, and write its results.

    Parameters
    ----------
    suite, model, directory, identity, batch_size, max_draws
        As in :meth:`Run.begin`.
    limit, shard, items_per_slot, cache, allow_http, progress
        As in :meth:`Run.work`.

    Raises
    ------
    SuiteError, ArgumentError
        As there.
    """
    run = Run.begin(
        directory, suite, model, identity=identity, batch_size=batch_size, max_draws=max_draws
    )
    run.work(
        model,
        identity=identity,
        limit=limit,
        shard=shard,
        items_per_slot=items_per_slot,
        cache=cache,
        allow_http=allow_http,
        progress=progress,
    )
    run.write_results()
    return run


def _untimed(answer: Answer) -> Answer:
    """An answer without what another run would measure otherwise: seconds of a search's hits."""
    if answer["ask"] != "search":
        return answer
    hits = [
        {key: value for key, value in hit.items() if key != "seconds"} for hit in answer["hits"]
    ]
    return {**answer, "hits": hits}
