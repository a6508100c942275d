"""Evaluation suites: questions about a model as data, runs, metrics, comparisons and assertions."""

from formalm.suites.answers.query_answers import answer_of
from formalm.suites.builtin_suites import builtin, builtin_names
from formalm.suites.corpus_prompts import CorpusPrompt, corpus_prompts
from formalm.suites.fact_rows import Rows
from formalm.suites.metrics.assertion_verdicts import Evaluation, Outcome, evaluate
from formalm.suites.metrics.bounded_metrics import Answered, Measurement
from formalm.suites.metrics.comparisons import Difference
from formalm.suites.oracles.corpora import Bloom, CorpusIndex
from formalm.suites.oracles.oracle import Oracle, judge_of, luhn
from formalm.suites.runs.answer_items import Step
from formalm.suites.runs.run import Run, run_suite
from formalm.suites.slots_and_templates import Slot, Template
from formalm.suites.suite import Suite
from formalm.suites.suite_items import Item
from formalm.suites.suite_parts import Assertion, Comparison, Metric, Question

__all__ = [
    "Answered",
    "Assertion",
    "Bloom",
    "Comparison",
    "CorpusIndex",
    "CorpusPrompt",
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
    "corpus_prompts",
    "evaluate",
    "judge_of",
    "luhn",
    "run_suite",
]
