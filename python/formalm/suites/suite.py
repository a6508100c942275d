"""A suite: named questions about a model, what is computed of the answers, what has to hold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from formalm.suites.items import Item, items_of
from formalm.suites.oracles import Oracle
from formalm.suites.parts import Assertion, Comparison, Metric, Question
from formalm.suites.rows import Rows
from formalm.suites.slots import Slot, Template

__all__ = ["Suite"]

ITEM_LIMIT = 100_000


@dataclass(frozen=True)
class Suite:
    """A suite of questions, as a value: read from a file, checked, and written again.

    Attributes
    ----------
    name, title
        Its name, and the question it is about.
    slots, templates, queries, metrics, comparisons
        Its parts, by their names.
    assertions
        What has to hold.
    description, warning, citation, license
        Text about it; a warning where its texts may offend.
    rows
        Facts that are asked one by one, by their names.
    oracles
        What tells whether a text that was found is real, by their names.

    Examples
    --------
    >>> from formalm.suites import Suite
    >>> suite = Suite.from_toml('''
    ... format = "formalm-suite"
    ... version = 1
    ... name = "colours"
    ... title = "Which colour has the sky?"
    ... [slots]
    ... colour = ["blue", "green"]
    ... [templates]
    ... sky = "The sky is {colour}"
    ... [queries.colour]
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
        """Everything that is asked: one item for each query, template and combination of values.

        Raises
        ------
        LimitError
            If there are more than ``item_limit``.
        """
        asked = self.queries.values()
        return items_of(asked, self.templates, self.slots, self.rows, item_limit)

    def replaced(
        self,
        *,
        slots: Mapping[str, str | PathLike[str]] | None = None,
        rows: Mapping[str, str | PathLike[str]] | None = None,
    ) -> Suite:
        """The suite with word lists and rows of your own in place of those it has.

        Parameters
        ----------
        slots
            Files of texts, one a line, by the names of slots that have texts.
        rows
            Files of rows (``.jsonl`` or ``.csv``), by the names of rows.

        Raises
        ------
        SuiteError
            If there is no such slot or there are no such rows, a file cannot be read, or the suite
            makes no sense with it: everything is checked again.
        """
        from formalm.suites.replacing import replaced

        return replaced(self, slots or {}, rows or {})

    def to_toml(self) -> str:
        """The suite as a file; defaults are left out, texts of word lists stay in theirs."""
        from formalm.suites.writing import to_toml

        return to_toml(self)

    @classmethod
    def from_toml(cls, text: str, *, folder: str | PathLike[str] | None = None) -> Suite:
        """Read a suite.

        Parameters
        ----------
        text
            The file.
        folder
            Where the files that it names are.

        Raises
        ------
        SuiteError
            With the place of what is wrong.
        """
        from formalm.suites.reading import read_suite

        return read_suite(text, None if folder is None else Path(folder))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> Suite:
        """Read a file; those that it names are looked for beside it.

        Raises
        ------
        SuiteError
            If it cannot be read, or with the place of what is wrong.
        """
        from formalm.suites.reading import read_text

        return cls.from_toml(read_text(Path(path)), folder=Path(path).parent)
