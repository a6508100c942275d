"""Rewriting of schemas so that integers are written without a fraction: ``1``, never ``1.0``.

In JSON Schema, ``1.0`` is an integer, equal to 1. For types of programming languages, nobody writes
that; a model may continue with zeros for a long time, and readers that parse it as a double round
it.
"""

from __future__ import annotations

from typing import Any

__all__ = ["with_whole_numbers"]

Schema = dict[str, Any]

URI = "urn:formalm:whole-number"
#: In draft 4, 1.0 is not an integer. Its identifier keyword differs from that of the draft around
#: it, so the schema has both.
WHOLE = {
    "$id": URI,
    "id": URI,
    "$schema": "http://json-schema.org/draft-04/schema#",
    "type": "integer",
}
#: Keywords whose values are schemas by name, and those whose values are not schemas.
NAMED = {"properties", "patternProperties", "$defs", "dependentSchemas"}
#: Documents inside strings are schemas of their own, and are already rewritten.
VALUES = {"default", "const", "enum", "examples", "example", "x-formalm-text"}


def with_whole_numbers(schema: Schema) -> Schema:
    """Returns the schema with whole numbers written as such, as types and as values.

    Parameters
    ----------
    schema
        A schema of draft 2020-12, as generated from types: without keywords on its own resources.
    """
    found: list[str] = []
    made: Schema = _walked(schema, found)
    if found:
        made["$defs"] = {**made.get("$defs", {}), URI: WHOLE}
    return made


def _walked(schema: Any, found: list[str]) -> Any:
    if isinstance(schema, list):
        return [_walked(one, found) for one in schema]
    if not isinstance(schema, dict):
        return schema
    made: Schema = {}
    for name, value in schema.items():
        if name in NAMED:
            made[name] = {each: _walked(one, found) for each, one in value.items()}
        else:
            made[name] = value if name in VALUES else _walked(value, found)
    return _whole(made, found)


def _whole(schema: Schema, found: list[str]) -> Schema:
    """Rewrites a schema whose parts are already rewritten."""
    types = schema.get("type")
    values = schema.get("enum", [schema["const"]] if "const" in schema else [])
    numbers = [one for one in values if not isinstance(one, str | bool | None)]
    if types == "integer" or (numbers and len(numbers) == len(values) and whole(numbers)):
        found.append(URI)
        rest = {name: value for name, value in schema.items() if name != "type"}
        return {"$ref": URI, **rest} if "$ref" not in rest else {"allOf": [{"$ref": URI}], **rest}
    if numbers and whole(numbers):
        found.append(URI)
        return {**schema, "if": {"type": "number"}, "then": {"$ref": URI}}
    if isinstance(types, list) and "integer" in types and "number" not in types:
        found.append(URI)
        rest = {name: value for name, value in schema.items() if name != "type"}
        others = [one for one in types if one != "integer"]
        return {"anyOf": [{"type": others}, {"$ref": URI}], **rest}
    return schema


def whole(values: list[Any]) -> bool:
    """Returns whether all values are integers."""
    return all(type(value) is int for value in values)
