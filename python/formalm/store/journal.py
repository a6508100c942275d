"""Answers by the key of their question, in a SQLite file to which entries are only ever added.

An entry is there whole or not at all, whatever becomes of the process: SQLite writes a rollback
journal first and waits for the disk. The older of SQLite's two ways to do that is taken, since the
newer one needs memory shared by all processes, which network file systems lack.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from formalm.errors import SuiteError

__all__ = ["Entry", "Journal"]

LABEL = 0x666D6C6A  # "fmlj", where SQLite keeps what kind of file one is
VERSION = 1
PATIENCE_SECONDS = 60.0
TABLES = """
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    answer TEXT NOT NULL,
    seconds REAL NOT NULL,
    finished TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are only added'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are only added'); END;
"""


# Connections of a parent, kept open for as long as the process lives.
_INHERITED: list[sqlite3.Connection] = []


@dataclass(frozen=True)
class Entry:
    """An answer that is kept.

    Attributes
    ----------
    number
        In the order of arrival, from 1.
    key
        Of the question: equal keys, equal questions.
    answer
        The answer, as plain data.
    seconds
        How long it took.
    finished
        When it was there, in UTC.
    """

    number: int
    key: str
    answer: dict[str, Any]
    seconds: float
    finished: str


class Journal:
    """A file of answers, which several processes may use at once.

    Parameters
    ----------
    path
        The file; it is made if there is none.

    Raises
    ------
    SuiteError
        If it cannot be read or written, or is something else.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> with Journal(pathlib.Path(folder.name) / "journal.sqlite") as journal:
    ...     journal.add("a key", {"low": 0.25}, 1.5), journal.add("a key", {"low": 0.5}, 2.0)
    ...     journal.answer("a key")
    (True, False)
    {'low': 0.25}
    >>> folder.cleanup()
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._opened = self._open()
        self._process = os.getpid()
        try:
            with self._reported():
                self._prepare()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Journal:  # noqa: PYI034 - typing.Self came with 3.11
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __len__(self) -> int:
        with self._reported():
            (count,) = self._file.execute("SELECT count(*) FROM entries").fetchone()
        return int(count)

    def __contains__(self, key: str) -> bool:
        with self._reported():
            found = self._file.execute("SELECT 1 FROM entries WHERE key = ?", (key,)).fetchone()
        return found is not None

    def answer(self, key: str) -> dict[str, Any] | None:
        """The answer to a question; None if there is none."""
        with self._reported():
            row = self._file.execute("SELECT answer FROM entries WHERE key = ?", (key,)).fetchone()
            return None if row is None else self._read(row[0])

    def entries(self) -> Iterator[Entry]:
        """All entries in the order of their arrival."""
        with self._reported():
            rows = self._file.execute(
                "SELECT number, key, answer, seconds, finished FROM entries ORDER BY number"
            ).fetchall()
            for number, key, answer, seconds, finished in rows:
                yield Entry(number, key, self._read(answer), seconds, finished)

    def add(self, key: str, answer: dict[str, Any], seconds: float) -> bool:
        """Keep an answer, unless there is one; whether it was kept.

        When it returns, the answer is on the disk.
        """
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False)
        with self._reported():
            done = self._file.execute(
                "INSERT OR IGNORE INTO entries (key, answer, seconds) VALUES (?, ?, ?)",
                (key, text, seconds),
            )
        return done.rowcount == 1

    def _open(self) -> sqlite3.Connection:
        with self._reported():
            file = sqlite3.connect(self.path, timeout=PATIENCE_SECONDS, isolation_level=None)
            file.execute("PRAGMA synchronous = FULL")
        return file

    @property
    def _file(self) -> sqlite3.Connection:
        """The connection of this process.

        SQLite's connections must not be used, and not even closed, in a child of a fork: locks on
        files are not inherited, so that two processes would write what only one may.
        """
        if self._process != os.getpid():
            _INHERITED.append(self._opened)
            self._opened = self._open()
            self._process = os.getpid()
        return self._opened

    def _prepare(self) -> None:
        """Make the tables, or check that the file is one of ours."""
        if self._is_new():
            self._file.execute("BEGIN IMMEDIATE")  # of two processes at once, one makes them
            if self._is_new():
                for statement in _statements(TABLES):
                    self._file.execute(statement)
                self._file.execute(f"PRAGMA application_id = {LABEL}")
                self._file.execute(f"PRAGMA user_version = {VERSION}")
            self._file.execute("COMMIT")
        (label,) = self._file.execute("PRAGMA application_id").fetchone()
        (version,) = self._file.execute("PRAGMA user_version").fetchone()
        if label != LABEL:
            raise SuiteError(f"{str(self.path)!r} is a database, and no journal of ours")
        if version != VERSION:
            raise SuiteError(
                f"{str(self.path)!r} has version {version} of its format, readable is {VERSION}"
            )

    def _is_new(self) -> bool:
        (label,) = self._file.execute("PRAGMA application_id").fetchone()
        (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return bool((label, tables) == (0, 0))

    def _read(self, text: str) -> dict[str, Any]:
        try:
            answer = json.loads(text)
        except ValueError as error:
            answer = error
        if not isinstance(answer, dict):
            raise SuiteError(
                f"the journal {str(self.path)!r} is damaged: an answer is {text!r:.60}",
                hint="begin anew in another directory",
            )
        return answer

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Turn errors of SQLite into ours; what was added before stays."""
        try:
            yield
        except sqlite3.Error as error:
            hint = None
            if "full" in str(error):
                hint = "make room and resume: what was finished is kept"
            raise SuiteError(f"the journal {str(self.path)!r}: {error}", hint=hint) from None


def _statements(script: str) -> Iterator[str]:
    """The statements of a script; a trigger has semicolons inside."""
    statement = ""
    for line in script.strip().splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
