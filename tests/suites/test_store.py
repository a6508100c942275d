"""Journals keep what they were given, and claims are of one process."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from formalm import SuiteError
from formalm.store import ItemLocks, Journal


def test_other_databases_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "theirs.sqlite"
    file = sqlite3.connect(path)
    file.execute("CREATE TABLE theirs (x)")
    file.close()
    with pytest.raises(SuiteError, match="must be a formalm journal, got another SQLite database"):
        Journal(path)
    with Journal(tmp_path / "newer.sqlite") as journal:
        journal._file.execute("PRAGMA user_version = 2")
    with pytest.raises(SuiteError, match="must have format version 1, got 2"):
        Journal(tmp_path / "newer.sqlite")


def test_entries_are_only_added(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert journal.add("one", {"x": 0.1 + 0.2}, 1.0)
        assert not journal.add("one", {"x": 4}, 1.0)
        for statement in ("DELETE FROM entries", "UPDATE entries SET answer = '{}'"):
            with pytest.raises(sqlite3.IntegrityError, match="only added"):
                journal._file.execute(statement)
        assert journal.answer("one") == {"x": 0.1 + 0.2}
        assert ("one" in journal, "two" in journal, len(journal)) == (True, False, 1)


def test_claims_are_of_one_process(tmp_path: Path) -> None:
    claims = ItemLocks(tmp_path / "claims")
    code = (
        "import sys; from pathlib import Path; from formalm.store import ItemLocks\n"
        "claims = ItemLocks(Path(sys.argv[1]))\n"
        "for key in sys.argv[2:]:\n"
        "    with claims.claim(key) as mine: print(mine)"
    )

    def other() -> list[str]:
        command = [sys.executable, "-c", code, str(tmp_path / "claims"), "00" * 8, "0f" * 8]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()

    with claims.claim("00" * 8) as mine:
        assert mine
        assert other() == ["False", "True"]
    assert other() == ["True", "True"]
    claims.close()
