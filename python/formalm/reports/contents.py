"""What a report of a run has to say, before it is a page, a table or a file for a CI server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from formalm.suites import Answered, Difference, Evaluation, Item, Measurement, Question, Run, Suite
from formalm.suites.answers import Answer
from formalm.suites.manifest import Manifest

__all__ = ["Contents", "Part", "contents_of"]

ASKED = {
    "mass": "How probable are these texts together?",
    "table": "How is the probability divided among the values of the open slots?",
    "search": "Which of these texts are the most probable, in order?",
    "score": "How exposed are listed texts among all texts of their form?",
    "free": "What does the model write with nothing to keep to?",
    "distortion": "How far does a mask move the model from its own distribution?",
}


@dataclass(frozen=True)
class Part:
    """One query of a run, with what came of it.

    Attributes
    ----------
    question
        The query.
    asked
        What it asks, in words.
    answered
        Its items with their answers.
    total
        How many items it has.
    measurements
        The numbers of its metrics, by metric.
    """

    question: Question
    asked: str
    answered: tuple[tuple[Item, Answer], ...]
    total: int
    measurements: dict[str, tuple[Measurement, ...]]

    @property
    def patterns(self) -> list[str]:
        """The languages asked about, one for each template, as the first item of each has it."""
        first: dict[str, Item] = {}
        for item, _ in self.answered:
            first.setdefault(item.template, item)
        return [repr(item.query) for item in first.values()]

    @property
    def limits_reached(self) -> dict[str, int]:
        """How many items each limit cut short; so many hits were asked for, and cut nothing."""
        reached: dict[str, int] = {}
        for _, answer in self.answered:
            limit = answer["truncated_by"]
            if limit not in (None, "hits"):
                reached[limit] = reached.get(limit, 0) + 1
        return reached

    @property
    def work(self) -> dict[str, int]:
        """What was spent on it."""
        spent = {"forwards": 0, "tokens_computed": 0}
        for _, answer in self.answered:
            for name in spent:
                spent[name] += answer["work"][name]
        return spent


@dataclass(frozen=True)
class Contents:
    """A run, ready to be told.

    Attributes
    ----------
    directory
        Where the run is, as it was named.
    manifest
        What it is of.
    evaluation
        What follows from its answers.
    verdict
        ``"pass"``, ``"fail"`` or ``"inconclusive"``; the last as well while items are missing.
    answered, total
        How many items have an answer, of how many.
    seconds
        How long the answers took together.
    parts
        Its queries.
    """

    directory: str
    manifest: Manifest
    evaluation: Evaluation
    verdict: str
    answered: int
    total: int
    seconds: float
    parts: tuple[Part, ...]

    @property
    def suite(self) -> Suite:
        """The suite."""
        return self.manifest.suite

    @property
    def extent(self) -> str:
        """How much of the suite was asked."""
        items = f"{self.answered:,} of {self.total:,} items"
        draws = self.manifest.max_draws
        return items if draws is None else f"{items}, at most {draws:,} draws an item"

    @property
    def differences(self) -> dict[str, tuple[Difference, ...]]:
        """What comparisons found, by comparison."""
        return {
            name: tuple(one for one in self.evaluation.differences if one.comparison == name)
            for name in self.suite.comparisons
        }

    @property
    def commands(self) -> list[str]:
        """How to compute every number again from the journal, and how to run it anew."""
        directory = quote(self.directory)
        return [
            f"formalm suite verdict {directory} --json",
            f"formalm suite report {directory}",
            f"formalm suite resume {directory} --model MODEL",
        ]


def contents_of(run: Run) -> Contents:
    """What a report of a run has to say; no model is asked.

    Parameters
    ----------
    run
        The run.
    """
    answered, evaluation = run.answered, run.evaluate()
    verdict = evaluation.verdict
    if verdict == "pass" and not run.is_whole:
        verdict = "inconclusive"  # nothing is demanded, and not everything was asked
    suite = run.manifest.suite
    parts = tuple(
        _part(suite, question, run.items, answered, evaluation)
        for question in suite.queries.values()
    )
    seconds = sum(entry.seconds for entry in run.journal.entries())
    return Contents(
        str(run.directory),
        run.manifest,
        evaluation,
        verdict,
        len(answered),
        len(run.items),
        seconds,
        parts,
    )


def _part(
    suite: Suite,
    question: Question,
    items: Sequence[Item],
    answered: Answered,
    evaluation: Evaluation,
) -> Part:
    own = tuple(pair for pair in answered if pair[0].question.name == question.name)
    names = [metric.name for metric in suite.metrics.values() if metric.query == question.name]
    numbers = {
        name: tuple(one for one in evaluation.measurements if one.metric == name) for name in names
    }
    total = sum(item.question.name == question.name for item in items)
    return Part(question, ASKED[question.ask], own, total, numbers)
