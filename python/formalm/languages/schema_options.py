"""How the members of a schema are written: options, their defaults and what they may be."""

from __future__ import annotations

from collections.abc import Collection

from formalm.errors import ArgumentError

__all__ = ["OPTIONS", "enforced_formats"]

#: Options with their defaults, in the order in which a language keeps them behind its text.
OPTIONS = {
    "order": "schema",
    "blanks": 1,
    "escapes": "minimal",
    "formats": True,
    "additional_properties": True,
    "max_depth": None,
    "approximate": False,
}


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
