"""Setup of a query before a driver runs: option overrides, the event, the constraint."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import Any, get_args

from formalm.constraint import Constraint
from formalm.errors import ArgumentError
from formalm.execution.arguments import UNSET, compiled
from formalm.languages import Language
from formalm.models import Session
from formalm.query.limits import Limits
from formalm.query.query import Event, Query, TokenEvent, as_query
from formalm.vocabulary import Vocabulary

__all__ = [
    "constraint_of",
    "refuse_keep",
    "refuse_search_limits",
    "require_end_token",
    "required_event",
    "resolved_query",
    "token_event",
    "with_event",
]

EVENTS: tuple[Event, ...] = get_args(Event)
MEANINGS = {
    "complete": "the output is a member, followed by the end token",
    "token_prefix": "the first tokens of the output spell a member",
    "prefix": "the output starts with a member",
    "contains": "the output contains a member",
    "never": "the output contains no member",
}


def resolved_query(query: object, **options: Any) -> Query:
    """Returns the query with the given options in place of its fields."""
    given = {name: value for name, value in options.items() if value is not UNSET}
    if isinstance(query, Constraint):
        given.setdefault("tokenization", query.tokenization)
        return Query(query.language, **given)
    if isinstance(query, Query):
        return replace(query, **given) if given else query
    return Query(as_query(query).language, **given)


def required_event(resolved: Query, what: str, allowed: Sequence[Event] = EVENTS) -> Event:
    """Returns the event of a query that has to name one.

    Raises
    ------
    ArgumentError
        If the query names no event, or one that ``what`` does not support.
    """
    known = "; ".join(f"event={event!r}: {MEANINGS[event]}" for event in allowed)
    if resolved.event is None:
        raise ArgumentError(f"event must be given for {what}", hint=known)
    if resolved.event not in allowed:
        names = ", ".join(map(repr, allowed))
        raise ArgumentError(f"event must be one of {names} for {what}, got {resolved.event!r}")
    return resolved.event


def with_event(resolved: Query, event: TokenEvent) -> Query:
    """Returns the query with ``event`` if it names none."""
    changed = copy(
        resolved
    )  # the checks and the compiled language of the query hold for this event too
    object.__setattr__(changed, "event", event)
    return changed


def token_event(resolved: Query, what: str) -> Query:
    """Returns the query with an event of token sequences: ``"token_prefix"`` if it names none.

    Raises
    ------
    ArgumentError
        If its event is about the text of the output.
    """
    if resolved.event is None:
        return with_event(resolved, "token_prefix")
    if resolved.event not in ("complete", "token_prefix"):
        raise ArgumentError(
            f"event must be 'complete' or 'token_prefix' for {what}, got {resolved.event!r}",
            hint=f"{resolved.event!r} does not depend on token boundaries;"
            " use formalm.mass or formalm.sample",
        )
    return resolved


def constraint_of(
    query: object, resolved: Query, vocabulary: Vocabulary, language: Language | None = None
) -> Constraint:
    """Returns the constraint of a query, or of the language that its event turns it into.

    A constraint that the caller passed is reused if it is equivalent, because it has cached masks.
    """
    wanted = resolved.effective_language if language is None else language
    # The tokens of `given` are chosen where a query starts; any tokens may follow it.
    tokens = "canonical" if resolved.tokenization == "canonical" else "all"
    if isinstance(query, Constraint) and query.language == wanted:
        return compiled(query, vocabulary, tokens)
    return compiled(wanted, vocabulary, tokens)


def refuse_keep(resolved: Query) -> None:
    """Refuses ``keep`` with an event that the first member decides.

    An output whose first member is dropped may contain another that is not.
    """
    if resolved.keep is not None and resolved.event != "complete":
        raise ArgumentError(
            f"event must be 'complete' with keep, got {resolved.event!r}",
            hint="pass event='complete', or exclude strings by a language: without=...",
        )


def refuse_search_limits(limits: Limits, what: str) -> None:
    """Refuses limits that apply to searches only."""
    for name in ("hits", "beams"):
        if getattr(limits, name) is not None:
            raise ArgumentError(
                f"limits.{name} must be None for {what}; it applies to searches only"
            )


def require_end_token(session: Session) -> None:
    """Refuses a vocabulary without an end token."""
    if not session.vocabulary.end_token_ids:
        raise ArgumentError(
            "event='complete' requires an end token; the vocabulary has none",
            hint="pass end_token_ids to the vocabulary, or use event='token_prefix'",
        )
