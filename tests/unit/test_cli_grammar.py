"""``formalm grammar check``."""

import json
from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")

from formalm import Regex, StringLiteral  # noqa: E402
from formalm.cli.app import app  # noqa: E402
from formalm.languages.first_bytes_summary import Overview, overview  # noqa: E402


def run(*arguments: str, command: str = "check"):
    return typer_testing.CliRunner().invoke(app, ["grammar", command, *arguments])


def test_the_grammar_command_summarizes_a_grammar(tmp_path: Path) -> None:
    file = tmp_path / "nested.lark"
    file.write_text('start: "(" start ")" | "x" |\nspare: "y"\n', encoding="utf-8")
    shown = run(str(file))
    assert shown.exit_code == 0
    assert shown.stdout.splitlines() == [
        "notation lark, lexing longest",
        "the empty string is a member",
        "first byte, and a shortest member that begins with it:",
        "'('      '()'",
        "'x'      'x'",
        "members by length, 0 to 8 bytes: 1, 1, 1, 1, 1, 1, 1, 1, 1",
        "ambiguity: none, each member has exactly one parse tree",
        "note: line 2: the rule spare is unreachable from the start rule",
    ]
    told = json.loads(run(str(file), "--json", "--lexing", "any").stdout)
    assert told["lexing"] == "any"
    assert told["empty_is_member"] is True
    assert (told["first_bytes"], told["examples"]) == ([40, 120], ["()", "x"])
    assert [note["line"] for note in told["notes"]] == [2]


def test_the_indentation_option_is_needed_for_indented_grammars(tmp_path: Path) -> None:
    file = tmp_path / "outline.lark"
    file.write_text(
        "start: item+\nitem: /[a-z]/ [list] _NEWLINE [_INDENT item+ _DEDENT]\n"
        'list: "(" ")"\n_NEWLINE: /(\\n[ ]*)+/\n%declare _INDENT _DEDENT\n',
        encoding="utf-8",
    )
    refused = run(str(file))
    assert refused.exit_code == 1
    assert "indentation=" in refused.output
    shown = run(str(file), "--indentation", "python", "--brackets", "()")
    assert shown.exit_code == 0
    assert "'a'" in shown.stdout
    drawn = run(str(file), "--indentation", "lark", "--brackets", "()", "--json", command="sample")
    assert drawn.exit_code == 0
    for brackets, code, message in [("(", 2, "pairs"), ("()[]", 1, "refers to the terminal [")]:
        wrong = run(str(file), "--indentation", "python", "--brackets", brackets)
        assert wrong.exit_code == code
        assert message in wrong.output
    unknown = run(str(file), "--indentation", "tabs")
    assert unknown.exit_code == 2


def test_the_file_extension_selects_the_syntax(tmp_path: Path) -> None:
    file = tmp_path / "digits.gbnf"
    file.write_text('root ::= [0-1] | "é" tail\ntail ::= "" | "a"\n', encoding="utf-8")
    assert run(str(file)).stdout.splitlines() == [
        "notation gbnf, lexing any",
        "first byte, and a shortest member that begins with it:",
        "'0'      '0'",
        "'1'      '1'",
        "byte c3  'é'",
        "members by length, 0 to 8 bytes: 0, 2, 1, 1, 0, 0, 0, 0, 0",
        "ambiguity: none, each sequence of lexemes has exactly one parse tree",
    ]
    assert (
        run(str(file), "--start", "tail").stdout.splitlines()[1] == "the empty string is a member"
    )
    assert run(str(file), "--syntax", "lark").exit_code == 1


def test_members_are_counted_within_a_time_limit(tmp_path: Path) -> None:
    file = tmp_path / "words.lark"
    file.write_text('start: (/[a-z]{1,3}/ | /[0-9]{1,3}/ | "(" start ")")+\n', encoding="utf-8")
    wide = tmp_path / "wide.lark"
    wide.write_text('start: ("a" | "b" start "c" | start "d" start)\n', encoding="utf-8")
    heavy = tmp_path / "heavy.lark"
    heavy.write_text('start: a{"a"} | a{"b"}\na{x}: /[c-x]/ | x start x start', encoding="utf-8")
    for one in (file, wide, heavy):
        counts = json.loads(run(str(one), "--json").stdout)["counts"]
        most = str(len(counts) - 1)
        told = run(str(one), "--max-bytes", most, "--json", command="count").stdout
        assert json.loads(told)["counts"] == counts
    assert json.loads(run(str(wide), "--json").stdout)["counts"][:6] == [0, 1, 0, 2, 0, 5]


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
    assert overview(StringLiteral(b"\xff")) == Overview(False, b"\xff", (b"\xff",))


