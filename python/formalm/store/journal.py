"""Append-only journal of answers in an SQLite file, keyed by question.

An entry is stored completely or not at all, whatever happens to the process: SQLite writes a
rollback journal first and waits for the disk. Rollback mode is used rather than WAL, because WAL
needs memory shared by all processes, which network file systems lack.

Each entry has a digest of its content, so that later changes are detected. Files from before
entries had digests remain readable and writable.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from formalm.errors import SuiteError

__all__ = ["Entry", "Journal"]

LABEL = 0x666D6C6A  # "fmlj", where SQLite keeps what kind of file one is
VERSION = 1
ANEW = "start again in another directory"
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", re.ASCII)
PATIENCE_SECONDS = 60.0
TABLES = """
CREATE TABLE entries (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,
    answer TEXT NOT NULL,
    seconds REAL NOT NULL,
    digest TEXT,
    finished TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE TRIGGER entries_stay BEFORE UPDATE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are only added'); END;
CREATE TRIGGER entries_remain BEFORE DELETE ON entries
BEGIN SELECT RAISE(ABORT, 'entries are only added'); END;
"""


# Connections inherited from a parent, kept open while the process lives.
_INHERITED: list[sqlite3.Connection] = []


@dataclass(frozen=True)
class Entry:
    """A stored answer.

    Attributes
    ----------
    number
        The order of arrival, from 1.
    key
        The key of the question; equal keys mean equal questions.
    answer
        The answer, as plain data.
    seconds
        The time it took.
    finished
        The time at which it was complete, in UTC.
    """

    number: int
    key: str
    answer: dict[str, Any]
    seconds: float
    finished: str


class Journal:
    """A file of answers that several processes may use at once.

    Parameters
    ----------
    path
        The file.
    create
        Whether to create a missing file or initialize an empty one; otherwise both are errors.

    Raises
    ------
    SuiteError
        If it cannot be read or written, or is not a journal.

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

    def __init__(self, path: Path, *, create: bool = True) -> None:
        self.path, self.create = path, create
        if not create and not path.exists():
            raise SuiteError(
                f"the journal {str(path)!r} does not exist, so its answers are lost", hint=ANEW
            )
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

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
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
        """Returns the answer to a question; None if there is none."""
        entry = self.entry(key)
        return None if entry is None else entry.answer

    def entry(self, key: str) -> Entry | None:
        """Returns the entry of a question; None if there is none."""
        with self._reported():
            row = self._file.execute(f"{self._select} WHERE key = ?", (key,)).fetchone()
        return None if row is None else self._read(*row)

    def entries(self) -> Iterator[Entry]:
        """Yields all entries in order of arrival."""
        with self._reported():
            rows = self._file.execute(f"{self._select} ORDER BY number").fetchall()
        for row in rows:
            yield self._read(*row)

    def add(self, key: str, answer: dict[str, Any], seconds: float) -> bool:
        """Stores an answer, unless there is one; returns whether it was stored.

        When it returns, the answer is on disk.
        """
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False)
        values: dict[str, Any] = {"key": key, "answer": text, "seconds": float(seconds)}
        if self._has_digests:
            values["digest"] = _digest(**values)
        columns, places = ", ".join(values), ", ".join("?" for _ in values)
        with self._reported():
            done = self._file.execute(
                f"INSERT OR IGNORE INTO entries ({columns}) VALUES ({places})",  # noqa: S608
                tuple(values.values()),
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

        A connection of SQLite must not be used, or even closed, in a forked child: file locks are
        not inherited, so two processes would write what only one may.
        """
        if self._process != os.getpid():
            _INHERITED.append(self._opened)
            self._opened = self._open()
            self._process = os.getpid()
        return self._opened

    def _prepare(self) -> None:
        """Creates the tables, or checks that the file is a journal."""
        if self._is_new():
            if not self.create:
                raise SuiteError(
                    f"the journal {str(self.path)!r} is empty, so its answers are lost", hint=ANEW
                )
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
            raise SuiteError(
                f"{str(self.path)!r} must be a formalm journal, got another SQLite database",
                hint="run the suite in another directory",
            )
        if version != VERSION:
            raise SuiteError(
                f"{str(self.path)!r} must have format version {VERSION}, got {version}"
            )
        columns = self._file.execute("SELECT name FROM pragma_table_info('entries')").fetchall()
        self._has_digests = ("digest",) in columns
        digest = "digest" if self._has_digests else "NULL"
        # Check the types too: SQLite stores a value of any type in a column.
        self._select = (
            "SELECT number, key, answer, seconds, finished,"  # noqa: S608 - no input in it
            f" {digest} FROM entries"
        )

    def _is_new(self) -> bool:
        (label,) = self._file.execute("PRAGMA application_id").fetchone()
        (tables,) = self._file.execute("SELECT count(*) FROM sqlite_master").fetchone()
        return bool((label, tables) == (0, 0))

    def damaged(self, number: object, what: str) -> SuiteError:
        """Returns the error that describes a damaged entry."""
        return SuiteError(
            f"the journal {str(self.path)!r} is damaged: in entry {number!r:.20}, {what}", hint=ANEW
        )

    def _read(self, *row: object) -> Entry:
        number, key, text, seconds, finished, digest = row
        if not isinstance(number, int) or not isinstance(key, str):
            raise self.damaged(number, f"the key is {key!r:.60}")
        if not isinstance(text, str):
            raise self.damaged(number, f"the answer is {text!r:.60}")
        if not isinstance(seconds, float) or not 0 <= seconds < math.inf:
            raise self.damaged(number, f"the seconds are {seconds!r:.60}")
        if not isinstance(finished, str) or not TIME.fullmatch(finished):
            raise self.damaged(number, f"the time of its end is {finished!r:.60}")
        try:
            answer = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self.damaged(
                number, f"the answer is not valid JSON ({error}): {text!r:.60}"
            ) from None
        if not isinstance(answer, dict):
            raise self.damaged(number, f"the answer is {text!r:.60}")
        if self._has_digests and digest != _digest(key, text, seconds):
            raise self.damaged(number, "its contents were changed after it was written")
        return Entry(number, key, answer, seconds, finished)

    @contextmanager
    def _reported(self) -> Iterator[None]:
        """Converts errors of SQLite; entries added before are kept."""
        try:
            yield
        except sqlite3.Error as error:
            hint = None
            if "full" in str(error):
                hint = "free disk space and resume; finished items are kept"
            raise SuiteError(f"the journal {str(self.path)!r}: {error}", hint=hint) from None


def _digest(key: str, answer: str, seconds: float) -> str:
    """Returns the digest of an entry's content."""
    return sha256("\0".join((key, repr(seconds), answer)).encode(errors="replace")).hexdigest()


def _statements(script: str) -> Iterator[str]:
    """Returns the statements of a script; a trigger contains semicolons."""
    statement = ""
    for line in script.strip().splitlines():
        statement += line + "\n"
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
