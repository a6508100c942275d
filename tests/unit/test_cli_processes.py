"""Every command as a process: closed pipes, full disks, narrow encodings, signals, surprises."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import needs_dev_full, needs_fork, run_python

SUITE = """
format = "formalm-suite"
version = 1
name = "two.é∀"
title = "Zwölf ∀"

[slots]
word = ["é", "man"]

[templates]
only = "The {word}"

[queries.told]
ask = "score"

[metrics.odds]
kind = "log_ratio"
query = "told"
between = "word"
"""
COMMANDS = {
    "help": ["--help"],
    "version": ["--version"],
    "no command": [],
    "generate": ["generate", "-r", "é∀|(Grüße ){3}", "--seed", "1"],
    "generate --json": ["generate", "-r", "é∀", "--json", "-n", "3"],
    "search": ["search", "-r", "é|∀|a"],
    "search --json": ["search", "-r", "é|∀|a", "--json"],
    "mass": ["mass", "-r", "é|a", "--event", "complete"],
    "sample": ["sample", "-r", "é|∀", "--event", "complete", "-n", "3"],
    "score": ["score", "é∀", "a"],
    "score --help": ["score", "--help"],
    "distortion": ["distortion", "-r", "é|a", "--event", "complete"],
    "plan": ["plan", "-r", "é|∀"],
    "mask": ["mask", "é", "-r", "é∀a"],
    "automaton": ["automaton", "-r", "é|∀"],
    "automaton --svg": ["automaton", "-r", "é|∀", "--svg"],
    "tokenize": ["tokenize", "é∀"],
    "tokenize --json": ["tokenize", "é∀", "--json"],
    "doctor": ["doctor"],
    "grammar check": ["grammar", "check", "g.lark"],
    "grammar diagram": ["grammar", "diagram", "g.lark"],
    "grammar count": ["grammar", "count", "g.lark"],
    "grammar sample": ["grammar", "sample", "g.lark"],
    "schema check": ["schema", "check", "s.json"],
    "schema sample": ["schema", "sample", "s.json", "-n", "3"],
    "suite": ["suite", "--help"],
    "suite ls": ["suite", "ls"],
    "suite validate": ["suite", "validate", "bias.professions"],
}
QUICK = ["help", "search", "search --json", "score", "automaton --svg", "suite ls"]
quick_and_all = pytest.mark.parametrize(
    "names", [QUICK, pytest.param([*COMMANDS], marks=pytest.mark.slow)], ids=["quick", "all"]
)

# Starts once, and forks a process for each case: importing everything takes longer than the case.
ZYGOTE = """
import io, json, os, signal, sys
from formalm.cli import main
# Read once.
import formalm.cli.app, formalm.generation, formalm.probability, formalm.suites
import formalm.models.canary

