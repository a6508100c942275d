"""Parts of a query: ``Edits``, and the weights of given prefixes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from formalm.errors import ArgumentError
from formalm.languages import Choice, Language, Region
from formalm.languages.edits import Operation

__all__ = ["Edits", "checked_weights"]

MOST = sys.float_info.max


@dataclass(frozen=True)
class Edits:
    """Edits that a query allows, see :meth:`formalm.Language.edits`.

    Parameters
    ----------
    count
        Maximum number of edits.
    alphabet, operations
        As in :meth:`formalm.Language.edits`.
    region
        The part that may be edited; None is everything after ``given``, ``Region()`` everything.
    """

    count: int
    alphabet: Language | None = None
    operations: tuple[Operation, ...] = ("insert", "delete", "substitute")
    region: Region | str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.alphabet, str) and self.alphabet:
            object.__setattr__(self, "alphabet", Choice(sorted(set(self.alphabet))))
        if isinstance(self.operations, (str, list)):
            named = [self.operations] if isinstance(self.operations, str) else self.operations
            object.__setattr__(self, "operations", tuple(named))


def checked_weights(value: object) -> str | tuple[tuple[str, float], ...]:
    """Returns weights of given prefixes as a name, or as pairs of string and number."""
    if value in ("strings", "encodings", "model"):
        return str(value)
    pairs: Iterable[Any]
    if isinstance(value, Mapping):
        pairs = value.items()
    elif isinstance(value, tuple) and all(isinstance(p, tuple) and len(p) == 2 for p in value):
        pairs = value
    else:
        raise ArgumentError(
            "prefix_weights must be 'strings', 'encodings', 'model' or a mapping from string to"
            " weight,"
            f" got {value!r:.60}"
        )
    table: dict[str, float] = {}
    for text, weight in pairs:
        number = isinstance(weight, (int, float)) and not isinstance(weight, bool)
        if not isinstance(text, str) or not number or not 0 <= weight <= MOST:
            raise ArgumentError(
                f"prefix_weights must map strings to weights, got {text!r:.60}: {weight!r:.60}"
            )
        if text in table:
            raise ArgumentError(f"prefix_weights must not repeat a string, got {text!r:.60} twice")
        table[text] = float(weight)
    if not sum(table.values()) > 0:
        raise ArgumentError("prefix_weights must have a weight above 0")
    return tuple(sorted(table.items()))
