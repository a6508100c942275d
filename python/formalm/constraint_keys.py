"""Keys of descriptions: equal keys, equal languages with equal values.

A description is digested as canonical JSON or as a tree of plain values. Keywords of a schema have
no order, so they are sorted wherever a value is known to be a schema. The order of names inside
``properties`` and the like is kept, because properties are written in it, and so is the order of
everything that is not a schema. Two descriptions of one language may have two keys: that costs a
compilation. One key for two languages would give wrong masks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256
from typing import TypeAlias

from formalm.languages import JsonSchema, Language, as_language
from formalm.languages.json_schema.schema_text import schema_text

__all__ = ["Description", "Key", "canonical_schema", "description_of"]

#: A digest of 32 bytes; or a language that has none, with the digest of the options.
Key: TypeAlias = bytes | tuple[Language, bytes]

#: Keywords whose value is a schema; a list of schemas for ``items``.
SCHEMAS = frozenset(
    "additionalItems additionalProperties contains contentSchema else if items not propertyNames"
    " then unevaluatedItems unevaluatedProperties".split()
)
#: Keywords whose value is a list of schemas.
LISTS = frozenset("allOf anyOf items oneOf prefixItems".split())
#: Keywords whose value has schemas by name.
NAMED = frozenset(
    "$defs definitions dependencies dependentSchemas patternProperties properties".split()
)


@dataclass(frozen=True)
class Description:
    """The description of a language.

    Attributes
    ----------
    language
        The language, or the text of a schema.
    size
        Bytes of the strings in the description.
    digest
        Its digest; None if it has parts that are not plain values.
    """

    language: Language | str
    size: int
    digest: bytes | None

    def made(self) -> Language:
        """Returns the language."""
        return JsonSchema(self.language) if isinstance(self.language, str) else self.language

    def key(self, *others: object) -> Key:
        """Returns a key of the description and of ``others``."""
        rest = sha256(repr(others).encode()).digest()
        if self.digest is not None:
            return sha256(self.digest + rest).digest()
        assert isinstance(self.language, Language)
        return self.language, rest


def description_of(language: object) -> Description:
    """Reads a language, or a JSON Schema as a dictionary, and computes its digest.

    Raises
    ------
    LanguageError
        If it is not a language.
    ArgumentError, LimitError
        If a dictionary is not JSON, or is nested too deep.
    """
    digest = _Digest()
    if isinstance(language, Mapping):
        text = schema_text(language)
        digest.feed_schema(text, _DEFAULTS)
        return Description(text, digest.size, digest.finished())
    made = as_language(language)
    digest.feed(made)
    return Description(made, digest.size, digest.finished())


#: The options and resources of a schema that was given as it is.
_DEFAULTS = JsonSchema("true")._arguments[1:]


class _Digest:
    """The digest of a tree of plain values and languages."""

    def __init__(self) -> None:
        self.size = 0
        self._hash = sha256()
        self._is_plain = True

    def finished(self) -> bytes | None:
        """The digest; None if some part has no digest of its value."""
        return self._hash.digest() if self._is_plain else None

    def feed(self, value: object) -> None:
        """Adds a value."""
        # Iterative: languages may be nested deeper than Python recurses.
        left = [value]
        while left:
            value = left.pop()
            if isinstance(value, Language):
                left += self._language(value)
            elif type(value) is tuple or type(value) is list:
                self._add("tuple", str(len(value)).encode())
                left += value
            elif type(value) is dict:
                self._add("dict", str(len(value)).encode())
                left += (part for item in value.items() for part in item)
            elif type(value) is str:
                self._add("str", value.encode("utf-8", "surrogatepass"))
            elif type(value) is bytes:
                self._add("bytes", value)
            elif value is None or type(value) in (bool, int, float, complex, Decimal):
                self._add(type(value).__name__, repr(value).encode())
            else:
                self._is_plain = False

    def feed_schema(self, text: str, others: object) -> None:
        """Adds a schema with its options and resources."""
        canonical = canonical_schema(text)
        self.size += len(text) - len(canonical)
        self._add("schema", canonical)
        self.feed(others)

    def _language(self, value: Language) -> Iterator[object]:
        """Adds the name of a language; its parts."""
        kind = type(value)
        arguments = value._arguments
        if kind.__eq__ is not Language.__eq__ or not kind.__module__.startswith("formalm."):
            # There is more to it than its arguments.
            self._is_plain = False
            self.size += sum(len(one) for one in arguments if isinstance(one, (str, bytes)))
            return
        if kind is JsonSchema:
            self.feed_schema(str(arguments[0]), arguments[1:])
            return
        self._add("language", f"{kind.__module__}.{kind.__qualname__} {len(arguments)}".encode())
        yield from arguments

    def _add(self, tag: str, data: bytes) -> None:
        self.size += len(data)
        self._hash.update(f"{tag} {len(data)} ".encode())
        self._hash.update(data)


def canonical_schema(text: str) -> bytes:
    """Returns a schema as JSON with sorted keywords and without whitespace; numbers as written.

    A text that is not JSON, or that names a keyword twice, is returned as it is.

    Examples
    --------
    >>> canonical_schema('{"type": "object", "properties": {"b": {}, "a": {"minimum": 1.0}}}')
    b'{"properties":{"b":{},"a":{"minimum":1.0}},"type":"object"}'
    """
    try:
        read = json.loads(
            text,
            object_pairs_hook=_distinct,
            parse_float=_Number,
            parse_int=_Number,
            parse_constant=_refused,
        )
        parts: list[str] = []
        _write_schema(read, parts)
        return "".join(parts).encode("utf-8", "surrogatepass")
    except (ValueError, RecursionError):
        return text.encode("utf-8", "surrogatepass")


class _Number(str):
    """A number as it was written."""

    __slots__ = ()


def _refused(name: str) -> object:
    raise ValueError(name)


def _distinct(items: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(items)
    if len(found) < len(items):
        raise ValueError("a name is there twice")
    return found


def _write_schema(value: object, parts: list[str]) -> None:
    if not isinstance(value, dict):
        _write(value, parts)
        return
    before = "{"
    for name in sorted(value):
        inner = value[name]
        parts.append(f"{before}{json.dumps(name)}:")
        before = ","
        if name in LISTS and isinstance(inner, list):
            _write_list(inner, parts, _write_schema)
        elif name in SCHEMAS:
            _write_schema(inner, parts)
        elif name in NAMED and isinstance(inner, dict):
            _write_dict(inner, parts, _write_schema)
        else:
            _write(inner, parts)
    parts.append("{}" if before == "{" else "}")


def _write(value: object, parts: list[str]) -> None:
    if isinstance(value, dict):
        _write_dict(value, parts, _write)
    elif isinstance(value, list):
        _write_list(value, parts, _write)
    else:
        parts.append(str(value) if type(value) is _Number else json.dumps(value))


def _write_dict(
    value: dict[str, object], parts: list[str], write: Callable[[object, list[str]], None]
) -> None:
    before = "{"
    for name, inner in value.items():
        parts.append(f"{before}{json.dumps(name)}:")
        before = ","
        write(inner, parts)
    parts.append("{}" if before == "{" else "}")


def _write_list(
    value: list[object], parts: list[str], write: Callable[[object, list[str]], None]
) -> None:
    parts.append("[")
    for at, inner in enumerate(value):
        if at:
            parts.append(",")
        write(inner, parts)
    parts.append("]")
