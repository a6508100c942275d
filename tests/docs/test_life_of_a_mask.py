"""The page about the life of a mask lists the files that an instrumented build executes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.support.executed_files import calls_by_function, functions
from tests.support.instrumented_build import ROOT, instrumented_extension, run_with_extension

PAGE = ROOT / "docs" / "internals" / "life-of-a-mask.md"

#: Outside the lists: the ground, the binding, and what every module of the package imports.
OUTSIDE = (
    "crates/formalm-core/",
    "crates/formalm-regex/",
    "crates/formalm-automata/",
    "crates/formalm-python/",
    "python/formalm/argument_checks.py",
    "python/formalm/automata/text_of_bytes.py",
    "python/formalm/errors",
    "python/formalm/_",
)
#: The part of the executed lines that the listed files hold.
SHARE = 0.5
#: How far the numbers may drift before the page is written anew.
SLACK = 0.1

BEGIN = """
import json, sys
from formalm import Constraint, JsonSchema, Regex, Vocabulary, generate
from formalm.models.canary import canary

model = canary()
vocabulary = model.vocabulary
executed = set()


def trace(frame, event, argument):
    executed.add(frame.f_code)


def follow(language, text):
    matcher = Constraint(language, vocabulary).matcher()
    for token in vocabulary.encode(text):
        matcher.mask()
        matcher.advance(token)


"""
WARM_UP = 'follow(["x"], "x")\n'
END = """
sys.settrace(None)
lines = [
    (code.co_filename, sorted({line for *_, line in code.co_lines() if line}))
    for code in executed
    if code.co_name != "<module>"
]
print(json.dumps(lines))
"""

#: What each section of the page follows, and the maximum number of files.
WALKS = {
    "pattern": ('follow(Regex("[a-z]{1,1000}[0-9]{2}"), "ab")', 12),
    "schema": (
        """
schema = {
    "type": "object",
    "properties": {"age": {"type": "integer", "minimum": 18}},
    "required": ["age"],
    "additionalProperties": False,
}
follow(JsonSchema(schema), '{"age": 17')
""",
        25,
    ),
    "generation": ('generate(model, "the", Regex(" [a-z]+"), max_tokens=4, seed=1)', 20),
}


def listed(walk: str) -> tuple[list[str], int]:
    """The list of a walk on the page, and the number of all files that it executes."""
    head = rf"^```text\n(\d+) of (\d+) files of the {walk}\n(.*?)^```"
    block = re.search(head, PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert block, f"the page has no list of the {walk}"
    files: list[str] = []
    for line in block[3].splitlines():
        folder, _, names = line.partition(": ")
        files += [f"{folder}/{name}" for name in names.split()]
    assert len(files) == int(block[1])
    return files, int(block[2])


def executed_lines(walk: str, library: Path, folder: Path) -> dict[str, int]:
    """Returns the number of lines that a walk executes of each file, the largest first.

    A function counts whole. One that the warm-up executes as often does not count.
    """
    calls, python = [], []
    for program in ("", WALKS[walk][0]):
        code = f"{BEGIN}{WARM_UP}\nsys.settrace(trace)\n{program}\n{END}"
        ended, profile = run_with_extension(library, folder, code)
        python = json.loads(ended.stdout.splitlines()[-1])
        calls.append(calls_by_function(profile))
    before, after = calls
    places = functions(library)
    lines: dict[str, set[int]] = {}
    for name, count in after.items():
        if count > before.get(name, 0) and name in places:
            file, first, last = places[name]
            lines.setdefault(file, set()).update(range(first, last + 1))
    for file, executed in python:
        lines.setdefault(file, set()).update(executed)
    found: dict[str, int] = {}
    for file, executed in lines.items():
        place = file.replace(f"{folder}/", "python/", 1).removeprefix(f"{ROOT}/")
        if place.startswith(("crates/", "python/formalm/")) and not place.startswith(OUTSIDE):
            found[place] = len(executed)
    return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))


@pytest.mark.parametrize("walk", WALKS)
def test_the_lists_of_the_page_are_those_of_an_instrumented_build(
    walk: str, tmp_path: Path
) -> None:
    lines = executed_lines(walk, instrumented_extension(), tmp_path)
    files, total = listed(walk)
    table = "\n".join(f"{count:5} {file}" for file, count in lines.items())
    assert set(files) <= set(lines), table
    assert sum(lines[file] for file in files) >= (SHARE - SLACK / 2) * sum(lines.values()), table
    least = min(lines[file] for file in files)
    others = [count for file, count in lines.items() if file not in files]
    assert max(others) <= (1 + SLACK) * least, table
    assert abs(total - len(lines)) <= SLACK * len(lines), table


@pytest.mark.parametrize("walk", WALKS)
def test_a_list_is_short(walk: str) -> None:
    assert len(listed(walk)[0]) <= WALKS[walk][1]
