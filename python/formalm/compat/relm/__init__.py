"""The interface of ReLM (Kuchnik, Smith, Amvrosiadis, 2023) on formalm's queries.

Code written for it runs with ``from formalm.compat import relm`` in place of ``import relm``. Where
it means something else here, the guide "Code written for ReLM" says so.
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
