"""From what a driver was handed to a checked query and its constraint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from formalm.constraint import Constraint
from formalm.drivers.arguments import UNSET, compiled
from formalm.errors import ArgumentError
from formalm.languages import Language
from formalm.models import Session
from formalm.query.limits import Limits
from formalm.query.query import Query, as_query
from formalm.vocabulary import Vocabulary

__all__ = ["asked_query", "constraint_of", "needs_an_end", "refuse_listing_limits"]


def asked_query(query: object, **options: Any) -> Query:
    """The query, with the options that were given in place of its fields."""
    given = {name: value for name, value in options.items() if value is not UNSET}
    if isinstance(query, Constraint):
        given.setdefault("tokenization", query.tokenization)
        return Query(query.language, **given)
    if isinstance(query, Query):
        return replace(query, **given) if given else query
    return Query(as_query(query).language, **given)


def constraint_of(
    query: object, asked: Query, vocabulary: Vocabulary, language: Language | None = None
) -> Constraint:
    """The constraint of a query, or of the language that its event makes of it.

    One that was handed in is taken where it says the same, since it has masks already.
    """
    wanted = asked.asked if language is None else language
    # The tokens of `given` are chosen where a query starts; behind it any will do.
    tokens = "canonical" if asked.tokenization == "canonical" else "all"
    if isinstance(query, Constraint) and query.language == wanted:
        return compiled(query, vocabulary, tokens)
    return compiled(wanted, vocabulary, tokens)


def refuse_listing_limits(limits: Limits, what: str) -> None:
    """Refuse limits that are about listings."""
    for name in ("hits", "beam"):
        if getattr(limits, name) is not None:
            raise ArgumentError(f"limits.{name} is about listings, and this is {what}")


def needs_an_end(session: Session) -> None:
    """Refuse a vocabulary without an end."""
    if not session.vocabulary.end_token_ids:
        raise ArgumentError(
            "event='complete' needs an end token, and the vocabulary has none",
            hint="pass end_token_ids to the vocabulary, or event='prefix'",
        )
