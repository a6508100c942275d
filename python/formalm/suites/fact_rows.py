"""Rows of facts that a suite asks about one by one, from the suite or from JSONL and CSV files."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from formalm.errors import ArgumentError, SuiteError

__all__ = ["Rows", "listed_rows", "read_lines"]

QUOTES = str.maketrans({"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2014": "-"})


@dataclass(frozen=True)
class Rows:
    """Facts, one per row, all with the same columns.

    Attributes
    ----------
    name
        Their name.
    rows
        For each row, the string of each column.
    label
        The column that identifies a row; None numbers rows from 1.
    file, last_word
        The source file as named in the suite, and the column that was split before its last word;
        None if the rows are in the suite.
    """

    name: str
    rows: tuple[Mapping[str, str], ...]
    label: str | None = None
    file: str | None = None
    last_word: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self.rows[0])

    def labeled(self) -> Iterator[tuple[str, Mapping[str, str]]]:
        """Yields each row with its label."""
        for number, row in enumerate(self.rows, 1):
            yield (str(number) if self.label is None else row[self.label]), row

    def row(self, label: str) -> Mapping[str, str]:
        """Returns the row with a label."""
        return dict(self.labeled())[label]


def listed_rows(found: list[Any], label: str | None) -> tuple[Mapping[str, str], ...]:
    """Checks rows: tables of strings with the same columns and distinct labels.

    Raises
    ------
    ArgumentError
        Names the invalid row.
    """
    if not found:
        raise ArgumentError("rows must not be empty")
    columns: list[str] | None = None
    for number, row in enumerate(found, 1):
        if not isinstance(row, dict) or not all(isinstance(one, str) for one in row.values()):
            raise ArgumentError(f"row {number} must map column names to strings, got {row!r:.60}")
        columns = list(row) if columns is None else columns
        if sorted(row) != sorted(columns):
            raise ArgumentError(
                f"row {number} must have the columns of the first row"
                f" ({', '.join(columns)}), got {', '.join(row) or 'none'}"
            )
    assert columns is not None  # there is a row
    if label is not None:
        if label not in columns:
            raise ArgumentError(
                f"label must be a column, got {label!r}",
                hint=f"the columns are {', '.join(columns)}",
            )
        seen: set[str] = set()
        for number, row in enumerate(found, 1):
            if row[label] in seen:
                raise ArgumentError(
                    f"labels must be distinct, but row {number} repeats {row[label]!r:.60}"
                )
            seen.add(row[label])
    return tuple({name: row[name] for name in columns} for row in found)


def read_lines(path: Path, text: str, last_word: str | None) -> list[Any]:
    """Returns the rows of a ``.jsonl`` or ``.csv`` file.

    Parameters
    ----------
    path, text
        The file.
    last_word
        A column to split into ``context``, all but its last word, and ``answer``, that word without
        surrounding punctuation. Typographic quotes become plain ones.

    Raises
    ------
    SuiteError
        For another kind of file, or an invalid line.
    """
    if path.suffix == ".csv":
        found: list[Any] = list(csv.DictReader(text.splitlines(), strict=True))
        if any(None in row or None in row.values() for row in found):
            raise SuiteError(f"{str(path)!r}: every row must have as many fields as the header")
    elif path.suffix in (".jsonl", ".ndjson"):
        found = [_parsed(path, number, line) for number, line in enumerate(text.split("\n"), 1)]
        found = [row for row in found if row is not None]
    else:
        raise SuiteError(f"{str(path)!r}: a file of rows must end in .jsonl or .csv")
    if last_word is None:
        return found
    return [_cut(path, number, row, last_word) for number, row in enumerate(found, 1)]


def _parsed(path: Path, number: int, line: str) -> Any:
    if not line.strip():
        return None
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise SuiteError(f"{str(path)!r}, line {number}, is not valid JSON: {error}") from None


def _cut(path: Path, number: int, row: Any, column: str) -> dict[str, str]:
    text = row.get(column) if isinstance(row, dict) else None
    if not isinstance(text, str):
        raise SuiteError(f"{str(path)!r}: row {number} must have a string in the column {column!r}")
    context, _, word = text.translate(QUOTES).strip().rpartition(" ")
    answer = word.strip(".,!?;:'\"-")
    if not context or not answer:
        raise SuiteError(f"{str(path)!r}: row {number} must end with a word, got {text!r:.60}")
    return {"context": context.rstrip(), "answer": answer}