def test_ambiguity_and_rules_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "sum.lark"
    file.write_text('start: start "+" start | [item]\nitem: "1" | "2"\n', encoding="utf-8")
    shown = run(str(file), "--rules").stdout
    assert "ambiguity: some members have several parse trees" in shown
    assert "start may end here, or something goes on; " in shown
    assert 'rule start: begins with "+", "1", "2"; may be empty' in shown
    assert 'rule item: begins with "1", "2"' in shown
    told = json.loads(run(str(file), "--json").stdout)
    assert told["ambiguity"]["certain"] is True
    assert told["ambiguity"]["conflicts"][0]["rules"] == ["start"]
    assert told["rules"][1] == {
        "name": "item",
        "line": 2,
        "begins_with": ['"1"', '"2"'],
        "may_be_empty": False,
    }


def test_rules_are_drawn_into_a_file(tmp_path: Path) -> None:
    file, picture = tmp_path / "nested.lark", tmp_path / "nested.svg"
    file.write_text('start: "(" start ")" | word\nword: "x"\n', encoding="utf-8")
    assert run(str(file), "--output", str(picture), command="diagram").exit_code == 0
    assert picture.read_text(encoding="utf-8").startswith("<svg")
    one = run(str(file), "--rule", "word", command="diagram").stdout
    assert "<desc>1 rule</desc>" in one
    assert run(str(file), "--rule", "none", command="diagram").exit_code == 2
    limited = run(str(file), "--part-limit", "1", command="diagram")
    assert "the limit is 1" in limited.output
    assert run(str(file), "--part-limit", "100", command="diagram").exit_code == 0
    missing = str(tmp_path / "none" / "a.svg")
    assert run(str(file), "--output", missing, command="diagram").exit_code == 2


def test_members_are_counted_and_drawn(tmp_path: Path) -> None:
    file = tmp_path / "nested.lark"
    file.write_text('start: ("(" start ")")*\n', encoding="utf-8")
    assert run(str(file), "--max-bytes", "4", command="count").stdout.splitlines() == [
        "    0  1",
        "    1  0",
        "    2  1",
        "    3  0",
        "    4  2",
    ]
    told = run(str(file), "--max-bytes", "6", "--json", command="count").stdout
    assert json.loads(told) == {"counts": [1, 0, 1, 0, 2, 0, 5]}
    trees = run(str(file), "--max-bytes", "30", "--json", "--trees", command="count").stdout
    assert json.loads(trees)["counts"][30] == 9694845
    endless = tmp_path / "endless.lark"
    endless.write_text('start: start | "a"\n', encoding="utf-8")
    lines = run(str(endless), "--max-bytes", "1", "--trees", command="count").stdout.splitlines()
    assert lines == ["    0  0", "    1  infinitely many"]
    refused = run(str(file), "--trees", "--state-limit", "3", command="count")
    assert refused.exit_code == 2
    for bound in ((), ("--max-bytes", "10")):
        drawn = run(str(file), "-n", "3", "--seed", "1", "--json", *bound, command="sample").stdout
        texts = [json.loads(one)["text"] for one in drawn.splitlines()]
        assert [set(text) <= set("()") for text in texts] == [True] * 3
    few = run(str(file), "--max-bytes", "9", "--state-limit", "2", command="sample")
    assert few.exit_code == 1
    assert run(str(file), "--state-limit", "2", command="sample").exit_code == 2


def test_alternatives_that_are_never_used_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "calls.lark"
    file.write_text(
        'start: param* | "x"\nparam: "<p>\\n" VAL "\\n</p>\\n"\nVAL: /[^<]+/\n', encoding="utf-8"
    )
    assert "note: line 2: the rule param can never be used" in run(str(file)).stdout
    (note,) = json.loads(run(str(file), "--json").stdout)["notes"]
    assert note["line"] == 2
    assert "cannot follow VAL" in note["message"]
