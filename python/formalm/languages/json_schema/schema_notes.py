"""Notes on JSON Schemas: places that are inexact, not enforced, or easily misunderstood."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

__all__ = ["SchemaNote", "SchemaPath", "paths_of", "refused"]

#: How a language differs from the instances of a schema.
Effect = Literal["exact", "fewer", "more", "dead ends"]


class SchemaNote(NamedTuple):
    """A part of a schema that means less than, or something other than, it seems to.

    Attributes
    ----------
    place
        The JSON pointer of the keyword.
    message
        One sentence.
    effect
        ``"exact"``: the language is exactly what the message says. ``"fewer"``: instances of the
        schema are missing. ``"more"``: some members are not instances. ``"dead ends"``: the members
        are exact, but an allowed prefix may have no completion.
    """

    place: str
    message: str
    effect: Effect = "exact"


class SchemaPath(NamedTuple):
    """A subschema, and whether it is enforced exactly.

    Attributes
    ----------
    place
        Its JSON pointer.
    status
        ``"exact"``, ``"approximate"``, or ``"refused"`` without ``approximate=True``.
    effect
        How the language differs, as in :class:`SchemaNote`.
    reasons
        The reasons, one sentence each; none if it is exact.
    """

    place: str
    status: Literal["exact", "approximate", "refused"] = "exact"
    effect: Effect = "exact"
    reasons: tuple[str, ...] = ()


def paths_of(places: Iterable[str], notes: Iterable[SchemaNote]) -> tuple[SchemaPath, ...]:
    """Returns the places with the notes on them or on what they contain."""
    paths = {place: SchemaPath(place) for place in places}
    for note in notes:
        if note.effect == "exact":
            continue
        place = note.place
        while place not in paths and "/" in place:
            place = place.rpartition("/")[0]
        reasons = (*paths.get(place, SchemaPath(place)).reasons, note.message)
        paths[place] = SchemaPath(place, "approximate", note.effect, reasons)
    return tuple(paths[place] for place in sorted(paths))


def refused(paths: Iterable[SchemaPath]) -> tuple[SchemaPath, ...]:
    """Returns the paths with approximate ones marked as refused."""
    return tuple(
        path._replace(status="refused") if path.status == "approximate" else path for path in paths
    )
