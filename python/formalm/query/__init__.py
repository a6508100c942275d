"""Queries: what is asked of a model, as a value that can be printed, stored and explained."""

from formalm.query.decoding import Decoding
from formalm.query.limits import Limits
from formalm.query.parts import Edits
from formalm.query.plan import Counts, Plan, plan
from formalm.query.query import Event, Query, TokenEvent, Tokenization, as_query
from formalm.query.states import States

__all__ = [
    "Counts",
    "Decoding",
    "Edits",
    "Event",
    "Limits",
    "Plan",
    "Query",
    "States",
    "TokenEvent",
    "Tokenization",
    "as_query",
    "plan",
]
