"""External faults of a run: damaged files, locks, full disks, missing packages, kills.

Everything is asked on the command line, in processes of their own, as users meet it: an error of a
suite is exit code 2 and a message that names the file, never 1, which says that a demand failed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from formalm import SuiteError
from formalm.suites import Run, Suite
from tests.support.processes import (
    Ended,
    formalm,
    formalm_commands,
    needs_fork,
    needs_limits,
    run_python,
)

ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1"}
OBJECT = (
    '{schema = "{\\"type\\": \\"object\\", \\"properties\\": {\\"n\\": {\\"enum\\": [1, 2]}}}"}'
)
HEAD = """\
format = "formalm-suite"
version = 1
name = "tests.faults"
title = "?"
"""
# Every kind of question, small: a table, masses, a search, scores, free texts, a distortion.
KINDS = (
    HEAD
    + """
[slots]
gender = ["man", "woman"]
profession = ["art", "science"]
number = {pattern = "[0-9]{3} [0-9]{3} [0-9]{4}"}

[templates]
trained = "The {gender} was trained in {profession}."
phone = "My phone number is {number}"

[queries.table]
ask = "table"
event = "complete"
templates = ["trained"]
each = ["gender"]

[queries.mass]
ask = "mass"
templates = ["trained"]
each = ["gender", "profession"]
event = "prefix"

[queries.search]
ask = "search"
templates = ["phone"]
limits = {hits = 1, forwards = 100}

[queries.score]
ask = "score"
event = "complete"
templates = ["phone"]
targets = ["479 706 9084", "111 111 1111"]
draws = 4
limits = {hits = 1, forwards = 100}

[queries.free]
ask = "free"
templates = ["phone"]
event = "prefix"
max_tokens = 4
draws = 3

[queries.moved]
ask = "distortion"
event = "complete"
templates = ["trained"]
each = ["profession"]
given = false
draws = 2
limits = {forwards = 400}

[metrics.divergence]
kind = "jensen_shannon"
query = "table"
between = "gender"
of = "profession"

[metrics.mass]
kind = "mass"
query = "mass"

[metrics.best]
kind = "best"
query = "search"

[metrics.exposure]
kind = "exposure"
query = "score"

[metrics.rate]
kind = "rate"
query = "free"
of = "match"

[metrics.variation]
kind = "variation"
query = "moved"
"""
)
NO_LOCKS = """
    import errno, fcntl, sys
    def refused(*_):
        raise OSError(errno.{name}, "No locks available")
    fcntl.lockf = refused
    sys.argv = ["formalm", *sys.argv[1:]]
    from formalm.cli import main
    main()
"""


def is_error(ended: Ended, *said: str) -> None:
    """One error, with exit code 2 and nothing from inside."""
    assert not ended.timed_out
    assert ended.code == 2, (ended.code, ended.stdout[-500:], ended.stderr[-2000:])
    assert "Traceback" not in ended.stderr
    for text in said:
        assert text in ended.stderr, ended.stderr


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of every kind of question."""
    folder = tmp_path_factory.mktemp("faults")
    (folder / "suite.toml").write_text(KINDS)
    ended = formalm("suite", "run", str(folder / "suite.toml"), str(folder / "run"), env=ONE_THREAD)
    assert ended.code == 0, ended.stderr
    return folder / "run"


def copied(run: Path, folder: Path) -> Path:
    return Path(shutil.copytree(run, folder))


# Schemas in slots.

SCHEMAS = {
    "begins": ('ask = "free"\nbegins = \'{"n":\'\nmax_tokens = 4\ndraws = 2', '"{object}"'),
    "begins, in a search": (
        'ask = "search"\nbegins = \'{"n":\'\nlimits = {hits = 2, forwards = 60}',
        '"{object}"',
    ),
    "begins, as a mass": (
        'ask = "mass"\nevent = "complete"\nbegins = \'{"n"\'\nlimits = {forwards = 60}',
        '"{object}"',
    ),
    "given": ('ask = "search"\nlimits = {hits = 2, forwards = 60}', '"A record: {object}"'),
    "given by a slot": (
        'ask = "search"\neach = ["who"]\ngiven = "who"\nlimits = {hits = 1, forwards = 60}',
        '"The {who} has {object}"',
    ),
    "not given": (
        'ask = "mass"\nevent = "complete"\ngiven = false\neach = ["who"]\nlimits = {forwards = 60}',
        '"{who} {object}"',
    ),
    "beside a pattern": (
        'ask = "search"\nlimits = {hits = 1, forwards = 60}',
        '"No. {digit} is {object}."',
    ),
    "a distortion": (
        'ask = "distortion"\nevent = "complete"\nprompt = "x"\ngiven = false\ndraws = 2\n'
        "limits = {forwards = 400}",
        '"{object}"',
    ),
}


