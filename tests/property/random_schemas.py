"""Random nested schemas: deep, wide, with every keyword, and with definitions used more than once.

A schema is drawn from a seed alone, so that a failure is one number. Subschemas are paid for from a
budget that is split among the children of each; in some schemas one child gets nearly all of it,
which makes them deep.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from random import Random
from typing import Any

Schema = Any

MAX_DEPTH = 30

STRING_KEYWORDS = ("pattern", "minLength", "maxLength", "format")
NUMBER_KEYWORDS = (
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
)
ARRAY_KEYWORDS = (
    "items",
    "prefixItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "unevaluatedItems",
)
OBJECT_KEYWORDS = (
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "dependentRequired",
    "dependentSchemas",
    "unevaluatedProperties",
)
COMMON_KEYWORDS = ("type", "enum", "const")
COMBINATORS = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "$ref")
KEYWORDS = (
    *STRING_KEYWORDS,
    *NUMBER_KEYWORDS,
    *ARRAY_KEYWORDS,
    *OBJECT_KEYWORDS,
    *COMMON_KEYWORDS,
    *COMBINATORS,
)

NAMES = ["id", "name", "kind", "tags", "value", "x-note", "a/b", 'q"\\', "é"]
PATTERNS = ["^a", "[0-9]$", "^[a-z_]*$", "b|é", "^.{1,4}$", r"\d+-\d", '["\\\\]', "^x-"]
NAME_PATTERNS = ["^x-", "^[a-z]+$", "_id$", "^.{2}$"]
FORMATS = ["date", "ipv4", "uuid", "date-time", "ipv6"]
STRINGS = ["", "a", "b", "ab", "aé", "2024-02-29", "1-2", 'q"\\', "127.0.0.1", "🙂"]
NUMBERS = [0, 1, 2, 3, 5, 10, -1, -7, 0.5, 2.5, 100, 1e3, -0.25]
UNITS = [1, 2, 3, 5, 0.5, 0.25, 10]
SINGLE = ("additionalProperties", "items", "contains", "not", "if", "then", "else",
          "propertyNames", "unevaluatedItems", "unevaluatedProperties")  # fmt: skip
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
MAPS = ("properties", "patternProperties", "dependentSchemas", "$defs")


def subschemas(schema: Schema, depth: int = 1) -> Iterator[tuple[Schema, int]]:
    """Every subschema with its depth; the schema itself comes first, at depth 1."""
    yield schema, depth
    if not isinstance(schema, dict):
        return
    for keyword in SINGLE:
        if keyword in schema:
            yield from subschemas(schema[keyword], depth + 1)
    for keyword in LISTS:
        for one in schema.get(keyword, ()):
            yield from subschemas(one, depth + 1)
    for keyword in MAPS:
        for one in schema.get(keyword, {}).values():
            yield from subschemas(one, depth + 1)


class _Drawing:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.definitions: list[str] = []
        # How often one child gets nearly all of a budget.
        self.skew = random.choice([0.3, 0.6, 0.95])

    def some(self, chance: float) -> bool:
        return self.random.random() < chance

    def value(self, depth: int = 2) -> Any:
        draw = self.random.random()
        if depth and draw < 0.12:
            return [self.value(depth - 1) for _ in range(self.random.randint(0, 2))]
        if depth and draw < 0.24:
            names = self.random.sample(NAMES, self.random.randint(0, 2))
            return {name: self.value(depth - 1) for name in names}
        return self.random.choice([*STRINGS, *NUMBERS, True, False, None])

    def values(self, count: int) -> list[Any]:
        values: list[Any] = []
        for _ in range(count):
            value = self.value()
            if not any(value == one and type(value) is type(one) for one in values):
                values.append(value)
        return values

    def bounds(self, low: str, high: str, most: int, schema: dict[str, Any]) -> None:
        least = self.random.randint(0, 2)
        if self.some(0.45):
            schema[low] = least
        if self.some(0.45):
            schema[high] = least + self.random.randint(0, most)

    def string(self) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        if self.some(0.4):
            schema["pattern"] = self.random.choice(PATTERNS)
        elif self.some(0.25):
            schema["format"] = self.random.choice(FORMATS)
        if self.some(0.5):
            self.bounds("minLength", "maxLength", 12, schema)
        return schema

    def number(self) -> dict[str, Any]:
        schema: dict[str, Any] = {}
        low = self.random.choice(NUMBERS)
        if self.some(0.6):
            schema[self.random.choice(["minimum", "exclusiveMinimum"])] = low
        if self.some(0.6):
            high = low + self.random.choice([0, 1, 4, 30, 1000])
            schema[self.random.choice(["maximum", "exclusiveMaximum"])] = high
        if self.some(0.3):
            schema["multipleOf"] = self.random.choice(UNITS)
        return schema

    def leaf(self) -> Schema:
        draw = self.random.random()
        if draw < 0.06:
            return True
        if draw < 0.08:
            return False
        if draw < 0.18:
            return {"enum": self.values(self.random.randint(1, 5))}
        if draw < 0.24:
            return {"const": self.value()}
        kind = self.random.choice(["string", "number", "integer", "boolean", "null"])
        schema: dict[str, Any] = {"type": kind} if self.some(0.85) else {}
        if kind == "string":
            schema |= self.string()
        elif kind in ("number", "integer"):
            schema |= self.number()
        return schema

    def split(self, budget: int, parts: int) -> list[int]:
        """A budget for each of some children, of which one may get nearly all."""
        if not parts:
            return []
        if self.some(self.skew):
            shares = [1] * parts
            shares[self.random.randrange(parts)] += max(0, budget - parts)
            return shares
        cuts = sorted(self.random.randint(0, max(0, budget - parts)) for _ in range(parts - 1))
        cuts = [0, *cuts, max(0, budget - parts)]
        return [1 + high - low for low, high in pairwise(cuts)]

    def schema(self, depth: int, budget: int) -> Schema:
        if self.definitions and self.some(0.03 if budget > 8 else 0.3):
            return {"$ref": f"#/$defs/{self.random.choice(self.definitions)}"}
        if budget <= 1 or depth >= MAX_DEPTH:
            return self.leaf()
        draw = self.random.random()
        if draw < 0.42:
            return self.object(depth, budget - 1)
        if draw < 0.64:
            return self.array(depth, budget - 1)
        return self.combined(depth, budget - 1)

    def object(self, depth: int, budget: int) -> Schema:
        random = self.random
        names = random.sample(NAMES, random.randint(1, 4))
        keywords: list[tuple[str, str]] = [("properties", name) for name in names]
        for keyword, chance, choices in (
            ("additionalProperties", 0.25, [""]),
            ("patternProperties", 0.15, NAME_PATTERNS),
            ("dependentSchemas", 0.12, names),
            ("unevaluatedProperties", 0.08, [""]),
        ):
            if self.some(chance):
                keywords.append((keyword, random.choice(choices)))
        schema: dict[str, Any] = {"type": "object"} if self.some(0.85) else {}
        shares = self.split(budget, len(keywords))
        for (keyword, name), share in zip(keywords, shares, strict=True):
            inner = self.schema(depth + 1, share)
            if keyword.endswith("Properties") and not name and self.some(0.4):
                inner = False
            if name:
                schema.setdefault(keyword, {})[name] = inner
            else:
                schema[keyword] = inner
        if self.some(0.5):
            schema["required"] = random.sample(names, random.randint(1, len(names)))
        if self.some(0.12):
            schema["dependentRequired"] = {random.choice(names): [random.choice(NAMES)]}
        if self.some(0.12):
            schema["propertyNames"] = random.choice(
                [{"maxLength": 6}, {"pattern": "^[a-zé]"}, {"not": {"const": "id"}}]
            )
        if self.some(0.25):
            self.bounds("minProperties", "maxProperties", 4, schema)
        return schema

    def array(self, depth: int, budget: int) -> Schema:
        keywords = ["items"] if self.some(0.8) else []
        prefix = self.random.randint(1, 3) if self.some(0.35) else 0
        if self.some(0.3):
            keywords.append("contains")
        if self.some(0.1):
            keywords.append("unevaluatedItems")
        schema: dict[str, Any] = {"type": "array"} if self.some(0.85) else {}
        shares = self.split(budget, len(keywords) + prefix)
        inner = [self.schema(depth + 1, share) for share in shares]
        if prefix:
            schema["prefixItems"] = inner[:prefix]
        schema |= dict(zip(keywords, inner[prefix:], strict=True))
        if "contains" in schema:
            self.bounds("minContains", "maxContains", 3, schema)
        if self.some(0.5):
            self.bounds("minItems", "maxItems", 4, schema)
        if self.some(0.25):
            schema["uniqueItems"] = True
        return schema

    def combined(self, depth: int, budget: int) -> Schema:
        keyword = self.random.choice(["allOf", "anyOf", "anyOf", "oneOf", "oneOf", "not", "if"])
        if keyword == "not":
            return {"not": self.schema(depth + 1, budget)}
        if keyword == "if":
            parts = ["if", *(part for part in ("then", "else") if self.some(0.75))]
            shares = self.split(budget, len(parts))
            return {
                part: self.schema(depth + 1, share)
                for part, share in zip(parts, shares, strict=True)
            }
        shares = self.split(budget, self.random.randint(2, 4))
        return {keyword: [self.schema(depth + 1, share) for share in shares]}


def random_schema(seed: int) -> dict[str, Any]:
    """The schema of a seed: some definitions, which may refer to earlier ones, and a root."""
    random = Random(seed)
    drawing = _Drawing(random)
    budget = random.randint(50, 130)
    definitions: dict[str, Schema] = {}
    if random.random() < 0.7:
        for number in range(random.randint(1, 5)):
            name = f"d{number}"
            definitions[name] = drawing.schema(2, max(2, budget // random.randint(5, 12)))
            drawing.definitions.append(name)
    root = drawing.object(1, budget)
    if definitions:
        root["$defs"] = definitions
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root}


def references(schema: Schema) -> list[str]:
    """The targets of all references, each as often as it is referred to."""
    return [one["$ref"] for one, _ in subschemas(schema) if isinstance(one, dict) and "$ref" in one]


def near(value: Any, random: Random) -> Any:
    """A value that differs from another one in one place."""
    if isinstance(value, dict) and value and random.random() < 0.85:
        key = random.choice(sorted(value))
        if random.random() < 0.2:
            return {name: one for name, one in value.items() if name != key}
        return {**value, key: near(value[key], random)}
    if isinstance(value, list) and value and random.random() < 0.85:
        at = random.randrange(len(value))
        if random.random() < 0.2:
            return [*value[:at], *value[at + 1 :]]
        return [*value[:at], near(value[at], random), *value[at + 1 :]]
    if isinstance(value, dict):
        return {**value, random.choice(NAMES): random.choice([0, "a", None, []])}
    if isinstance(value, list):
        return [*value, random.choice([0, "a", None, {}])]
    return random.choice([*STRINGS, *NUMBERS, True, None, [], {}])
