"""Evaluation suites: questions about a model as data, runs, metrics, comparisons and assertions."""

from formalm.suites.answers import answer_of
from formalm.suites.builtin import builtin, builtin_names
from formalm.suites.corpora import Bloom, CorpusIndex
from formalm.suites.differences import Difference
from formalm.suites.items import Item
from formalm.suites.metrics import Answered, Measurement
from formalm.suites.oracles import Oracle, judge_of, luhn
from formalm.suites.parts import Assertion, Comparison, Metric, Question
from formalm.suites.rows import Rows
from formalm.suites.run import Run, run_suite
from formalm.suites.slots import Slot, Template
from formalm.suites.suite import Suite
from formalm.suites.verdicts import Evaluation, Outcome, evaluate
from formalm.suites.working import Step

__all__ = [
    "Answered",
    "Assertion",
    "Bloom",
    "Comparison",
    "CorpusIndex",
    "Difference",
    "Evaluation",
    "Item",
    "Measurement",
    "Metric",
    "Oracle",
    "Outcome",
    "Question",
    "Rows",
    "Run",
    "Slot",
    "Step",
    "Suite",
    "Template",
    "answer_of",
    "builtin",
    "builtin_names",
    "evaluate",
    "judge_of",
    "luhn",
    "run_suite",
]
