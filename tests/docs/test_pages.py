"""The pages of docs/ and the examples run: every block alone, every script as a user would."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted((ROOT / "docs").glob("**/*.md"))
SCRIPTS = sorted((ROOT / "examples").glob("[!_]*.py"))


def blocks() -> list[object]:
    """Return every block with a name that leads to its line."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in FENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 2
            name = f"{page.relative_to(ROOT).as_posix()}:{line}"
            found.append(pytest.param(name, match[1], id=name))
    return found


@pytest.mark.parametrize(("name", "code"), blocks())
def test_a_block_runs_by_itself(name: str, code: str, capsys: pytest.CaptureFixture[str]) -> None:
    if ">>>" in code:
        test = doctest.DocTestParser().get_doctest(code, {"__name__": "page"}, name, name, 0)
        result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test)
        assert result.failed == 0, capsys.readouterr().out
        assert result.attempted > 0
    else:
        program = compile(code, name, "exec", dont_inherit=True)  # a reader has no future imports
        exec(program, {"__name__": "page"})  # noqa: S102


def test_the_readme_shows_what_its_first_block_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Texts must be equal; probabilities may differ in the last digit between machines."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```text\n(.*?)^```$", readme, re.MULTILINE | re.DOTALL)
    exec(compile(FENCE.findall(readme)[0], "README.md", "exec"), {})  # noqa: S102
    printed = capsys.readouterr().out
    number = re.compile(r"-\d+\.\d\d")
    assert number.sub("x", shown) == number.sub("x", printed), printed
    pairs = zip(number.findall(shown), number.findall(printed), strict=True)
    assert all(abs(float(a) - float(b)) < 0.02 for a, b in pairs), printed


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_an_example_runs(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_an_example_is_short_and_on_its_page(script: Path) -> None:
    page = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    assert script.name in page
    if script.name != "demo.py":
        assert len(script.read_text(encoding="utf-8").splitlines()) <= 60
