"""Formal languages for language models: generate inside a language, search one.

Names are imported when they are first used, so that ``import formalm`` costs little.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from formalm._core import __version__

if TYPE_CHECKING:
    from formalm.automata import Automaton as Automaton
    from formalm.automata import TokenAutomaton as TokenAutomaton
    from formalm.constraint import Constraint as Constraint
    from formalm.constraint import Explanation as Explanation
    from formalm.constraint import Matcher as Matcher
    from formalm.constraint import apply_bitmask as apply_bitmask
    from formalm.constraint import fill_bitmasks as fill_bitmasks
    from formalm.constraint import new_bitmask as new_bitmask
    from formalm.drivers.generate import generate as generate
    from formalm.drivers.result import Generation as Generation
    from formalm.drivers.search import Hit as Hit
    from formalm.drivers.search import Limits as Limits
    from formalm.drivers.search import search as search
    from formalm.drivers.stream import stream as stream
    from formalm.errors import *  # noqa: F403
    from formalm.integrations import ConstraintLogitsProcessor as ConstraintLogitsProcessor
    from formalm.integrations import logits_processors as logits_processors
    from formalm.integrations import pipeline as pipeline
    from formalm.languages import Captures as Captures
    from formalm.languages import Choice as Choice
    from formalm.languages import Grammar as Grammar
    from formalm.languages import JsonSchema as JsonSchema
    from formalm.languages import Language as Language
    from formalm.languages import Literal as Literal
    from formalm.languages import Regex as Regex
    from formalm.models import FunctionModel as FunctionModel
    from formalm.models import TableModel as TableModel
    from formalm.models import TransformersModel as TransformersModel
    from formalm.models import from_transformers as from_transformers
    from formalm.vocabulary import Vocabulary as Vocabulary

_ROOMS = {
    "automata": "Automaton TokenAutomaton",
    "constraint": "Constraint Explanation Matcher apply_bitmask fill_bitmasks new_bitmask",
    "drivers": "Generation Hit Limits generate search stream",
    "errors": "ArgumentError ConcurrencyError FormalmError LanguageError LimitError ModelError"
    " TokenError VocabularyError",
    "integrations": "ConstraintLogitsProcessor logits_processors pipeline",
    "languages": "Captures Choice Grammar JsonSchema Language Literal Regex",
    "models": "FunctionModel TableModel TransformersModel from_transformers",
    "vocabulary": "Vocabulary",
}
_HOME = {name: room for room, names in _ROOMS.items() for name in names.split()}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'formalm' has no attribute {name!r}")
    value = getattr(import_module(f"formalm.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