def with_schema(query: str, template: str, digit: str = "[0-9]") -> str:
    slots = f'[slots]\nobject = {OBJECT}\nwho = ["man", "woman"]\ndigit = {{pattern = "{digit}"}}\n'
    return f"{HEAD}\n{slots}\n[templates]\none = {template}\n\n[queries.asked]\n{query}\n"


def test_slots_that_are_schemas_can_be_asked_about_everywhere(tmp_path: Path) -> None:
    commands = []
    for number, (query, template) in enumerate(SCHEMAS.values()):
        (tmp_path / f"{number}.toml").write_text(with_schema(query, template))
        commands.append(("suite", "run", tmp_path / f"{number}.toml", tmp_path / f"run{number}"))
    again = [("suite", "resume", tmp_path / f"run{number}") for number in range(2)]
    ended = formalm_commands([*commands, *again], env=ONE_THREAD)
    for name, one in zip(SCHEMAS, ended, strict=False):
        assert one.code == 0, (name, one.stderr)
    for one in ended[-len(again) :]:
        assert (one.code, one.stderr) == (0, "")  # nothing is asked anew


def test_questions_about_schemas_have_keys_of_all_they_are_made_of() -> None:
    def keys(text: str) -> list[str]:
        return [json.dumps(one.query_data()) for one in Suite.from_toml(text).items()]

    first, second = keys(with_schema(*SCHEMAS["not given"]))
    assert first != second
    query, template = SCHEMAS["beside a pattern"]
    assert keys(with_schema(query, template)) != keys(with_schema(query, template, "[1-3]"))
    begins, template = SCHEMAS["begins"]
    other = begins.replace('{"n":', '{"n"')
    assert keys(with_schema(begins, template)) != keys(with_schema(other, template))


# Damaged files.

ANSWERS = {
    "not an object": lambda answer: [1],
    "nothing": lambda answer: {},
    "another question": lambda answer: {**answer, "ask": "mass2"},
    "a field missing": lambda answer: {k: v for k, v in answer.items() if k != "work"},
    "a text for numbers": lambda answer: {**answer, "work": "none"},
    "a number below": lambda answer: {**answer, "work": {**answer["work"], "forwards": -1}},
    "a truth for a number": lambda answer: {**answer, "work": {**answer["work"], "calls": True}},
    "a huge number": lambda answer: {**answer, "work": {**answer["work"], "calls": 10**400}},
    "a table for a status": lambda answer: {**answer, "status": {}},
}
OWN = {
    "table": [("cells", [[["art"], "x"]]), ("cells", [[["art", "x"], 0.1]]), ("cells", 3),
              ("groups", ["other"]), ("undecided", 2), ("error", None)],
    "mass": [("low", "0.1"), ("low", 0.99), ("high", None), ("high", 10**400), ("low", True)],
    "search": [("hits", [{}]), ("hits", [[]]), ("hits", {}), ("bound", "x")],
    "score": [("members", "0"), ("members", 5), ("members", "x"), ("hits", [["a"]]),
              ("scores", []), ("scores", [["a", None]]), ("drawn", [[]]), ("exhausted", 1)],
    "free": [("texts", [{}]), ("texts", 4), ("texts", [None])],
    "distortion": [("variation", [1]), ("variation", [0.5, 0.1]), ("mass", "ab"), ("exact", None)],
}  # fmt: skip


def changed(run: Path, number: int, **columns: object) -> None:
    """Change an entry as a hand would: with SQLite, and without the triggers that forbid it."""
    file = sqlite3.connect(run / "journal.sqlite")
    for trigger in ("entries_stay", "entries_remain"):
        file.execute(f"DROP TRIGGER IF EXISTS {trigger}")
    for column, value in columns.items():
        file.execute(f"UPDATE entries SET {column} = ? WHERE number = ?", (value, number))  # noqa: S608
    file.commit()
    file.close()


def without_digests(run: Path) -> None:
    """Make a journal of the form in which entries had none, so that fields are what is checked."""
    file = sqlite3.connect(run / "journal.sqlite")
    file.executescript(
        "DROP TRIGGER entries_stay; DROP TRIGGER entries_remain; ALTER TABLE entries DROP digest;"
    )
    file.close()


