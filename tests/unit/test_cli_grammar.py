"""``formalm grammar check``."""

import json
from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")

from formalm import Literal, Regex  # noqa: E402
from formalm.cli.app import app  # noqa: E402
from formalm.languages.overview import Overview, overview  # noqa: E402


def run(*arguments: str):
    return typer_testing.CliRunner().invoke(app, ["grammar", "check", *arguments])


def test_a_grammar_is_told_about(tmp_path: Path) -> None:
    file = tmp_path / "nested.lark"
    file.write_text('start: "(" start ")" | "x" |\nspare: "y"\n', encoding="utf-8")
    shown = run(str(file))
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "lark, lexemes: longest",
        "the empty text is a member",
        "'('      '()'",
        "'x'      'x'",
        "note: line 2: the rule spare is not needed by the start rule",
    ]
    told = json.loads(run(str(file), "--json", "--lexing", "any").stdout)
    assert told["lexing"] == "any"
    assert told["empty_is_member"] is True
    assert (told["first_bytes"], told["examples"]) == ([40, 120], ["()", "x"])
    assert [note["line"] for note in told["notes"]] == [2]


def test_the_name_of_a_file_says_its_syntax(tmp_path: Path) -> None:
    file = tmp_path / "digits.gbnf"
    file.write_text('root ::= [0-1] | "é" tail\ntail ::= "" | "a"\n', encoding="utf-8")
    assert run(str(file)).stdout.splitlines() == [
        "gbnf, lexemes: any",
        "'0'      '0'",
        "'1'      '1'",
        "byte c3  'é'",
    ]
    assert run(str(file), "--start", "tail").stdout.splitlines()[1] == "the empty text is a member"
    assert run(str(file), "--syntax", "lark").exit_code == 1


def test_mistakes_are_messages(tmp_path: Path) -> None:
    file = tmp_path / "wrong.lark"
    file.write_text("start: item\n", encoding="utf-8")
    wrong = run(str(file))
    assert wrong.exit_code == 1
    assert "line 1: item is not defined" in wrong.stderr
    assert run(str(tmp_path / "absent.lark")).exit_code == 2
    assert run(str(file), "--lexing", "best").exit_code == 2


def test_any_language_has_an_overview() -> None:
    assert overview(Regex("a+|b")) == Overview(False, b"ab", ("a", "b"))
    assert overview(Literal(b"\xff")) == Overview(False, b"\xff", (b"\xff",))