def forked(case, folder):
    kept = {}
    pipes = {}
    for number, where in ((1, case["stdout"]), (2, case["stderr"])):
        if where == "pipe":
            pipes[number] = os.path.join(folder, f"fd{number}")
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        read = {n: open(p, "rb").read().decode("latin-1") for n, p in pipes.items()}
        return [code, read.get(1, ""), read.get(2, "")]
    os.chdir(folder)
    for number, where in ((1, case["stdout"]), (2, case["stderr"])):
        if where == "pipe":
            target = os.open(pipes[number], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        elif where == "gone":
            reader, target = os.pipe()
            os.close(reader)
        elif where == "full":
            target = os.open("/dev/full", os.O_WRONLY)
        if where == "closed":
            os.close(number)
            continue
        os.dup2(target, number)
        os.close(target)
    signal.alarm(60)
    streams = {1: "stdout", 2: "stderr"}
    for number, name in streams.items():
        closed = case[name] == "closed"
        made = None if closed else open(number, "w", encoding=case["encoding"], closefd=False,
                                        errors="strict" if number == 1 else "backslashreplace")
        setattr(sys, name, made)
    sys.argv = ["formalm", *case["arguments"]]
    if case.get("break"):
        exec(case["break"])
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    except BaseException as error:
        os.write(2, f"Traceback raised {type(error).__name__}: {error}".encode())
        code = 99
    os._exit(code)

folder = sys.argv[1]
results = [forked(case, folder) for case in json.load(open(os.path.join(folder, "cases.json")))]
json.dump(results, open(os.path.join(folder, "results.json"), "w"))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("commands")
    (made / "g.lark").write_text('start: "é" | "∀" start\n', encoding="utf-8")
    (made / "s.json").write_text('{"enum": ["é", "∀", "a"]}', encoding="utf-8")
    return made


def run_all(folder: Path, cases: list[dict[str, Any]]) -> list[tuple[int, str, str]]:
    (folder / "cases.json").write_text(json.dumps(cases), encoding="utf-8")
    env = {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    run_python(ZYGOTE, str(folder), timeout=250, env=env).check()
    return [tuple(each) for each in json.loads((folder / "results.json").read_text())]  # type: ignore[misc]


def case(arguments: list[str], **options: str) -> dict[str, Any]:
    streams = {"stdout": "pipe", "stderr": "pipe", "encoding": "utf-8"}
    return {"arguments": arguments, **streams, **options}


def is_suite(arguments: list[str]) -> bool:
    return arguments[:1] == ["suite"]


def ended(folder: Path, names: list[str], **options: str) -> dict[str, tuple[int, str, str]]:
    """How commands end, by their names."""
    done = run_all(folder, [case(COMMANDS[name], **options) for name in names])
    return dict(zip(names, done, strict=True))


_plain: dict[str, tuple[int, str, str]] = {}


def plain(folder: Path, names: list[str]) -> dict[str, tuple[int, str, str]]:
    """How commands end when nothing is wrong."""
    unknown = [name for name in names if name not in _plain]
    if unknown:
        _plain.update(ended(folder, unknown))
    return {name: _plain[name] for name in names}


@needs_fork
@quick_and_all
def test_every_command_works_at_all(folder: Path, names: list[str]) -> None:
    for name, (code, out, err) in plain(folder, names).items():
        assert code == (2 if name == "no command" else 0), (name, out, err)
        assert out, name
        assert "Traceback" not in err


@needs_fork
@quick_and_all
def test_a_closed_pipe_ends_in_silence(folder: Path, names: list[str]) -> None:
    for name, (code, _, err) in ended(folder, names, stdout="gone").items():
        assert code == 141, (name, code, err)
        assert "rror" not in err, (name, err)
        assert "Traceback" not in err, (name, err)


@needs_fork
@needs_dev_full
@quick_and_all
@pytest.mark.parametrize("where", ["full", "closed"])
def test_output_that_cannot_be_written_is_an_error_of_one_line(
    folder: Path, names: list[str], where: str
) -> None:
    reason = {"full": "No space left on device", "closed": "Bad file descriptor"}[where]
    for name, (code, _, err) in ended(folder, names, stdout=where).items():
        assert code == (2 if is_suite(COMMANDS[name]) else 1), (name, code, err)
        errors = [line for line in err.splitlines() if "rror" in line]
        assert len(errors) == 1, (name, err)
        assert errors[0].startswith("error: "), (name, err)
        assert reason in errors[0], (name, err)
        assert "Traceback" not in err


@needs_fork
@needs_dev_full
@quick_and_all
@pytest.mark.parametrize("where", ["full", "closed"])
def test_results_are_written_even_if_stderr_is_closed(
    folder: Path, names: list[str], where: str
) -> None:
    for name, (code, out, _) in ended(folder, names, stderr=where).items():
        assert (code, bool(out)) == (
            plain(folder, names)[name][0],
            bool(plain(folder, names)[name][1]),
        ), name


@needs_fork
@quick_and_all
@pytest.mark.parametrize("encoding", ["cp437", "ascii"])
def test_an_encoding_that_lacks_characters_is_no_failure(
    folder: Path, names: list[str], encoding: str
) -> None:
    for name, (code, out, err) in ended(folder, names, encoding=encoding).items():
        assert code == plain(folder, names)[name][0], (name, code, err)
        assert out, name
        if name.endswith("--json"):
            ours = [json.loads(line) for line in out.splitlines()]
            text = plain(folder, names)[name][1].encode("latin-1").decode()
            assert len(ours) == len([json.loads(line) for line in text.splitlines()])
        if name == "search":  # what was found are bytes, whatever the locale
            assert {line.split()[-1] for line in out.splitlines()} == {
                text.encode().decode("latin-1") for text in ("é", "∀", "a")
            }
        if name.endswith("--svg"):
            assert out == plain(folder, names)[name][1]


BREAKS = {
    "an exception": "raise KeyError('what\\nnobody expected')",
    "a memory error": "raise MemoryError",
    "a recursion": "raise RecursionError('maximum recursion depth exceeded')",
    "a value error": "raise ValueError",
    "an assertion": "raise AssertionError",
}


@needs_fork
@pytest.mark.parametrize(
    "name", ["an exception", *(pytest.param(n, marks=pytest.mark.slow) for n in [*BREAKS][1:])]
)
def test_unexpected_errors_take_one_line_and_have_their_own_exit_code(
    folder: Path, name: str
) -> None:
    broken = (
        "import formalm.cli.shared_options as o, formalm.suites as s, formalm.languages as l\n"
        f"def fails(*_, **__):\n    {BREAKS[name]}\n"
        "o.chosen_model = s.builtin_names = l.Regex.__init__ = fails\n"
        "import formalm.cli.commands.grammar as g, formalm.cli.commands.schema as c\n"
        "g.read_grammar = c.read_schema = fails\n"
    )
    commands = [
        COMMANDS[each]
        for each in (QUICK if name == "an exception" else COMMANDS)
        if each not in ("help", "version", "no command", "suite", "score --help", "doctor")
    ]
    quiet = run_all(folder, [case(each, **{"break": broken}) for each in commands])
    for arguments, (code, out, err) in zip(commands, quiet, strict=True):
        assert code == (2 if is_suite(arguments) else 70), (arguments, code, out, err)
        if "--json" in arguments:
            (told,) = [json.loads(line) for line in out.splitlines()]
            assert told["error"]["kind"] == BREAKS[name].split()[1].partition("(")[0]
        else:
            assert len(err.splitlines()) == 1, (arguments, err)
            assert err.startswith("error: ")
            assert "--traceback" in err
    loud = run_all(
        folder,
        [
            case(each, **{"break": broken})
            for each in (
                ["search", "-r", "a", "--traceback"],
                ["--traceback", "search", "-r", "a"],
                ["suite", "ls", "--traceback"],
                ["--traceback", "suite", "ls"],
                ["grammar", "check", "g.lark", "--traceback"],
            )
        ],
    )
    for code, _, err in loud:
        assert code in (2, 70)
        assert err.startswith("error: ")
        assert "Traceback (most recent call last)" in err


@needs_fork
@pytest.mark.parametrize("whole", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_files_that_cannot_be_read_are_errors_of_one_line(folder: Path, whole: bool) -> None:
    (folder / "latin.toml").write_bytes(b'a = "\xe9"')
    (folder / "empty").write_bytes(b"")
    if not (folder / "loop").is_symlink():
        (folder / "loop").symlink_to("loop")
    names = ["none", ".", "latin.toml", "loop", "empty", "x" * 300]
    asked = [
        *(["search", "-q"], ["mass", "--event", "complete", "-q"], ["plan", "-q"]),
        *(["generate", "--schema"], ["generate", "--grammar"], ["mask", "-r", "a", "--tokenizer"]),
        *(["grammar", "check"], ["grammar", "count"], ["schema", "check"], ["schema", "sample"]),
        *(["suite", "validate"], ["suite", "verdict"], ["suite", "report"], ["score", "-q"]),
        *(["search", "-r", "a", "--resume"], ["search", "-r", "a", "-m"], ["suite", "resume"]),
    ]
    cases = [[*each, name] for each in asked for name in names]
    cases = cases if whole else cases[::7]
    done = run_all(folder, [case(each) for each in cases])
    for arguments, (code, out, err) in zip(cases, done, strict=True):
        if arguments[-1] == "empty" and code == 3:
            continue
        assert code in ((2,) if is_suite(arguments) else (1, 2)), (arguments, code, out, err)
        assert err.startswith("error: "), (arguments, err)
        assert "internal" not in err, (arguments, err)


@pytest.mark.skipif(os.name == "nt", reason="signals are sent otherwise there")
@pytest.mark.parametrize("what", ["SIGINT", "SIGTERM"])
def test_a_signal_ends_a_command_at_once(what: str) -> None:
    arguments = ["search", "-r", "[a-z ]*", "-n", "1000000", "--forwards", "100000000"]
    command = [sys.executable, "-m", "formalm", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()  # it is at work
    sent = time.monotonic()
    process.send_signal(getattr(signal, what))
    _, err = process.communicate(timeout=20)
    assert time.monotonic() - sent < 5
    assert process.returncode == (130 if what == "SIGINT" else -signal.SIGTERM)
    assert b"Traceback" not in err
    # The header over the columns may come before the line that names the interruption.
    lines = err.splitlines()
    assert len(lines[1:] if lines and lines[0].split()[-1:] == [b"text"] else lines) <= 1


def test_completion_of_the_shell_can_be_installed_and_lists_choices(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "formalm", "--install-completion", "bash"],
        capture_output=True,
        text=True,
        env=env,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "formalm" in "".join(path.read_text() for path in tmp_path.rglob("*") if path.is_file())
    for words, wanted in (
        ("formalm sea", "search"),
        ("formalm search --event tok", "token_prefix"),
        ("formalm search --dia", "--dialect"),
        ("formalm grammar check --syntax g", "gbnf"),
        ("formalm suite report --format j", "junit"),
        ("formalm sample --target wi", "without_replacement"),
        ("formalm generate --dialect ec", "ecma"),
    ):
        asked = {
            "_FORMALM_COMPLETE": "complete_bash",
            "COMP_WORDS": words,
            "COMP_CWORD": str(len(words.split()) - 1),
        }
        done = subprocess.run(
            [sys.executable, "-m", "formalm"],
            capture_output=True,
            text=True,
            env={**env, **asked},
            check=False,
        )
        assert done.stdout.split() == [wanted], done


def test_help_names_values_in_words_and_groups_options() -> None:
    from typer.testing import CliRunner

    from formalm.cli.app import app

    def helps(arguments: list[str]) -> Iterator[str]:
        yield CliRunner().invoke(app, [*arguments, "--help"], env={"COLUMNS": "100"}).output

    names = {
        tuple(each[:2] if each[:1] in (["grammar"], ["schema"], ["suite"]) else each[:1])
        for each in COMMANDS.values()
        if each and not each[0].startswith("-")
    }
    names |= {("suite", each) for each in ("run", "resume", "verdict", "report", "compare")}
    for name in sorted(names | {()}):
        for text in helps([*name] if "--help" not in name else [*name[:-1]]):
            for word in ("<bool>", "<str>", "<int>", "<float>", "<list[str]>", "<Path>"):
                assert word not in text, (name, word)
    (text,) = helps(["search"])
    for panel in ("Language", "Query", "Model", "Limits", "Files", "Output"):
        assert f"─ {panel} " in text
    for choices in (
        "One of python, python-3.11, python-3.14, ecma or rust.",
        "[complete|token_prefix]",
        "[strings|tokens]",
    ):
        assert choices in " ".join(text.replace("│", " ").split())


def on_a_terminal(arguments: list[str], columns: int = 80) -> bytes:
    """Everything a command writes to a terminal of so many columns, and how it ends."""
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**os.environ, "TERM": "xterm-256color"}
    env.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "formalm", *arguments], stdout=theirs, stderr=theirs, env=env
    )
    os.close(theirs)
    found = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # EIO: the other end is closed
            break
        if not part:
            break
        found += part
    os.close(ours)
    assert process.wait(30) == 0, found
    return found


def shown_on_screen(written: bytes, columns: int = 80) -> tuple[list[str], list[str]]:
    """The lines left in the end, and every state of a line that a result was ever shown in."""
    lines, states, column = [""], [], 0
    text = written.decode()
    at = 0
    while at < len(text):
        if text.startswith("\x1b[2K", at):
            lines[-1], at = "", at + 4
            continue
        one = text[at]
        at += 1
        if one == "\n":
            states.append(lines[-1])
            lines.append("")
            column = 0
        elif one == "\r":
            states.append(lines[-1])
            column = 0
        elif one == "\x1b":
            end = next(k for k in range(at, len(text)) if text[k].isalpha())
            assert text[end] == "m", text[at : end + 1]  # colors only
            at = end + 1
        else:
            lines[-1] = lines[-1][:column].ljust(column) + one + lines[-1][column + 1 :]
            column += 1
            assert column < columns, f"a line wraps: {lines[-1]!r}"
    return lines, states


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_progress_never_shares_a_line_with_a_result() -> None:
    written = on_a_terminal(["search", "-r", "[a-z]{1,3}", "-n", "20"])
    lines, states = shown_on_screen(written)
    results = [line for line in lines if line[:6].strip().isdigit()]
    assert len(results) == 20
    assert all(len(line.split()) == 3 for line in results), results
    for state in states:
        assert not ("forwards" in state and state[:6].strip().isdigit()), state
    assert any("forwards in" in state for state in states[:-2])
    assert not any("forwards" in line for line in lines[:-2])


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
def test_a_suite_shows_one_bar_on_a_terminal_and_a_line_an_item_in_a_log(tmp_path: Path) -> None:
    text = SUITE.partition("[queries.told]")[0].replace("é∀", "words").replace('"é"', '"woman"')
    text = text.replace("{word}", "{word} was trained in {field}.")
    text = text.replace("[templates]", 'field = ["art", "science"]\n\n[templates]')
    text += (
        '[queries.told]\nask = "table"\nevent = "complete"\neach = ["word"]\n\n[metrics.apart]\n'
        'kind = "total_variation"\nquery = "told"\nbetween = "word"\nof = "field"\n'
    )
    (tmp_path / "two.toml").write_text(text, encoding="utf-8")
    command = ["suite", "run", str(tmp_path / "two.toml")]
    written = on_a_terminal([*command, str(tmp_path / "shown")])
    lines, states = shown_on_screen(written)
    assert any(state.startswith("[####################] 2/2") for state in states)
    assert [line for line in lines if line] == ["pass: two.words, 2/2 items"]
    done = subprocess.run(
        [sys.executable, "-m", "formalm", *command, str(tmp_path / "logged")],
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[0] for line in done.stderr.splitlines()] == ["1/2", "2/2"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals")
@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "-r"],
        ["generate", "-r"],
        ["generate", "-n", "2", "-r"],
        ["sample", "--event", "complete", "-r"],
    ],
    ids=" ".join,
)
def test_control_characters_are_written_into_pipes_and_shown_on_terminals(
    arguments: list[str],
) -> None:
    pattern = "a\\x1b\\[31mb\\x1b\\]0;t\\x07\\u202e\\x9b31m\\x7f"
    wanted = pattern.replace("\\[", "[").replace("\\]", "]").encode().decode("unicode_escape")
    done = subprocess.run(
        [sys.executable, "-m", "formalm", *arguments, pattern], capture_output=True, check=True
    )
    assert wanted.encode() in done.stdout
    shown = on_a_terminal([*arguments, pattern]).decode()
    if arguments[0] in ("search", "sample"):
        # The progress line is cleared by a sequence of our own.
        shown = shown.replace("\r\x1b[2K", "")
    assert not any(ord(one) < 32 and one not in "\r\n" for one in shown), repr(shown)
    assert not any(one in shown for one in "\u202e\x9b\x7f")
    assert repr(wanted)[1:-1] in shown


@pytest.mark.parametrize(
    "command", [["score", "a", "b"], ["sample", "-r", "a|b", "--event", "complete", "-n", "2"]]
)
def test_headers_of_number_columns_do_not_reach_stdout(command: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "formalm", *command], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == 2
    assert "logprob" in done.stderr.splitlines()[0]
    assert "text" in done.stderr.splitlines()[0]


def test_an_undecided_distortion_suggests_the_next_step() -> None:
    command = [
        "distortion",
        "-r",
        "[0-9]{3}-[0-9]{4}",
        "--event",
        "complete",
        "--draws",
        "20",
        "--seed",
        "1",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "formalm", *command], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "not decided: " in done.stdout
    assert "more draws" in done.stdout
    decided = subprocess.run(
        [sys.executable, "-m", "formalm", "distortion", "-r", "a|b", "--event", "complete"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "not decided" not in decided.stdout