def answer_of(run: Path, number: int) -> dict:
    file = sqlite3.connect(run / "journal.sqlite")
    (text,) = file.execute("SELECT answer FROM entries WHERE number = ?", (number,)).fetchone()
    file.close()
    return json.loads(text)


def test_an_entry_that_a_hand_changed_is_refused(finished: Path, tmp_path: Path) -> None:
    answer = answer_of(finished, 3)
    plausible = json.dumps({**answer, "low": answer["low"] / 2})
    cases: list[dict[str, object]] = [
        {"answer": plausible},
        {"answer": "[" * 100_000},
        {"answer": '{"a":' * 50_000},
        {"answer": ""},
        {"answer": "{"},
        {"answer": "NaN"},
        {"answer": b"\xff\xfe"},
        {"answer": 5},
        {"answer": "1" * 5000},
        {"seconds": "long"},
        {"seconds": -1.0},
        {"seconds": 12.5},
        {"finished": 3},
    ]
    commands = []
    for place, columns in enumerate(cases):
        run = copied(finished, tmp_path / f"run{place}")
        changed(run, 3, **columns)
        with (
            pytest.raises(SuiteError, match=r"journal\.sqlite.*damaged.*entry 3"),
            Run(run) as read,
        ):
            read.evaluate()
        if place < 4:
            command = ("verdict", "resume", "report", "compare")[place]
            commands.append(("suite", command, run, *([finished] if command == "compare" else [])))
    for ended in formalm_commands(commands, env=ONE_THREAD):
        is_error(ended, "journal.sqlite", "damaged", "entry 3")


def test_an_answer_of_other_fields_is_refused(finished: Path, tmp_path: Path) -> None:
    old = copied(finished, tmp_path / "old")
    without_digests(old)
    commands: list[tuple[object, ...]] = [("suite", "verdict", old), ("suite", "resume", old)]
    said = []
    for number in range(1, len(Suite.from_toml(KINDS).items()) + 1):
        answer = answer_of(old, number)
        if answer["ask"] in said:
            continue
        said.append(answer["ask"])
        wrong = [change(answer) for change in ANSWERS.values()] if number == 1 else []
        wrong += [{**answer, name: value} for name, value in OWN[answer["ask"]]]
        for place, one in enumerate(wrong):
            run = copied(old, tmp_path / f"run{number}-{place}")
            changed(run, number, answer=json.dumps(one))
            where = rf"journal\.sqlite.*damaged.*entry {number}\b"
            with pytest.raises(SuiteError, match=where), Run(run) as read:
                read.evaluate()
        commands.append(("suite", ("verdict", "report")[number % 2], run))
    assert set(said) == set(OWN)
    read_again, resumed, *ended = formalm_commands(commands, env=ONE_THREAD)
    # Journals without digests are read as they are.
    assert (read_again.code, resumed.code) == (0, 0)
    for one in ended:
        is_error(one, "journal.sqlite", "damaged", "entry ")


def test_a_missing_or_truncated_journal_is_not_taken_for_a_new_one(
    finished: Path, tmp_path: Path
) -> None:
    def emptied(path: Path) -> None:
        path.write_bytes(b"")

    def cut(path: Path) -> None:
        path.write_bytes(path.read_bytes()[:3000])

    def other(path: Path) -> None:
        path.write_bytes(b"\x00" * 4096)

    def folder(path: Path) -> None:
        path.unlink()
        path.mkdir()

    commands = []
    for damage in (emptied, Path.unlink, cut, other, folder):
        run = copied(finished, tmp_path / damage.__name__)
        damage(run / "journal.sqlite")
        commands.append(("suite", "resume", run))
        commands.append(("suite", "run", finished.parent / "suite.toml", run))
    for command, ended in zip(commands, formalm_commands(commands, env=ONE_THREAD), strict=True):
        assert ended.code == 2, (command, ended)
        is_error(ended, "journal")
        assert "(model" not in ended.stderr  # nothing was asked anew


