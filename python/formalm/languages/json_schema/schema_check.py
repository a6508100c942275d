"""Checks of a JSON Schema: draft, notes, unsatisfiable parts, and examples of instances."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from formalm.errors import FormalmError
from formalm.languages.first_bytes_summary import Overview, overview
from formalm.languages.json_schema.language import JsonSchema
from formalm.languages.json_schema.schema_explanation import (
    MOST_BYTES,
    Path,
    inner_schemas,
    pointer,
)
from formalm.languages.json_schema.schema_notes import SchemaNote, SchemaPath, refused

__all__ = ["SchemaCheck", "check_schema"]

#: The URI under which a schema is loaded to query its parts.
PARENT = "urn:formalm:checked"


class SchemaCheck(NamedTuple):
    """The result of checking a schema.

    Attributes
    ----------
    draft
        The meta-schema that it names; None is draft 2020-12.
    notes
        Parts that are not enforced, not exact, or may not mean what they seem to.
    unsatisfiable
        JSON pointers of subschemas that no value satisfies, without those inside such subschemas
        and without ``false`` itself.
    complete
        Whether all subschemas were checked; very large schemas have too many.
    overview
        How instances begin, with examples.
    paths
        Every reachable subschema: exact, approximate, or refused without ``approximate=True``.
    """

    draft: str | None
    notes: tuple[SchemaNote, ...]
    unsatisfiable: tuple[str, ...]
    complete: bool
    overview: Overview
    paths: tuple[SchemaPath, ...] = ()

    @property
    def is_exact(self) -> bool:
        """True if the schema is accepted without ``approximate=True``."""
        return all(note.effect == "exact" for note in self.notes)


def check_schema(schema: JsonSchema) -> SchemaCheck:
    """Checks a schema, exact or not.

    Raises
    ------
    LanguageError
        For an invalid schema, and a schema without instances.
    LimitError
        If a search exceeds its limits.

    Examples
    --------
    >>> never = {"type": "number", "minimum": 2, "maximum": 1}
    >>> found = check_schema(JsonSchema({"anyOf": [never, {}]}))
    >>> found.unsatisfiable, found.is_exact
    (('#/anyOf/0',), True)
    """
    taken = schema.varied(approximate=True)
    document = json.loads(schema.schema, parse_float=Decimal)
    named = document.get("$schema") if isinstance(document, dict) else None
    left = MOST_BYTES // (len(schema.schema) + 1)
    empty: list[str] = []
    skipped: list[Path] = []
    for path in _parts(document, ()):
        if skipped and path[: len(skipped[-1])] == skipped[-1]:
            continue
        if left <= 0:
            break
        left -= 1
        if _is_empty(taken, document, path):
            skipped.append(path)
            empty.append(pointer(path))
    found = overview(taken)
    return SchemaCheck(
        draft=named if isinstance(named, str) else None,
        notes=taken.notes,
        unsatisfiable=tuple(empty),
        complete=left > 0,
        overview=found,
        paths=taken.paths if schema.options["approximate"] else refused(taken.paths),
    )


def _parts(schema: object, path: Path) -> Iterator[Path]:
    """Returns the places of subschemas, without the root and Boolean ones."""
    if not isinstance(schema, dict):
        return
    if path:
        yield path
    for key, value in schema.items():
        for inner, place in inner_schemas(key, value, (*path, key)):
            yield from _parts(inner, place)


def _is_empty(schema: JsonSchema, document: object, path: Path) -> bool:
    """Returns whether a subschema is known to be unsatisfiable."""
    parent = {**document, "$id": PARENT} if isinstance(document, dict) else document
    part = {"$ref": PARENT + pointer(path)}
    resources = {**schema.resources, PARENT: parent}
    try:
        return JsonSchema(part, resources=resources, **schema.options).is_empty()
    except FormalmError:
        return False
