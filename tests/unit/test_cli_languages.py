"""Languages in files on the command line: schemas, types and grammars."""

import json
from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")

from formalm import Grammar, JsonSchema  # noqa: E402
from formalm.cli.app import app  # noqa: E402

SCHEMA = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
LARK = 'start: "(" start ")" | "x"\n'


def run(*arguments: object):
    return typer_testing.CliRunner().invoke(app, [str(one) for one in arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    closed = {**SCHEMA, "additionalProperties": False}
    (tmp_path / "a.json").write_text(json.dumps(closed))
    (tmp_path / "a.ts").write_text('{ a: "x" | "y" }')
    (tmp_path / "a.lark").write_text(LARK)
    (tmp_path / "a.gbnf").write_text('root ::= "(" root ")" | "x"\n')
    (tmp_path / "a.ebnf").write_text('start = "(", start, ")" | "x";\n')
    return tmp_path


@pytest.mark.parametrize("name", ["a.json", "a.ts"])
def test_schemas_in_files(folder: Path, name: str) -> None:
    done = run("generate", "the", "--schema", folder / name, "--seed", "1")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["a"] in ("x", "y")
    assert JsonSchema({**SCHEMA, "additionalProperties": False}).matches(done.stdout.strip())


@pytest.mark.parametrize("name", ["a.lark", "a.gbnf", "a.ebnf"])
def test_grammars_in_files(folder: Path, name: str) -> None:
    done = run("search", "--grammar", folder / name, "-n", "3", "--json")
    assert done.exit_code == 0, done.output
    texts = [json.loads(line)["text"] for line in done.stdout.splitlines()[:-1]]
    assert len(texts) == 3
    assert all(Grammar(LARK).matches(text) for text in texts)
    shown = run("mask", "((", "--grammar", folder / name, "--json")
    assert shown.exit_code == 0, shown.output


def test_several_are_a_union(folder: Path) -> None:
    options = ("--schema", folder / "a.ts", "--grammar", folder / "a.lark", "-c", "never")
    found = run("search", *options, "-n", "5", "--json")
    assert found.exit_code == 0, found.output
    texts = {json.loads(line)["text"] for line in found.stdout.splitlines()[:-1]}
    assert {"never", "x"} <= texts


def test_unreadable_files_are_reported(folder: Path) -> None:
    for option in ("--schema", "--grammar"):
        missing = run("generate", option, folder / "none.json")
        assert missing.exit_code in (1, 2)
        assert "none.json" in missing.output
    wrong = run("generate", "--grammar", folder / "a.json")
    assert wrong.exit_code == 1
    assert "line 1" in wrong.output
    (folder / "b.json").write_text('{"type": 3}')
    assert "type" in run("mask", "--schema", folder / "b.json").output
