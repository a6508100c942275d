"""The :class:`Suite` class: queries about a model, metrics of the answers, and assertions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from formalm.suites.fact_rows import Rows
from formalm.suites.oracles.oracle import Oracle
from formalm.suites.slots_and_templates import Slot, Template
from formalm.suites.suite_items import Item, items_of
from formalm.suites.suite_parts import Assertion, Comparison, Metric, Question

__all__ = ["Suite"]

ITEM_LIMIT = 100_000


@dataclass(frozen=True)
class Suite:
    """A suite of questions as a value: read from a file, checked, and written again.

    Attributes
    ----------
    name, title
        Its name, and the question it is about.
    slots, templates, queries, metrics, comparisons
        Its parts, by name.
    assertions
        The requirements.
    description, warning, citation, license
        Text about the suite; ``warning`` if its content may offend.
    rows
        Facts that fill slots row by row, by name.
    oracles
        The oracles that judge strings, by name.

    Examples
    --------
    >>> from formalm.suites import Suite
    >>> suite = Suite.from_toml('''
    ... format = "formalm-suite"
    ... version = 1
    ... name = "colors"
    ... title = "Which color has the sky?"
    ... [slots]
    ... color = ["blue", "green"]
    ... [templates]
    ... sky = "The sky is {color}"
    ... [queries.color]
    ... ask = "table"
    ... event = "prefix"
    ... ''')
    >>> [item.query.given for item in suite.items()]
    [StringLiteral('The sky is')]
    >>> Suite.from_toml(suite.to_toml()) == suite
    True
    """

    name: str
    title: str
    slots: Mapping[str, Slot] = field(default_factory=dict)
    templates: Mapping[str, Template] = field(default_factory=dict)
    queries: Mapping[str, Question] = field(default_factory=dict)
    metrics: Mapping[str, Metric] = field(default_factory=dict)
    comparisons: Mapping[str, Comparison] = field(default_factory=dict)
    assertions: tuple[Assertion, ...] = ()
    description: str = ""
    warning: str = ""
    citation: str = ""
    license: str = ""
    rows: Mapping[str, Rows] = field(default_factory=dict)
    oracles: Mapping[str, Oracle] = field(default_factory=dict)

    def items(self, *, item_limit: int = ITEM_LIMIT) -> list[Item]:
        """Returns all items: one for each query, template and combination of values.

        Raises
        ------
        LimitError
            If there are more than ``item_limit``.
        """
        return items_of(self.queries.values(), self.templates, self.slots, self.rows, item_limit)

    def replaced(
        self,
        *,
        slots: Mapping[str, str | PathLike[str]] | None = None,
        rows: Mapping[str, str | PathLike[str]] | None = None,
    ) -> Suite:
        """Returns the suite with your own word lists and rows instead of its own.

        Parameters
        ----------
        slots
            Files with one string per line, by the names of slots with listed strings.
        rows
            Files of rows (``.jsonl`` or ``.csv``), by the names of rows.

        Raises
        ------
        SuiteError
            If there are no such slots or rows, a file cannot be read, or the suite is invalid with
            the new data: everything is checked again.
        """
        from formalm.suites.files.load import replaced

        return replaced(self, slots or {}, rows or {})

    def to_toml(self) -> str:
        """Returns the suite as TOML; defaults are left out, and word lists stay in their files."""
        from formalm.suites.files.suite_to_toml import to_toml

        return to_toml(self)

    @classmethod
    def from_toml(cls, text: str, *, folder: str | PathLike[str] | None = None) -> Suite:
        """Reads a suite from TOML text.

        Parameters
        ----------
        text
            The text.
        folder
            The folder of the files that it names.

        Raises
        ------
        SuiteError
            With the place of the error.
        """
        from formalm.suites.files.load import read_suite

        return read_suite(text, None if folder is None else Path(folder))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Suite:
        """Reads a suite from a file; the files that it names are in the same folder.

        Raises
        ------
        SuiteError
            If it cannot be read, or with the place of the error.
        """
        from formalm.suites.files.load import read_text

        return cls.from_toml(read_text(Path(path)), folder=Path(path).parent)