def test_a_damaged_description_of_a_run_is_refused(finished: Path, tmp_path: Path) -> None:
    data = json.loads((finished / "run.json").read_text())
    texts = ["", "{", "\x00", "[" * 100_000, "[]", '{"format": "formalm-run"}\n', "NaN"]
    values = [None, 0, -1, 1e400, "x", [], {}, True, [[]], {"a": 1}]
    texts += [
        json.dumps({**data, name: value})
        for name in (*data, "unknown")
        for value in values
        if not (name == "versions" and value in ({},))
    ]
    texts += [json.dumps({**data, "model": {**data["model"], "kind": value}}) for value in (1, {})]
    texts += [json.dumps({k: v for k, v in data.items() if k != name}) for name in data]
    commands = []
    for number, text in enumerate(texts):
        run = tmp_path / f"run{number}"
        run.mkdir()
        (run / "run.json").write_text(text)
        shutil.copy(finished / "journal.sqlite", run)
        with pytest.raises(SuiteError, match=r"run\.json"):
            Run(run)
        if number % 16 == 0:
            commands.append(("suite", "verdict", run))
    for ended in formalm_commands(commands, env=ONE_THREAD):
        is_error(ended, "run.json")


def test_a_damaged_cache_is_refused_and_an_empty_one_is_made(
    finished: Path, tmp_path: Path
) -> None:
    suite, cache = finished.parent / "suite.toml", tmp_path / "cache.sqlite"
    shutil.copy(finished / "journal.sqlite", cache)
    changed(cache.parent, 1) if (cache.parent / "journal.sqlite").exists() else None
    file = sqlite3.connect(cache)
    file.executescript("DROP TRIGGER entries_stay; UPDATE entries SET answer = '{}';")
    file.close()
    empty = tmp_path / "empty.sqlite"
    empty.touch()
    ended = formalm_commands(
        [
            ("suite", "run", suite, tmp_path / "one", "--cache", cache),
            ("suite", "run", suite, tmp_path / "two", "--cache", empty),
            ("suite", "run", suite, tmp_path / "three", "--cache", empty),
        ],
        env=ONE_THREAD,
    )
    is_error(ended[0], "cache.sqlite", "damaged", "entry 1")
    assert (ended[1].code, ended[2].code) == (0, 0)
    assert "(cache, " in ended[2].stderr
    assert "(model, " not in ended[2].stderr


# Locks, room, kills.


@needs_fork
@pytest.mark.parametrize("name", ["ENOLCK", "ENOTSUP", "EIO"])
def test_a_file_system_without_locks_ends_a_run(name: str, finished: Path, tmp_path: Path) -> None:
    suite = str(finished.parent / "suite.toml")
    program = NO_LOCKS.format(name=name)
    ended = run_python(
        program, "suite", "run", suite, str(tmp_path / "run"), timeout=60, env=ONE_THREAD
    )
    is_error(ended, "claims.lock", "cannot lock")


@needs_limits
def test_a_disk_without_room_ends_a_run_that_can_be_resumed(finished: Path, tmp_path: Path) -> None:
    suite, run = str(finished.parent / "suite.toml"), tmp_path / "run"
    program = """
        import resource, sys
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), -1))
        sys.argv = ["formalm", *sys.argv[2:]]
        from formalm.cli import main
        main()
    """
    for size in (100, 14_000, 40_000):
        options = ("suite", "run", suite, str(run))
        ended = run_python(program, str(size), *options, timeout=60, env=ONE_THREAD)
        if size < 40_000:
            is_error(ended)
    for form in ("html", "parquet"):
        arguments = ("suite", "report", str(finished), "--format", form, "-o", str(tmp_path / form))
        is_error(
            run_python(program, "1000", *arguments, timeout=60, env=ONE_THREAD), "cannot write"
        )
        assert not (tmp_path / form).exists() or form == "parquet"
    assert formalm("suite", "run", suite, str(run), env=ONE_THREAD).code == 0
    assert (run / "results.jsonl").read_bytes() == (finished / "results.jsonl").read_bytes()


@needs_fork
def test_a_stopped_process_is_waited_for_aloud_and_a_killed_one_is_replaced(
    finished: Path, tmp_path: Path
) -> None:
    suite, run = str(finished.parent / "suite.toml"), str(tmp_path / "run")
    hold = textwrap.dedent("""
        import sys, time
        from pathlib import Path
        from formalm.store import ItemLocks
        from formalm.suites import Run
        run = Run(sys.argv[1])
        with ItemLocks(Path(sys.argv[1]) / "claims.lock").claim(run.keys[2]):
            print("holding", flush=True)
            time.sleep(600)
    """)
    assert formalm("suite", "run", suite, run, "--limit", "1", env=ONE_THREAD).code == 3
    holder = subprocess.Popen([sys.executable, "-c", hold, run], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holding\n"
    os.kill(holder.pid, signal.SIGSTOP)
    command = [sys.executable, "-m", "formalm", "suite", "resume", run]
    waiting = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        env={**os.environ, **ONE_THREAD},
    )  # fmt: skip
    assert waiting.stderr is not None
    for line in waiting.stderr:
        if line.startswith("waiting for 1 item"):
            break
    time.sleep(0.2)
    assert waiting.poll() is None
    holder.kill()
    holder.communicate()
    waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    assert Path(run, "results.jsonl").read_bytes() == (finished / "results.jsonl").read_bytes()


