"""What is to be told of the places of a schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

__all__ = ["SchemaNote", "SchemaPath", "paths_of", "refused"]

#: How a language differs from the instances of a schema.
Effect = Literal["exact", "fewer", "more", "dead ends"]


class SchemaNote(NamedTuple):
    """Something in a schema that means less, or something else, than one may think.

    Attributes
    ----------
    place
        The JSON pointer of the keyword.
    message
        One sentence.
    effect
        ``"exact"``: the language is what the message says. ``"fewer"``: instances of the schema
        are missing. ``"more"``: texts that are none are allowed. ``"dead ends"``: the members are
        exact, but beginnings that none has may be allowed.
    """

    place: str
    message: str
    effect: Effect = "exact"


class SchemaPath(NamedTuple):
    """A subschema, and whether it is enforced as it is.

    Attributes
    ----------
    place
        Its JSON pointer.
    status
        ``"exact"``, ``"approximate"``, or ``"refused"`` where what is approximate is not taken.
    effect
        As that of a :class:`SchemaNote`: how the language differs.
    reasons
        Why, one sentence each; none if it is exact.
    """

    place: str
    status: Literal["exact", "approximate", "refused"] = "exact"
    effect: Effect = "exact"
    reasons: tuple[str, ...] = ()


def paths_of(places: Iterable[str], notes: Iterable[SchemaNote]) -> tuple[SchemaPath, ...]:
    """The places with what the notes say of them, or of what they hold."""
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
    """The same where nothing approximate is taken."""
    return tuple(
        path._replace(status="refused") if path.status == "approximate" else path for path in paths
    )
