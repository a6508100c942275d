"""Queries as values: ``Query``, decoding rules, limits and plans; no model is needed here."""

from formalm.query.decoding_rules import Decoding
from formalm.query.edits_and_weights import Edits
from formalm.query.limits import Limits
from formalm.query.plan import Counts, Plan, plan
from formalm.query.query import Event, Query, TokenEvent, Tokenization, as_query
from formalm.query.state_ids import States

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
