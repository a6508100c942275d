"""Options of JSON Schemas: types, defaults and validation of layout, format and limit options."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any, Literal, TypedDict

from formalm import _core
from formalm.argument_checks import checked_flag
from formalm.errors import ArgumentError

__all__ = [
    "OPTIONS",
    "Escapes",
    "JsonOptions",
    "NumberFormat",
    "PropertyOrder",
    "changed",
    "checked_options",
    "known_options",
]

PropertyOrder = Literal["schema", "any"]
NumberFormat = Literal["plain", "any"]
Escapes = Literal["minimal", "ascii", "any"]


class JsonOptions(TypedDict, total=False):
    """Keyword options of :class:`~formalm.JsonSchema` that other JSON languages accept too."""

    property_order: PropertyOrder
    max_whitespace: int | None
    indent: int | str | None
    separators: tuple[str, str] | None
    number_format: NumberFormat
    escapes: Escapes
    formats: bool | Collection[str]
    additional_properties: bool
    max_depth: int | None
    approximate: bool


#: Largest `max_whitespace`, in bytes. The machine counts whitespace in one byte.
LARGEST_WHITESPACE = 255

#: Options with their defaults, in the order in which a language stores them after its schema.
OPTIONS = {
    "property_order": "schema",
    "max_whitespace": None,
    "indent": None,
    "separators": None,
    "number_format": "plain",
    "escapes": "minimal",
    "formats": True,
    "additional_properties": True,
    "max_depth": None,
    "approximate": False,
}

#: The values of options that have a fixed set of them.
VALUES = {
    "property_order": ("schema", "any"),
    "number_format": ("plain", "any"),
    "escapes": ("minimal", "ascii", "any"),
}

#: The options that say what whitespace there is: either a maximum or an exact layout.
WHITESPACE = ("max_whitespace", "indent", "separators")

Layout = tuple[str | None, str, str, str]


def changed(options: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Returns options with changes; ``max_whitespace`` replaces an exact layout, and vice versa."""
    options = dict(options)
    if changes.get("max_whitespace") is not None:
        options |= {"indent": None, "separators": None}
    elif any(changes.get(name) is not None for name in WHITESPACE):
        options["max_whitespace"] = None
    return options | changes


def whitespace_between(
    maximum: object, indent: object, separators: object
) -> tuple[int, Layout | None]:
    """Returns the maximum whitespace between two JSON tokens, and the exact layout if one is given.

    A layout is the indentation, and the strings after commas, before colons and after colons.
    """
    if indent is None and separators is None:
        if maximum is None:
            return 1, None
        if type(maximum) is not int or not 0 <= maximum <= LARGEST_WHITESPACE:
            raise ArgumentError(
                f"max_whitespace must be an integer from 0 to {LARGEST_WHITESPACE} or None, "
                f"got {maximum!r}"
            )
        return maximum, None
    if maximum is not None:
        given = "separators" if indent is None else "indent"
        raise ArgumentError(
            f"max_whitespace must be None if {given} is given, got {maximum!r}: {given} already"
            " fixes all whitespace",
            hint=f"leave out max_whitespace or {given}",
        )
    if type(indent) is int and indent >= 0:
        indent = " " * indent
    if not (indent is None or isinstance(indent, str)):
        raise ArgumentError(f"indent must be a number of spaces or whitespace, got {indent!r}")
    if separators is None:
        separators = (",", ": ")
    parts = tuple(separators) if isinstance(separators, list | tuple) else ()
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise ArgumentError(
            f"separators must be two strings, for items and for names, got {separators!r}",
            hint='pass them as json.dumps takes them, as in (", ", ": ")',
        )
    before, comma, after_comma = parts[0].partition(",")
    before_colon, colon, after_colon = parts[1].partition(":")
    if not comma or before or not colon:
        raise ArgumentError(
            "separators must be a comma followed by whitespace and a colon surrounded by"
            f" whitespace, got {separators!r}"
        )
    return 0, (indent, after_comma, before_colon, after_colon)


def enforced_formats(formats: object) -> bool | tuple[str, ...]:
    """Returns the formats to enforce: all, none, or these, sorted."""
    if isinstance(formats, bool):
        return formats
    names = None if isinstance(formats, str | bytes) else formats
    if not isinstance(names, Collection) or not all(isinstance(one, str) for one in names):
        raise ArgumentError(
            f"formats must be True, False or a collection of names, got {formats!r}",
            hint='pass a list, as in formats=["date", "uuid"]',
        )
    return tuple(sorted(set(names))) or False


def checked_options(
    property_order: object,
    max_whitespace: object,
    indent: object,
    separators: Any,
    number_format: object,
    escapes: object,
    formats: object,
    additional_properties: object,
    max_depth: object,
    approximate: object,
) -> tuple[tuple[Any, ...], _core.SchemaOptions]:
    """Returns options as a language stores them (in the order of `OPTIONS`), and for the core."""
    maximum, layout = whitespace_between(max_whitespace, indent, separators)
    if max_depth is not None and (type(max_depth) is not int or not 0 <= max_depth < 1 << 31):
        raise ArgumentError(f"max_depth must be a non-negative integer or None, got {max_depth!r}")
    flags = (("additional_properties", additional_properties), ("approximate", approximate))
    for name, flag in flags:
        checked_flag(name, flag)
    enforced = enforced_formats(formats)
    chosen = {"property_order": property_order, "number_format": number_format, "escapes": escapes}
    for name, value in chosen.items():
        if not isinstance(value, str) or value not in VALUES[name]:
            *others, last = map(repr, VALUES[name])
            raise ArgumentError(f"{name} must be {', '.join(others)} or {last}, got {value!r}")
    core = _core.SchemaOptions(
        order=str(property_order),
        blanks=maximum,
        layout=layout,
        numbers=str(number_format),
        escapes=str(escapes),
        formats=None if enforced is True else list(enforced or ()),
        takes_more=bool(additional_properties),
        depth=max_depth,
        approximate=bool(approximate),
    )
    separators = None if separators is None else (separators[0], separators[1])
    whitespace = (max_whitespace, indent, separators)
    kept = (enforced, additional_properties, max_depth, approximate)
    return (property_order, *whitespace, number_format, escapes, *kept), core


#: Memoized: the schemas of one program share few combinations of options.
known_options = lru_cache(maxsize=64, typed=True)(checked_options)
