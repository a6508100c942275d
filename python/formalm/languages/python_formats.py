"""What texts become Python's dates, times, decimals and keys, where a format has more."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

from formalm.errors import ArgumentError

__all__ = [
    "ASCII",
    "BASE64",
    "BASE64URL",
    "DATE",
    "DATETIME",
    "DURATION",
    "NAIVE_DATETIME",
    "NAIVE_TIME",
    "STRIPPED",
    "TIME",
    "UUID",
    "decimal",
    "finite",
    "keys",
]

Schema = dict[str, Any]

#: The year 0 and leap seconds are in the formats, and not in Python.
DATE = "^(?!0000)"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,6})?"
_ZONE = r"(?:[Zz]|[+-]\d\d:\d\d)"
TIME = f"^{_CLOCK}{_ZONE}$"
DATETIME = rf"^(?!0000)\d{{4}}-\d\d-\d\d[Tt]{_CLOCK}{_ZONE}$"
_DAY = (
    r"(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))"
    r"|(?:\d\d(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)-02-29)"
)
NAIVE_TIME = f"^{_CLOCK}$"
NAIVE_DATETIME = f"^(?!0000){_DAY}T{_CLOCK}$"
#: At most five digits each: 99,999 years are days that Python can count.
DURATION = r"^(?!.*\d{6})"
UUID = r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-V[0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$"
ASCII = r"^[\x00-\x7f]*$"
BASE64 = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"
BASE64URL = "^(?:[A-Za-z0-9_-]{4})*(?:[A-Za-z0-9_-]{2}==|[A-Za-z0-9_-]{3}=)?$"
#: A text that has nothing to strip, by Unicode's white space, with the separators of ASCII.
STRIPPED = r"^(?:[^\s\x1c-\x1f\x85](?:[\s\S]*[^\s\x1c-\x1f\x85])?)?$"
WHOLE = r"^(?:0|-?[1-9]\d*)$"
#: The range of doubles, which is what Pydantic reads numbers as.
FINITE = {
    "minimum": Decimal("-1.7976931348623157e308"),
    "maximum": Decimal("1.7976931348623157e308"),
}
BOUNDS = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum"}


def decimal(schema: Any, remark: Callable[[str], None]) -> Schema:
    """The schema of decimals."""
    asked = {
        name: schema[name] for name in ("multiple_of", *BOUNDS) if schema.get(name) is not None
    }
    digits, places = schema.get("max_digits"), schema.get("decimal_places")
    if not asked and digits is None and places is None:
        text = {"type": "string", "pattern": r"^-?(?:0|[1-9]\d*)(?:\.\d+)?$"}
        return {"anyOf": [{"type": "number", **FINITE}, text]}
    parts: list[Schema] = [{BOUNDS[name]: asked[name]} for name in BOUNDS if name in asked]
    if "multiple_of" in asked:
        parts.append({"multipleOf": asked["multiple_of"]})
    if places is not None:
        parts.append({"multipleOf": Decimal(1).scaleb(-places)})
        if digits is not None:
            most = Decimal(10) ** (digits - places)
            parts.append({"exclusiveMinimum": -most, "exclusiveMaximum": most})
    elif digits is not None:
        remark("the number of digits of a decimal is not in the schema")
    return {"type": "number", "allOf": [*finite(*parts), *parts]}


def finite(*parts: Schema) -> list[Schema]:
    """What keeps numbers within doubles; bounds that others imply cost time, and are left out."""
    lower = [
        part[name] for part in parts for name in ("minimum", "exclusiveMinimum") if name in part
    ]
    upper = [
        part[name] for part in parts for name in ("maximum", "exclusiveMaximum") if name in part
    ]
    least, most = FINITE["minimum"], FINITE["maximum"]
    kept: Schema = {}
    if not any(bound >= least for bound in lower):
        kept["minimum"] = least
    if not any(bound <= most for bound in upper):
        kept["maximum"] = most
    return [kept] if kept else []


def keys(schema: Any, generate: Callable[[Any], Schema]) -> Schema:
    """The schema of the names that become the keys of a dictionary; empty for any."""
    if schema is None or schema["type"] == "any":
        return {}
    if schema["type"] == "int":
        if any(schema.get(name) is not None for name in ("multiple_of", *BOUNDS)):
            raise ArgumentError("bounds of keys that are integers are not supported")
        return {"pattern": WHOLE}
    found = generate(schema)
    asked = {name: value for name, value in found.items() if name != "title"}
    if asked == {"type": "string"}:
        return {}
    values = asked.get("enum", [asked["const"]] if "const" in asked else None)
    texts = values is not None and all(isinstance(value, str) for value in values)
    if "$ref" in asked or asked.get("type") == "string" or texts:
        return asked
    raise ArgumentError(f"keys of the type {schema['type']} have no JSON of their own")
