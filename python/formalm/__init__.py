"""Formal languages for language models: generate inside a language, search one.

The names that most programs need are here; everything else is in the public modules that
``docs/reference/modules.md`` lists, such as ``formalm.query`` and ``formalm.probability``. Names
and modules are imported when they are first used, so that ``import formalm`` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from formalm._core import __version__

if TYPE_CHECKING:
    from formalm import automata as automata
    from formalm import compat as compat
    from formalm import constraint as constraint
    from formalm import constraint_cache as constraint_cache
    from formalm import continuations as continuations
    from formalm import cost as cost
    from formalm import engines as engines
    from formalm import errors as errors
    from formalm import generation as generation
    from formalm import grammars as grammars
    from formalm import integrations as integrations
    from formalm import languages as languages
    from formalm import models as models
    from formalm import probability as probability
    from formalm import query as query
    from formalm import records as records
    from formalm import reports as reports
    from formalm import sampling as sampling
    from formalm import searching as searching
    from formalm import stats as stats
    from formalm import suites as suites
    from formalm import testing as testing
    from formalm import vocabulary as vocabulary
    from formalm.constraint import Constraint as Constraint
    from formalm.constraint import Matcher as Matcher
    from formalm.constraint import apply_bitmask as apply_bitmask
    from formalm.constraint import fill_bitmasks as fill_bitmasks
    from formalm.constraint import new_bitmask as new_bitmask
    from formalm.errors import *  # noqa: F403
    from formalm.generation import generate as generate
    from formalm.generation import stream as stream
    from formalm.languages import CallFormat as CallFormat
    from formalm.languages import Choice as Choice
    from formalm.languages import Grammar as Grammar
    from formalm.languages import JsonSchema as JsonSchema
    from formalm.languages import Language as Language
    from formalm.languages import ParseFailure as ParseFailure
    from formalm.languages import Parser as Parser
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
    from formalm.probability import mass as mass
    from formalm.probability import score as score
    from formalm.query import Limits as Limits
    from formalm.query import Query as Query
    from formalm.sampling import sample as sample
    from formalm.searching import search as search
    from formalm.vocabulary import Vocabulary as Vocabulary

#: The names at the top, by the public module that defines what they mean. At most 45 with the
#: version: a reader takes in no more, and an editor's list fits on a screen.
_NAMES = {
    "constraint": "Constraint Matcher apply_bitmask fill_bitmasks new_bitmask",
    "errors": "ArgumentError ConcurrencyError DeadlineError FormalmError LanguageError LimitError"
    " ModelError ParserError SuiteError TokenError VocabularyError",
    "generation": "generate stream",
    "languages": "CallFormat Choice Grammar JsonSchema Language ParseFailure Parser PythonType"
    " Regex Section SpecialToken StringLiteral Structure ToolCalls TypeScript",
    "models": "FunctionModel TableModel TransformersModel from_transformers",
    "probability": "mass score",
    "query": "Limits Query",
    "sampling": "sample",
    "searching": "search",
    "vocabulary": "Vocabulary",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = (
    *("automata", "compat", "constraint", "constraint_cache", "continuations", "cost", "engines"),
    *(
        "errors",
        "generation",
        "grammars",
        "integrations",
        "languages",
        "models",
        "probability",
        "query",
    ),
    *("records", "reports", "sampling", "searching", "stats", "suites", "testing", "vocabulary"),
)

__all__ = ["__version__", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"formalm.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'formalm' has no attribute {name!r}")
    value = getattr(import_module(f"formalm.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
