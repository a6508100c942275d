"""The interface of ReLM (Kuchnik, Smith, Amvrosiadis, 2023) on formalm's queries.

Code written for ReLM runs with ``from formalm.compat import relm`` in place of ``import relm``. The
guide "Run code written for ReLM" lists the differences.
"""

from formalm.compat.relm.queries import (
    LevenshteinTransformer,
    QueryPreprocessors,
    QuerySearchStrategy,
    QueryString,
    QueryTokenizationStrategy,
    SearchQuery,
    SimpleSearchQuery,
)
from formalm.compat.relm.searching import search

__all__ = [
    "LevenshteinTransformer",
    "QueryPreprocessors",
    "QuerySearchStrategy",
    "QueryString",
    "QueryTokenizationStrategy",
    "SearchQuery",
    "SimpleSearchQuery",
    "search",
]
