"""Contents of a report on a run, independent of the output format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from shlex import quote

from formalm.suites import Answered, Difference, Evaluation, Item, Measurement, Question, Run, Suite
from formalm.suites.answers.query_answers import Answer
from formalm.suites.runs.manifest import Manifest

__all__ = ["Contents", "Part", "contents_of"]

ASKED = {
    "mass": "How probable are these texts together?",
    "table": "How is the probability divided among the values of the open slots?",
    "search": "Which of these texts are the most probable, in order?",
    "score": "How exposed are listed texts among all texts of their form?",
    "free": "What does the model generate without a constraint?",
    "distortion": "How far does a mask move the model from its own distribution?",
}


@dataclass(frozen=True)
class Part:
    """One query of a run, with its answers and numbers.

    Attributes
    ----------
    question
        The query.
    description
        Its description in words.
    answered
        Its items with their answers.
    total
        Number of its items.
    measurements
        The numbers of its metrics, by metric.
    """

    question: Question
    description: str
    answered: tuple[tuple[Item, Answer], ...]
    total: int
    measurements: dict[str, tuple[Measurement, ...]]

    @property
    def patterns(self) -> list[str]:
        """The languages queried, one per template, taken from the first item of each."""
        first: dict[str, Item] = {}
        for item, _ in self.answered:
            first.setdefault(item.template, item)
        return [repr(item.query) for item in first.values()]

    @property
    def limits_reached(self) -> dict[str, int]:
        """The number of items that each limit cut short, without the limit on hits."""
        reached: dict[str, int] = {}
        for _, answer in self.answered:
            limit = answer["truncated_by"]
            if limit not in (None, "hits"):
                reached[limit] = reached.get(limit, 0) + 1
        return reached

    @property
    def work(self) -> dict[str, int]:
        """The cost of the query."""
        spent = {"forwards": 0, "tokens_computed": 0}
        for _, answer in self.answered:
            for name in spent:
                spent[name] += answer["work"][name]
        return spent


@dataclass(frozen=True)
class Contents:
    """A run, ready to be reported.

    Attributes
    ----------
    directory
        The path of the run, as given.
    manifest
        Its manifest.
    evaluation
        The evaluation of its answers.
    verdict
        ``"pass"``, ``"fail"`` or ``"inconclusive"``; also inconclusive while items are missing.
    answered, total
        Number of answered items, and of all items.
    seconds
        Total time of the answers.
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
        """A description of how many items were answered, with the cap on draws."""
        items = f"{self.answered:,} of {self.total:,} items"
        draws = self.manifest.max_draws
        return items if draws is None else f"{items}, at most {draws:,} draws per item"

    @property
    def differences(self) -> dict[str, tuple[Difference, ...]]:
        """The results of comparisons, by comparison."""
        return {
            name: tuple(one for one in self.evaluation.differences if one.comparison == name)
            for name in self.suite.comparisons
        }

    @property
    def commands(self) -> list[str]:
        """The commands that recompute every number from the journal, and repeat the run."""
        directory = quote(self.directory)
        return [
            f"formalm suite verdict {directory} --json",
            f"formalm suite report {directory}",
            f"formalm suite resume {directory} --model MODEL",
        ]


def contents_of(run: Run) -> Contents:
    """Returns the contents of a report on a run; needs no model.

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