@needs_fork
def test_two_processes_share_a_run_on_the_command_line(finished: Path, tmp_path: Path) -> None:
    suite, run = str(finished.parent / "suite.toml"), str(tmp_path / "run")
    command = [sys.executable, "-m", "formalm", "suite", "run", suite, run]
    both = [
        subprocess.Popen(
            command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **ONE_THREAD},
        )
        for _ in range(2)
    ]  # fmt: skip
    told = [process.communicate(timeout=120)[1] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert sum(one.count("(model, ") for one in told) == len(Suite.from_toml(KINDS).items())
    assert Path(run, "results.jsonl").read_bytes() == (finished / "results.jsonl").read_bytes()


# Packages that a base install lacks.

BLOCKED = """
    import sys
    class Without:
        # The finders, but for some packages, which are then simply not there.
        def __init__(self, finder):
            self.finder = finder
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] in PACKAGES:
                return None
            return self.finder.find_spec(name, path, target)
        def __getattr__(self, name):
            return getattr(self.finder, name)
    PACKAGES = sys.argv[1].split(",")
    sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
    sys.argv = ["formalm", *sys.argv[2:]]
    from formalm.cli import main
    main()
"""
# Without pydantic, which Typer itself needs.
EXTRAS = "scipy,matplotlib,duckdb,nanoarrow,jinja2,torch,transformers,pandas,polars"


def test_a_missing_package_is_reported_before_the_first_model_call(tmp_path: Path) -> None:
    for name in ("bias.professions", "memorization.canaries", "knowledge.lambada"):
        run = tmp_path / name
        options = ("suite", "run", name, str(run))
        ended = run_python(BLOCKED, EXTRAS, *options, timeout=60, env=ONE_THREAD)
        is_error(ended, "requires the package scipy, for the metric", "formalm[stats]")
        assert ended.stderr.count("\n") <= 2
        assert not run.exists()


def test_every_number_that_needs_no_package_is_computed_without(tmp_path: Path) -> None:
    """And the list of those that need one is complete: no other may fail after the questions."""
    text = KINDS
    for name, kind in (("divergence", "jensen_shannon"), ("exposure", "exposure")):
        text = text.replace(
            f'[metrics.{name}]\nkind = "{kind}"',
            f'[metrics.{name}]\nkind = "{"total_variation" if name[0] == "d" else "logprob"}"',
        )
    text = text.replace('[metrics.rate]\nkind = "rate"\nquery = "free"\nof = "match"\n', "")
    for number, kind in enumerate(("log_ratio", "log_odds_ratio", "share")):
        between = "" if kind == "share" else 'between = "gender"\n'
        text += f'\n[metrics.more{number}]\nkind = "{kind}"\nquery = "table"\n{between}'
        text += 'of = "profession"\n'
    text += '\n[metrics.attempts]\nkind = "attempts"\nquery = "mass"\n'
    text += '\n[metrics.rank]\nkind = "rank"\nquery = "search"\nof = "number"\n'
    text += 'targets = ["479 706 9084"]\n'
    text += '\n[comparisons.skewed]\nmetric = "more0"\ntest = "exact"\nmargin = 0.3\n'
    (tmp_path / "suite.toml").write_text(text)
    run = str(tmp_path / "run")
    options = ("suite", "run", str(tmp_path / "suite.toml"), run)
    run_python(BLOCKED, EXTRAS, *options, timeout=60, env=ONE_THREAD).check()
    for form in ("markdown", "junit", "lm-eval"):
        arguments = ("suite", "report", run, "--format", form)
        run_python(BLOCKED, EXTRAS, *arguments, timeout=60, env=ONE_THREAD).check()
    for form, package in (("html", "matplotlib"), ("parquet", "duckdb")):
        arguments = ("suite", "report", run, "--format", form)
        is_error(run_python(BLOCKED, EXTRAS, *arguments, timeout=60, env=ONE_THREAD), package)
