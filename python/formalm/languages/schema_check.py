"""What to know of a schema before a model is kept to it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import NamedTuple

from formalm.errors import FormalmError
from formalm.languages.json_schema import JsonSchema
from formalm.languages.overview import Overview, overview
from formalm.languages.schema_notes import SchemaNote, SchemaPath, refused
from formalm.languages.schema_reasons import MOST_BYTES, Path, inner_schemas, pointer

__all__ = ["SchemaCheck", "check_schema"]

#: What a schema is read under, to ask about its parts.
PARENT = "urn:formalm:checked"


class SchemaCheck(NamedTuple):
    """What is to be known of a schema.

    Attributes
    ----------
    draft
        The meta-schema that it names; None is draft 2020-12.
    notes
        What is not enforced, not exact, or read otherwise than one may think.
    unsatisfiable
        JSON pointers of parts that no value satisfies, those within such parts aside. ``false``
        itself is none of them.
    complete
        Whether all parts were asked about; very large schemas have too many.
    overview
        How instances begin, and some of them.
    paths
        Every subschema that can be reached: exact, approximate, or refused unless
        ``approximate=True``.
    """

    draft: str | None
    notes: tuple[SchemaNote, ...]
    unsatisfiable: tuple[str, ...]
    complete: bool
    overview: Overview
    paths: tuple[SchemaPath, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the schema is taken without ``approximate=True``."""
        return all(note.effect == "exact" for note in self.notes)


def check_schema(schema: JsonSchema) -> SchemaCheck:
    """Look at a schema, whether it is exact or not.

    Raises
    ------
    LanguageError
        For what is no schema, and schemas without an instance.
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
    """The places of subschemas, but the root and those that are true or false."""
    if not isinstance(schema, dict):
        return
    if path:
        yield path
    for key, value in schema.items():
        for inner, place in inner_schemas(key, value, (*path, key)):
            yield from _parts(inner, place)


def _is_empty(schema: JsonSchema, document: object, path: Path) -> bool:
    """Whether no value satisfies a part; what is not found out is not said."""
    parent = {**document, "$id": PARENT} if isinstance(document, dict) else document
    part = {"$ref": PARENT + pointer(path)}
    resources = {**schema.resources, PARENT: parent}
    try:
        return JsonSchema(part, resources=resources, **schema.options).is_empty()
    except FormalmError:
        return False
