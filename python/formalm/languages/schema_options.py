"""How the members of a schema are written: options, their defaults and what they may be."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from typing import Any

from formalm import _core
from formalm.errors import ArgumentError

__all__ = ["OPTIONS", "changed", "checked_options", "known_options"]

MAX_BLANKS = 255

#: Options with their defaults, in the order in which a language keeps them behind its text.
OPTIONS = {
    "order": "schema",
    "blanks": None,
    "indent": None,
    "separators": None,
    "numbers": "plain",
    "escapes": "minimal",
    "formats": True,
    "additional_properties": True,
    "max_depth": None,
    "approximate": False,
}


#: What stands between the parts of a text: options of which one kind is given.
GAPS = ("blanks", "indent", "separators")

Layout = tuple[str | None, str, str, str]


def changed(options: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    """Options with some changed; blanks that are chosen take the place of a layout, and back."""
    options = dict(options)
    if changes.get("blanks") is not None:
        options |= {"indent": None, "separators": None}
    elif any(changes.get(name) is not None for name in GAPS):
        options["blanks"] = None
    return options | changes


def blanks_between(blanks: object, indent: object, separators: object) -> tuple[int, Layout | None]:
    """Most blanks in each gap, and exactly which there are if that is said.

    The second are the indentation, and what stands behind commas, before and behind colons.
    """
    if indent is None and separators is None:
        if blanks is None:
            return 1, None
        if type(blanks) is not int or not 0 <= blanks <= MAX_BLANKS:
            raise ArgumentError(f"blanks is an integer from 0 to {MAX_BLANKS}, not {blanks!r}")
        return blanks, None
    if blanks is not None:
        given = "separators" if indent is None else "indent"
        raise ArgumentError(
            f"{given} says exactly which blanks there are, so that blanks says nothing beside it",
            hint=f"leave out blanks, or {given}",
        )
    if type(indent) is int and indent >= 0:
        indent = " " * indent
    if not (indent is None or isinstance(indent, str)):
        raise ArgumentError(f"indent is a count of blanks, or blanks, not {indent!r}")
    if separators is None:
        separators = (",", ": ")
    parts = tuple(separators) if isinstance(separators, list | tuple) else ()
    if len(parts) != 2 or not all(isinstance(part, str) for part in parts):
        raise ArgumentError(
            f"separators are two texts, for items and for names, not {separators!r}",
            hint='pass them as json.dumps takes them, as in (", ", ": ")',
        )
    before, comma, after_comma = parts[0].partition(",")
    before_colon, colon, after_colon = parts[1].partition(":")
    if not comma or before or not colon:
        raise ArgumentError(
            "separators are a comma with blanks behind it, and a colon with blanks around it, "
            f"not {separators!r}"
        )
    return 0, (indent, after_comma, before_colon, after_colon)


def enforced_formats(formats: object) -> bool | tuple[str, ...]:
    """The formats that are enforced: all, none, or these, sorted."""
    if isinstance(formats, bool):
        return formats
    names = None if isinstance(formats, str | bytes) else formats
    if not isinstance(names, Collection) or not all(isinstance(one, str) for one in names):
        raise ArgumentError(
            f"formats is True, False or names of formats, not {formats!r}",
            hint='pass a list, as in formats=["date", "uuid"]',
        )
    return tuple(sorted(set(names))) or False


def checked_options(
    order: object,
    blanks: object,
    indent: object,
    separators: Any,
    numbers: object,
    escapes: object,
    formats: object,
    additional_properties: object,
    max_depth: object,
    approximate: object,
) -> tuple[tuple[Any, ...], _core.SchemaOptions]:
    """Options as a language keeps them, in the order of `OPTIONS`, and as the core has them."""
    most, layout = blanks_between(blanks, indent, separators)
    if max_depth is not None and (type(max_depth) is not int or not 0 <= max_depth < 1 << 31):
        raise ArgumentError(f"max_depth is a count or None, not {max_depth!r}")
    flags = (("additional_properties", additional_properties), ("approximate", approximate))
    for name, flag in flags:
        if type(flag) is not bool:
            raise ArgumentError(f"{name} is True or False, not {flag!r}")
    enforced = enforced_formats(formats)
    texts = (("order", order), ("numbers", numbers), ("escapes", escapes))
    for name, value in texts:
        if not isinstance(value, str):
            raise ArgumentError(f"{name} is a str, not {type(value).__name__}")
    core = _core.SchemaOptions(
        **dict(texts),  # type: ignore[arg-type]
        blanks=most,
        layout=layout,
        formats=None if enforced is True else list(enforced or ()),
        takes_more=bool(additional_properties),
        depth=max_depth,
        approximate=bool(approximate),
    )
    separators = None if separators is None else (separators[0], separators[1])
    gaps = (blanks, indent, separators)
    kept = (enforced, additional_properties, max_depth, approximate)
    return (order, *gaps, numbers, escapes, *kept), core


#: The same, looked up where they were checked before: schemas of one program have few options.
known_options = lru_cache(maxsize=64, typed=True)(checked_options)
