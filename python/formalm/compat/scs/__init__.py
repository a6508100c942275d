"""The interface of "Syntactically Constrained Sampling for Language Models" on formalm.

A parser written for that project's readme runs with ``from formalm.compat.scs import …``, and its
calls of ``pipeline`` with this module's. The guide "Run code written for SCS" lists the
differences.
"""

from formalm.compat.scs.example_layout import example_layout
from formalm.compat.scs.incremental_parser import IncrementalParser, ParseFailure, TokenGroup
from formalm.integrations import pipeline

__all__ = ["IncrementalParser", "ParseFailure", "TokenGroup", "example_layout", "pipeline"]
