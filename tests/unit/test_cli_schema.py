"""``formalm schema check`` and ``formalm schema sample``."""

import json
from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")

from formalm import JsonSchema, TypeScript  # noqa: E402
from formalm.cli.app import app  # noqa: E402


def run(*arguments: str):
    return typer_testing.CliRunner().invoke(app, ["schema", *arguments])


def written(folder: Path, schema: object, name: str = "schema.json") -> str:
    file = folder / name
    file.write_text(schema if isinstance(schema, str) else json.dumps(schema), encoding="utf-8")
    return str(file)


SCHEMA = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "anyOf": [
        {"type": "string", "format": "color"},
        {"allOf": [{"type": "null"}, {"type": "string"}]},
        {"type": "array", "items": {"$ref": "#/definitions/never"}},
    ],
    "definitions": {"never": {"minLength": 2, "maxLength": 1, "type": "string"}},
}


def test_the_schema_command_summarizes_a_schema(tmp_path: Path) -> None:
    shown = run("check", written(tmp_path, SCHEMA))
    assert shown.exit_code == 0, shown.output
    lines = shown.stdout.splitlines()
    assert lines[:5] == [
        "http://json-schema.org/draft-07/schema#",
        "exact",
        "first byte, and a shortest instance that begins with it:",
        '\'"\'      ""',
        "'['      []",
    ]
    assert 'note: #/anyOf/0/format: the format "color" is unknown and is not enforced' in lines
    assert [line for line in lines if line.startswith("unsatisfiable: ")] == [
        "unsatisfiable: #/anyOf/1 has no instance",
        "unsatisfiable: #/anyOf/2/items has no instance",
        "unsatisfiable: #/definitions/never has no instance",
    ]
    told = json.loads(run("check", written(tmp_path, SCHEMA), "--json").stdout)
    assert told["exact"] is True
    assert told["complete"] is True
    assert told["examples"] == ['""', "[]"]
    assert told["unsatisfiable"] == ["#/anyOf/1", "#/anyOf/2/items", "#/definitions/never"]


def test_a_schema_that_is_refused_is_no_success(tmp_path: Path) -> None:
    text = {"type": "string"}
    dead = {"prefixItems": [text, text], "uniqueItems": True, "contains": {"const": "a"}}
    file = written(tmp_path, dead)
    assert JsonSchema(dead, approximate=True).notes[0].effect != "exact"
    shown = run("check", file)
    assert shown.exit_code == 3
    assert "not exact: refused without approximate=True" in shown.stdout.splitlines()
    told = run("check", file, "--json")
    assert told.exit_code == 3
    assert json.loads(told.stdout)["exact"] is False


def test_the_draft_is_reported(tmp_path: Path) -> None:
    def told(schema: object) -> object:
        return json.loads(run("check", written(tmp_path, schema), "--json").stdout)["draft"]

    assert told({"type": "null"}) == "https://json-schema.org/draft/2020-12/schema"
    assert told({"$schema": SCHEMA["$schema"], "type": "null"}) == SCHEMA["$schema"]
    assert told(True) == "https://json-schema.org/draft/2020-12/schema"


def test_instances_are_drawn(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"é": {"enum": ["ü", "x"]}}, "required": ["é"]}
    file = written(tmp_path, schema)
    drawn = run("sample", file, "-n", "20", "--seed", "1").stdout.splitlines()
    assert drawn == JsonSchema(schema, max_whitespace=0).sample(20, seed=1)
    again = run("sample", file, "-n", "3", "--seed", "1", "--json").stdout.splitlines()
    assert [json.loads(line) for line in again] == drawn[:3]
    short = run("sample", file, "-n", "2", "--random-bytes", "0").stdout.splitlines()
    assert short == ['{"é":"x"}'] * 2
    typed = written(tmp_path, "interface A { a: 1 | 2; rest: A[] }", "a.ts")
    for line in run("sample", typed, "-n", "5", "--seed", "2").stdout.splitlines():
        assert TypeScript("interface A { a: 1 | 2; rest: A[] }").accepts(line)
    assert run("check", typed).exit_code == 0


def test_resources_are_files(tmp_path: Path) -> None:
    part = written(tmp_path, {"const": "part"}, "part.json")
    whole = written(tmp_path, {"$ref": "https://a.b/part?x=1"})
    given = run("sample", whole, "--resource", f"https://a.b/part?x=1={part}", "--seed", "1")
    assert given.stdout == '"part"\n'
    assert run("sample", whole).exit_code == 1
    assert run("sample", whole, "--resource", "part").exit_code == 2


def test_mistakes_are_messages(tmp_path: Path) -> None:
    wrong = run("check", written(tmp_path, {"type": "thing"}))
    assert wrong.exit_code == 1
    assert "#/type" in wrong.stderr
    assert run("check", written(tmp_path, {"allOf": [False]})).exit_code == 1
    assert run("check", written(tmp_path, "{")).exit_code == 1
    assert run("check", str(tmp_path / "absent.json")).exit_code == 2
    assert run("sample", str(tmp_path / "absent.ts")).exit_code == 2
    file = written(tmp_path, {})
    assert run("sample", file, "-n", "-1").exit_code == 2
    assert run("sample", file, "--property-order", "best").exit_code == 2
