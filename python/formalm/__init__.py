"""Formal languages for language models: generate inside a language, search one.

Names are imported when they are first used, so that ``import formalm`` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from formalm._core import __version__

if TYPE_CHECKING:
    from formalm import grammars as grammars
    from formalm import reports as reports
    from formalm import stats as stats
    from formalm import suites as suites
    from formalm import testing as testing
    from formalm.automata import Automaton as Automaton
    from formalm.automata import TokenAutomaton as TokenAutomaton
    from formalm.constraint import Constraint as Constraint
    from formalm.constraint import Explanation as Explanation
    from formalm.constraint import Matcher as Matcher
    from formalm.constraint import apply_bitmask as apply_bitmask
    from formalm.constraint import fill_bitmasks as fill_bitmasks
    from formalm.constraint import new_bitmask as new_bitmask
    from formalm.constraint_cache import CacheEvent as CacheEvent
    from formalm.constraint_cache import CacheStats as CacheStats
    from formalm.constraint_cache import ConstraintCache as ConstraintCache
    from formalm.continuations import Continuation as Continuation
    from formalm.continuations import continuation as continuation
    from formalm.drivers.cost import Cost as Cost
    from formalm.drivers.distortion import Distortion as Distortion
    from formalm.drivers.distortion import distortion as distortion
    from formalm.drivers.divergence import Divergence as Divergence
    from formalm.drivers.estimate import Estimate as Estimate
    from formalm.drivers.generate import generate as generate
    from formalm.drivers.mass import Mass as Mass
    from formalm.drivers.mass import mass as mass
    from formalm.drivers.mass import mass_bounds as mass_bounds
    from formalm.drivers.progress import Progress as Progress
    from formalm.drivers.record import Record as Record
    from formalm.drivers.records import Records as Records
    from formalm.drivers.records import rescore as rescore
    from formalm.drivers.result import Generation as Generation
    from formalm.drivers.sample import sample as sample
    from formalm.drivers.samples import Sample as Sample
    from formalm.drivers.samples import Samples as Samples
    from formalm.drivers.score import Score as Score
    from formalm.drivers.score import score as score
    from formalm.drivers.search import Hit as Hit
    from formalm.drivers.search import search as search
    from formalm.drivers.stream import stream as stream
    from formalm.drivers.table import Interval as Interval
    from formalm.drivers.table import MassTable as MassTable
    from formalm.drivers.table import conditional_mass as conditional_mass
    from formalm.drivers.table import mass_table as mass_table
    from formalm.errors import *  # noqa: F403
    from formalm.integrations import ConstraintLogitsProcessor as ConstraintLogitsProcessor
    from formalm.integrations import logits_processors as logits_processors
    from formalm.integrations import pipeline as pipeline
    from formalm.languages import Call as Call
    from formalm.languages import CallFormat as CallFormat
    from formalm.languages import Captures as Captures
    from formalm.languages import Choice as Choice
    from formalm.languages import Grammar as Grammar
    from formalm.languages import Indentation as Indentation
    from formalm.languages import JsonSchema as JsonSchema
    from formalm.languages import Language as Language
    from formalm.languages import ParseFailure as ParseFailure
    from formalm.languages import Parser as Parser
    from formalm.languages import Piece as Piece
    from formalm.languages import PythonType as PythonType
    from formalm.languages import Regex as Regex
    from formalm.languages import Section as Section
    from formalm.languages import SpecialToken as SpecialToken
    from formalm.languages import StringLiteral as StringLiteral
    from formalm.languages import Structure as Structure
    from formalm.languages import ToolCalls as ToolCalls
    from formalm.languages import TypeScript as TypeScript
    from formalm.models import FunctionModel as FunctionModel
    from formalm.models import TableModel as TableModel
    from formalm.models import TransformersModel as TransformersModel
    from formalm.models import from_transformers as from_transformers
    from formalm.query import Decoding as Decoding
    from formalm.query import Edits as Edits
    from formalm.query import Limits as Limits
    from formalm.query.plan import Plan as Plan
    from formalm.query.plan import plan as plan
    from formalm.query.query import Query as Query
    from formalm.vocabulary import Vocabulary as Vocabulary

_ROOMS = {
    "automata": "Automaton TokenAutomaton",
    "constraint": "Constraint Explanation Matcher apply_bitmask fill_bitmasks new_bitmask",
    "constraint_cache": "CacheEvent CacheStats ConstraintCache",
    "continuations": "Continuation continuation",
    "drivers": "Cost Distortion Divergence Estimate Generation Hit Interval Mass MassTable Progress"
    " Record Records Sample Samples Score conditional_mass distortion generate mass"
    " mass_bounds mass_table rescore sample score search stream",
    "errors": "ArgumentError ConcurrencyError DeadlineError FormalmError LanguageError LimitError"
    " ModelError ParserError SuiteError TokenError VocabularyError",
    "integrations": "ConstraintLogitsProcessor logits_processors pipeline",
    "languages": "Call CallFormat Captures Choice Grammar Indentation JsonSchema Language"
    " ParseFailure Parser Piece PythonType Regex Section SpecialToken StringLiteral Structure"
    " ToolCalls TypeScript",
    "models": "FunctionModel TableModel TransformersModel from_transformers",
    "query": "Decoding Edits Limits Plan Query plan",
    "vocabulary": "Vocabulary",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}
_MODULES = ("grammars", "reports", "stats", "suites", "testing")

__all__ = ["__version__", *_HOME, *_MODULES]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"formalm.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'formalm' has no attribute {name!r}")
    value = getattr(import_module(f"formalm.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
