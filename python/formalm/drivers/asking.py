"""Setup of a query before a driver runs: option overrides, the event, the constraint."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, get_args

from formalm.constraint import Constraint
from formalm.drivers.arguments import UNSET, compiled
from formalm.errors import ArgumentError
from formalm.languages import Language
from formalm.models import Session
from formalm.query.limits import Limits
from formalm.query.query import Event, Query, TokenEvent, as_query
from formalm.vocabulary import Vocabulary

__all__ = [
    "asked_query",
    "constraint_of",
    "needs_an_end",
    "refuse_keep",
    "refuse_listing_limits",
    "required_event",
    "token_event",
    "with_event",
]

EVENTS: tuple[Event, ...] = get_args(Event)
MEANINGS = {
    "complete": "the output is a member and ends",
    "token_prefix": "its first tokens spell a member",
    "prefix": "its text begins with a member",
    "contains": "a member is anywhere in it",
    "never": "no member is in it",
}


def asked_query(query: object, **options: Any) -> Query:
    """Returns the query with the given options in place of its fields."""
    given = {name: value for name, value in options.items() if value is not UNSET}
    if isinstance(query, Constraint):
        given.setdefault("tokenization", query.tokenization)
        return Query(query.language, **given)
    if isinstance(query, Query):
        return replace(query, **given) if given else query
    return Query(as_query(query).language, **given)


def required_event(asked: Query, what: str, allowed: Sequence[Event] = EVENTS) -> Event:
    """Returns the event of a query that has to name one.

    Raises
    ------
    ArgumentError
        If the query names no event, or one that ``what`` does not support.
    """
    known = "; ".join(f"event={event!r}: {MEANINGS[event]}" for event in allowed)
    if asked.event is None:
        raise ArgumentError(f"{what} needs an event", hint=known)
    if asked.event not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ArgumentError(f"event must be one of {names} for {what}, got {asked.event!r}")
    return asked.event


def with_event(asked: Query, event: TokenEvent) -> Query:
    """Returns the query with ``event`` if it names none."""
    told = copy(asked)  # the checks and the compiled language of the query hold for this event too
    object.__setattr__(told, "event", event)
    return told


def token_event(asked: Query, what: str) -> Query:
    """Returns the query with an event of token sequences: ``"token_prefix"`` if it names none.

    Raises
    ------
    ArgumentError
        If its event is about the text of the output.
    """
    if asked.event is None:
        return with_event(asked, "token_prefix")
    if asked.event not in ("complete", "token_prefix"):
        raise ArgumentError(
            f"event must be 'complete' or 'token_prefix' for {what}, got {asked.event!r}",
            hint=f"{asked.event!r} is about the text of the output, wherever its tokens end:"
            " formalm.mass and formalm.sample take it",
        )
    return asked


def constraint_of(
    query: object, asked: Query, vocabulary: Vocabulary, language: Language | None = None
) -> Constraint:
    """Returns the constraint of a query, or of the language that its event turns it into.

    A constraint that the caller passed is reused if it is equivalent, because it has cached masks.
    """
    wanted = asked.asked if language is None else language
    # The tokens of `given` are chosen where a query starts; any tokens may follow it.
    tokens = "canonical" if asked.tokenization == "canonical" else "all"
    if isinstance(query, Constraint) and query.language == wanted:
        return compiled(query, vocabulary, tokens)
    return compiled(wanted, vocabulary, tokens)


def refuse_keep(asked: Query) -> None:
    """Refuses ``keep`` with an event that the first member decides.

    An output whose first member is dropped may contain another that is not.
    """
    if asked.keep is not None and asked.event != "complete":
        raise ArgumentError(
            f"keep is about members, and event={asked.event!r} is decided by an output",
            hint="event='complete', or say it as a language, in without=",
        )


def refuse_listing_limits(limits: Limits, what: str) -> None:
    """Refuses limits that apply to searches only."""
    for name in ("hits", "beam"):
        if getattr(limits, name) is not None:
            raise ArgumentError(f"limits.{name} is about listings, and this is {what}")


def needs_an_end(session: Session) -> None:
    """Refuses a vocabulary without an end token."""
    if not session.vocabulary.end_token_ids:
        raise ArgumentError(
            "event='complete' needs an end token, and the vocabulary has none",
            hint="pass end_token_ids to the vocabulary, or event='token_prefix'",
        )
