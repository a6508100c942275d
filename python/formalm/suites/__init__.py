"""Suites: questions about a model as data, and what has to be true of the answers."""

from formalm.suites.answers import answer_of
from formalm.suites.builtin import builtin, builtin_names
from formalm.suites.items import Item
from formalm.suites.metrics import Measurement
from formalm.suites.parts import Assertion, Comparison, Metric, Question
from formalm.suites.run import Run, run_suite
from formalm.suites.slots import Slot, Template
from formalm.suites.suite import Suite
from formalm.suites.verdicts import Difference, Evaluation, Outcome, evaluate
from formalm.suites.working import Step

__all__ = [
    "Assertion",
    "Comparison",
    "Difference",
    "Evaluation",
    "Item",
    "Measurement",
    "Metric",
    "Outcome",
    "Question",
    "Run",
    "Slot",
    "Step",
    "Suite",
    "Template",
    "answer_of",
    "builtin",
    "builtin_names",
    "evaluate",
    "run_suite",
]
