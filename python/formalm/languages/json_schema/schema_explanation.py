"""Explanations of JSON Schemas: minimal sets of keywords that forbid a byte, or every instance.

A keyword is reported if the text could continue without it. Keywords are removed from the schema
until it can, and a minimal set is named. This definition is independent of the machine.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from formalm.errors import FormalmError

if TYPE_CHECKING:
    from formalm.languages.json_schema.language import JsonSchema

__all__ = [
    "MOST_BYTES",
    "Path",
    "contradicting_keywords",
    "forbidding_keywords",
    "inner_schemas",
    "pointer",
]

Path = tuple[str | int, ...]

#: Keywords that assert something by themselves.
PLAIN = frozenset(
    """type enum const minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minLength
    maxLength pattern format required minProperties maxProperties minItems maxItems uniqueItems
    minContains maxContains dependentRequired""".split()
)
#: Applicators, some of which assert more than their subschemas.
ONE = frozenset(
    """additionalProperties propertyNames items additionalItems contains not if then else
    unevaluatedProperties unevaluatedItems""".split()
)
MANY = frozenset(["allOf", "anyOf", "oneOf", "prefixItems", "items"])
NAMED = frozenset(
    """properties patternProperties $defs definitions dependentSchemas dependencies""".split()
)
JOINING = frozenset(["contains", "not", "if", "anyOf", "oneOf", "$ref", "$dynamicRef"])
#: Schemas that are only referenced, and those that depend on a condition.
REFERRED = frozenset(["$defs", "definitions", "then", "else"])

#: Maximum bytes of schemas that one query, and the hint of an error, may read.
MOST_BYTES, HINT_BYTES = 20_000_000, 1_000_000


def _integer(digits: str) -> int | Decimal:
    """Returns the value of an integer's digits; Python converts only some 4,300 of them."""
    return int(digits) if len(digits) < 4000 else Decimal(digits)


def forbidding_keywords(
    language: JsonSchema, beginning: bytes, following: bytes
) -> tuple[str, ...]:
    """Returns the keywords, as JSON pointers, that forbid ``following`` after ``beginning``.

    Without ``following``, the question is about the end. Options are reported by name if they alone
    forbid it. Nothing is reported if JSON itself forbids it, or if the search would take too long.
    """
    document = json.loads(language.schema, parse_float=Decimal, parse_int=_integer)
    budget = [MOST_BYTES]

    def allowed(schema: object, **options: Any) -> bool:
        budget[0] -= len(language.schema)
        try:
            one = language.varied(schema, approximate=True, **options)
            data = beginning + following
            return one.is_viable(data) if following else one.matches(data)
        except FormalmError:
            return False

    if allowed(document):
        return ()
    loosest = {
        "property_order": "any",
        "max_whitespace": 255,
        "number_format": "any",
        "escapes": "any",
    }
    for option, value in loosest.items():
        if allowed(document, **{option: value}):
            laid_out = (
                one for one in ("indent", "separators") if language.options[one] is not None
            )
            return (next(laid_out, option) if option == "max_whitespace" else option,)
    plain: list[Path] = []
    joining: list[Path] = []
    for path, is_joining in _keywords(document, ()):
        (joining if is_joining else plain).append(path)

    def without(paths: Sequence[Path]) -> bool:
        return budget[0] > 0 and allowed(_without(document, set(paths), ()))

    for candidates in (plain, plain + joining):
        if without(candidates):
            fewest = _fewest(without, [], candidates)
            return tuple(map(pointer, fewest)) if without(fewest) else ()
    return ()


def contradicting_keywords(language: JsonSchema) -> tuple[str, ...]:
    """Returns a minimal set of keywords, as JSON pointers, that no value satisfies together.

    The contents of applicators and of referenced schemas are not examined. Nothing is reported for
    a schema that has instances, or if the search would take too long.
    """
    document = json.loads(language.schema, parse_float=Decimal, parse_int=_integer)
    places = [path for path, _ in _keywords(document, (), REFERRED | JOINING)]
    budget = [HINT_BYTES]

    def together(paths: Sequence[Path]) -> bool:
        budget[0] -= len(language.schema)
        others = set(places) - set(paths)
        try:
            one = language.varied(_without(document, others, ()), approximate=True)
            return budget[0] > 0 and one.is_empty()
        except FormalmError:
            return False

    if not together(places):
        return ()
    fewest = _fewest(together, [], places)
    return tuple(map(pointer, fewest)) if together(fewest) else ()


def _keywords(
    schema: object, path: Path, apart: frozenset[str] = frozenset()
) -> Iterator[tuple[Path, bool]]:
    """Yields the places of keywords, except those ``apart``, and whether they are applicators."""
    if schema is False:
        yield path, False
    if not isinstance(schema, dict):
        return
    for key, value in schema.items():
        here = (*path, key)
        if key in PLAIN:
            yield here, False
        elif key in JOINING:
            yield here, True
        if key not in apart:
            for inner, place in inner_schemas(key, value, here):
                yield from _keywords(inner, place, apart)


def inner_schemas(key: str, value: object, path: Path) -> Iterator[tuple[object, Path]]:
    """Returns the schemas inside a keyword, with their places; its own is ``path``."""
    if key in NAMED and isinstance(value, dict):
        yield from ((inner, (*path, name)) for name, inner in value.items())
    elif key in MANY and isinstance(value, list):
        yield from ((inner, (*path, number)) for number, inner in enumerate(value))
    elif key in ONE:
        yield value, path


def _without(part: object, paths: set[Path], path: Path) -> object:
    """Returns a document without some keywords; values that are not schemas are copied."""
    if path in paths and part is False:
        return True
    if isinstance(part, dict):
        return {
            key: _without(value, paths, (*path, key))
            for key, value in part.items()
            if (*path, key) not in paths or (value is False and key not in PLAIN)
        }
    if isinstance(part, list):
        return [_without(one, paths, (*path, number)) for number, one in enumerate(part)]
    return part


def _fewest(
    enough: Callable[[Sequence[Path]], bool], kept: list[Path], candidates: list[Path]
) -> list[Path]:
    """Returns a minimal subset of the candidates that suffices with what is kept (QuickXplain)."""
    if enough(kept):
        return []
    if len(candidates) <= 1:
        return candidates
    half = len(candidates) // 2
    first, second = candidates[:half], candidates[half:]
    from_second = _fewest(enough, kept + first, second)
    return _fewest(enough, kept + from_second, first) + from_second


def pointer(path: Path) -> str:
    """Returns a place as a JSON pointer in fragment form."""
    parts = (str(part).replace("~", "~0").replace("/", "~1") for part in path)
    return "/".join(["#", *parts])
