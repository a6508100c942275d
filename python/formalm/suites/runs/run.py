"""Runs of suites in a directory, resumable after being killed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from os import PathLike
from pathlib import Path

from formalm.atomic_write import write_atomically
from formalm.errors import ArgumentError, SuiteError
from formalm.models import LanguageModel
from formalm.models.model_identity import model_description
from formalm.stats.argument_checks import scipy_part
from formalm.store import Journal
from formalm.suites.answers.query_answers import Answer
from formalm.suites.metrics.assertion_verdicts import Evaluation, evaluate
from formalm.suites.runs.answer_items import Step, Worker, checked, chosen_items, work_on
from formalm.suites.runs.manifest import Manifest, described, key_of, log_tolerance_of
from formalm.suites.suite import Suite
from formalm.suites.suite_items import Item

__all__ = ["Run", "check_packages", "run_suite"]

RESULTS = "results.jsonl"
JOURNAL = "journal.sqlite"


class Run:
    """A run: a directory with its manifest, a journal of answers, and results.

    Parameters
    ----------
    directory
        The directory of an existing run.

    Attributes
    ----------
    directory, manifest
        Its location and identity.
    items
        The items.
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
        self.items = self.manifest.suite_as_run.items()
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
        """Creates a run, or opens an existing one.

        Parameters
        ----------
        directory
            The directory; it is created if necessary.
        suite, model
            The suite and the model.
        identity
            A name for a model that formalm cannot identify: a function, or a model on a server.
        batch_size
            Maximum number of prefixes per call of the model.
        max_draws
            Maximum number of draws of an item, below the suite's. It is recorded, and assertions
            about numbers with too few draws are inconclusive.

        Raises
        ------
        SuiteError
            If the directory has a run of something else.
        ArgumentError
            If the model needs an identity, or a package is missing that the suite's metrics need.
        """
        for name, value in (("batch_size", batch_size), ("max_draws", max_draws)):
            if value is not None and (type(value) is not int or value < 1):
                raise ArgumentError(f"{name} must be a positive integer, got {value!r}")
        if batch_size is None:
            raise ArgumentError("batch_size must be a positive integer, got None")
        check_packages(suite)
        manifest = described(
            suite,
            model_description(model, identity),
            batch_size,
            max_draws=max_draws,
            log_tolerance=log_tolerance_of(model),
        )
        # The journal is created first, so a run without one has lost its answers.
        manifest.write(Path(directory), before=lambda: Journal(Path(directory) / JOURNAL).close())
        return cls(directory)

    def __enter__(self) -> Run:  # noqa: PYI034 - typing.Self came with 3.11
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the journal."""
        self.journal.close()

    @property
    def answered(self) -> list[tuple[Item, Answer]]:
        """The answered items with their answers, in the order of the suite."""
        entries = {entry.key: entry for entry in self.journal.entries()}
        pairs = zip(self.items, self.keys, strict=True)
        return [
            (item, checked(self.journal, item, entries[key]))
            for item, key in pairs
            if key in entries
        ]

    @property
    def is_complete(self) -> bool:
        """True if every item has an answer."""
        return len(self.answered) == len(self.items)

    @property
    def is_whole(self) -> bool:
        """True if every item has an answer with as many draws as the suite wants."""
        return self.is_complete and self.manifest.suite_as_run == self.manifest.suite

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
        """Answers the open items.

        Each answer is on disk before the next item starts. If a process is killed, its current item
        is answered again by the next call. Several processes may work on one directory; each item
        is answered by one of them.

        Parameters
        ----------
        model, identity
            The model of the run.
        limit
            Maximum number of items to answer.
        shard
            ``(i, n)``: only every n-th item, from the i-th on.
        items_per_slot
            Only items with the first values of each slot and the first rows, up to this number. The
            others stay open, so the run never counts as complete.
        cache
            A file of answers for many runs. Keys cover everything an answer depends on: a model
            with one different weight finds nothing in it.
        allow_http
            Whether oracles may query servers; nothing else opens a connection.
        progress
            Called after each item.
        waiting
            Called with the number of remaining items when other processes are working on all of
            them.

        Raises
        ------
        SuiteError
            If the model or a version differs, or the disk is full; earlier answers are kept.
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
        """Merges the answers of another run with the same manifest, such as another shard.

        Returns
        -------
        int
            The number of new answers.

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
        """Returns metrics, comparisons and verdicts of the answers so far."""
        as_run, whole = self.manifest.suite_as_run, self.manifest.suite
        return evaluate(as_run, self.answered, whole=whole, items=self.items)

    def write_results(self) -> Path:
        """Writes the answers as JSON lines, in the order of the suite and without timings.

        Returns
        -------
        Path
            The file. Equal runs have identical files, however often they were killed.
        """
        lines = []
        for item, answer in self.answered:
            row = {"query": item.question.name, "where": item.where, "answer": _untimed(answer)}
            lines.append(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")
        path = self.directory / RESULTS
        try:
            text = "".join(lines)
            write_atomically(path, lambda file: file.write(text.encode()))
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
    """Runs a suite, or resumes a run, and writes the results.

    Parameters
    ----------
    suite, model, directory, identity, batch_size, max_draws
        As in :meth:`Run.begin`.
    limit, shard, items_per_slot, cache, allow_http, progress
        As in :meth:`Run.work`.

    Raises
    ------
    SuiteError, ArgumentError
        As in these methods.
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
    """Returns an answer without its timings, which another run would not reproduce."""
    if answer["ask"] != "search":
        return answer
    hits = [
        {key: value for key, value in hit.items() if key != "seconds"} for hit in answer["hits"]
    ]
    return {**answer, "hits": hits}


SCIPY_METRICS = ("accuracy", "exposure", "jensen_shannon", "rate")
SCIPY_TESTS = ("mcnemar",)


def check_packages(suite: Suite) -> None:
    """Refuses a suite whose metrics could not be computed from its answers.

    Raises
    ------
    ArgumentError
        If a package is missing; names the part of the suite that needs it.
    """
    needing = next(_needing_scipy(suite), None)
    if needing is None:
        return
    try:
        scipy_part("special")
    except ArgumentError as error:
        raise ArgumentError(
            f"the suite {suite.name!r} requires the package scipy, for {needing}", hint=error.hint
        ) from None


def _needing_scipy(suite: Suite) -> Iterator[str]:
    for metric in suite.metrics.values():
        if metric.kind in SCIPY_METRICS:
            yield f"the metric {metric.name!r} ({metric.kind})"
    for comparison in suite.comparisons.values():
        if comparison.test in SCIPY_TESTS:
            yield f"the comparison {comparison.name!r} ({comparison.test})"
