"""What the options of a search mean as fields of a query, and which fields it has a use for."""

from __future__ import annotations

from formalm.drivers.arguments import UNSET, positive, token_ids_of
from formalm.errors import ArgumentError
from formalm.languages import Language
from formalm.models import Session
from formalm.query.decoding import Decoding
from formalm.query.limits import Limits
from formalm.query.query import Query

__all__ = ["check_listing", "check_numbers", "given_ids", "renamed"]


def given_ids(given: object, session: Session) -> list[int] | None:
    """The tokens of ``given``, where the caller chose them."""
    if given is UNSET or given is None or isinstance(given, (str, Language)):
        return None
    return token_ids_of("given", given, session.vocabulary)


def renamed(duplicates: object, event: object, top_k: int | None) -> dict[str, object]:
    """Options of a search whose fields of a query have other names or values."""
    if duplicates is not UNSET and duplicates not in ("merge", "show"):
        raise ArgumentError(f"duplicates is 'merge' or 'show', not {duplicates!r}")
    fields: dict[str, object] = {"event": event}
    if duplicates is not UNSET:
        fields["unique"] = "strings" if duplicates == "merge" else "tokens"
    if top_k is not UNSET:
        fields["decoding"] = Decoding(top_k=top_k)
    return fields


def check_listing(asked: Query) -> None:
    """Refuse what a listing has no use for."""
    if asked.event not in (None, "prefix", "complete"):
        raise ArgumentError(
            f"event is 'prefix' or 'complete' where members are listed, not {asked.event!r}",
            hint="formalm.mass takes 'contains' and 'never'",
        )
    if asked.prefix_weights != "strings":
        raise ArgumentError("prefix_weights are about masses and samples; a listing has costs")


def check_numbers(batch_size: object, tolerance: object, limits: object) -> None:
    """Refuse numbers out of range."""
    positive("batch_size", batch_size, optional=False)
    if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)):
        raise ArgumentError(f"tolerance must be a number, not {tolerance!r}")
    if not 0 <= tolerance < 1:
        raise ArgumentError(f"tolerance must be at least 0 and below 1, not {tolerance}")
    if limits is not None and not isinstance(limits, Limits):
        raise ArgumentError(f"limits is Limits(hits=…, forwards=…, seconds=…), not {limits!r:.60}")
