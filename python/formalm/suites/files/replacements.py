"""Substitution of a suite's word lists and rows by the user's files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from formalm.errors import SuiteError

if TYPE_CHECKING:
    from formalm.suites.suite import Suite

__all__ = ["replaced"]


def replaced(
    suite: Suite,
    slots: Mapping[str, str | PathLike[str]],
    rows: Mapping[str, str | PathLike[str]],
) -> Suite:
    """Returns a suite with its data replaced; see :meth:`formalm.suites.Suite.replaced`."""
    new_slots, new_rows = dict(suite.slots), dict(suite.rows)
    for name, file in slots.items():
        if name not in suite.slots or suite.slots[name].texts is None:
            listed = [slot.name for slot in suite.slots.values() if slot.texts is not None]
            raise SuiteError(
                f"the suite {suite.name!r} must have a slot with texts named {name!r}",
                hint=f"its slots with texts are {', '.join(listed) or 'none'}",
            )
        new_slots[name] = replace(new_slots[name], file=str(Path(file).resolve()))
    for name, file in rows.items():
        if name not in suite.rows:
            raise SuiteError(
                f"the suite {suite.name!r} must have rows named {name!r}",
                hint=f"its rows are {', '.join(suite.rows) or 'none'}",
            )
        new_rows[name] = replace(new_rows[name], file=str(Path(file).resolve()))
    # Written with the files' names and read again, so that all checks of a file apply.
    text = replace(suite, slots=new_slots, rows=new_rows).to_toml()
    return type(suite).from_toml(text, folder=Path.cwd())
