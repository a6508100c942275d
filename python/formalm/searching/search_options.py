"""Checks of search options: ``given`` as token ids, prefix weights, numbers."""

from __future__ import annotations

from formalm.errors import ArgumentError
from formalm.execution.arguments import UNSET, checked_tolerance, positive, token_ids_of
from formalm.languages import Language
from formalm.models import Session
from formalm.query.limits import Limits
from formalm.query.query import Query

__all__ = ["check_search_numbers", "check_search_query", "given_ids"]


def given_ids(given: object, session: Session) -> list[int] | None:
    """Returns the tokens of ``given`` if the caller passed token ids."""
    if given is UNSET or given is None or isinstance(given, (str, Language)):
        return None
    return token_ids_of("given", given, session.vocabulary)


def check_search_query(resolved: Query) -> None:
    """Refuses query fields that do not apply to a search."""
    if resolved.prefix_weights != "strings":
        raise ArgumentError(
            "prefix_weights must not be given for a search, which ranks by cost; use prefix_cost"
        )


def check_search_numbers(batch_size: object, tolerance: object, limits: object) -> None:
    """Refuses numbers out of range."""
    positive("batch_size", batch_size, optional=False)
    if checked_tolerance(tolerance) == 1:
        raise ArgumentError("tolerance must be below 1 for a search, got 1")
    if limits is not None and not isinstance(limits, Limits):
        raise ArgumentError(
            f"limits must be Limits(hits=…, forwards=…, seconds=…), got {limits!r:.60}"
        )
