"""Pages about internals: every path and name in backticks exists, and no page is too long."""

from __future__ import annotations

import os
import re
from functools import cache
from itertools import product
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "DESIGN.md", *sorted((ROOT / "docs" / "internals").glob("*.md"))]
READMES = sorted((ROOT / "crates").glob("*/README.md"))
FOLDERS = "crates docs examples experiments python testdata tests".split()
SKIPPED = {"__pycache__", "target", "node_modules"}
MAX_LINES = 250

#: Names of other projects' code.
EXTERNAL = {"OnceLock", "LazyLock", "pthread_atfork"}

#: Folders that a source distribution leaves out.
OUTSIDE = ("benches/", "records/", "fuzz/")

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
PATH = re.compile(r"[\w.{},-]+(?:/[\w.{},-]+)*/?")
DOTTED = re.compile(r"formalm(?:\.[a-z_]\w*)+")
TYPE = re.compile(r"([A-Z]\w*[a-z]\w*)(?:(?:::|\.)(\w+))?(?:\(.*\))?")
WORD = re.compile(r"_?[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+")
DECLARED = re.compile(
    r"^[ ]*(?:pub(?:\([a-z:]+\))? )?(?:(?:struct|enum|trait|type|class) )?([A-Z]\w*)", re.MULTILINE
)


@cache
def known_paths() -> frozenset[str]:
    """All files and folders, each by every tail of its path."""
    files = [one.name for one in ROOT.iterdir() if one.is_file()]
    for folder in FOLDERS:
        for place, folders, names in os.walk(ROOT / folder):
            folders[:] = [one for one in folders if one not in SKIPPED]
            at = Path(place).relative_to(ROOT).as_posix()
            files += [at, *(f"{at}/{name}" for name in names)]
    tails = set()
    for file in files:
        parts = file.split("/")
        tails.update("/".join(parts[start:]) for start in range(len(parts)))
    return frozenset(tails)


@cache
def sources() -> str:
    files = [*(ROOT / "crates").glob("*/src/**/*.rs"), *(ROOT / "python").glob("**/*.py*")]
    code = [file for file in files if file.suffix in {".rs", ".py", ".pyi"}]
    return "\n".join(file.read_text(encoding="utf-8") for file in code)


@cache
def declared() -> frozenset[str]:
    """Types and variants: names that begin a line, after a keyword or alone."""
    return frozenset(DECLARED.findall(sources()))


@cache
def occurs(name: str) -> bool:
    return name in sources()


def expand(braces: str) -> list[str]:
    """Expands ``a/{b,c}`` as a shell does."""
    parts = re.split(r"\{([^}]*)\}", braces)
    choices = [one.split(",") if at % 2 else [one] for at, one in enumerate(parts)]
    return ["".join(one) for one in product(*choices)]


def is_path(span: str) -> bool:
    if not PATH.fullmatch(span):
        return False
    return span.endswith((".rs", ".py", ".md", ".toml", "/")) or (
        "/" in span and span[0].islower() and not re.fullmatch(r"\w/\w", span)
    )


def missing(span: str) -> list[str]:
    """The names in a span of code that do not exist."""
    if is_path(span):
        paths = (one for one in expand(span) if not one.startswith(OUTSIDE))
        return [one for one in paths if one.rstrip("/") not in known_paths()]
    if DOTTED.fullmatch(span):
        name = span.replace(".", "/")
        found = any(f"python/{name}{end}" in known_paths() for end in ("", ".py", ".pyi"))
        last = span.rpartition(".")[2]
        return [] if found or occurs(last) else [span]
    if match := TYPE.fullmatch(span):
        names = [match[1]] if match[1] not in declared() | EXTERNAL else []
        return names + ([match[0]] if match[2] and not occurs(match[2]) else [])
    if WORD.fullmatch(span):
        return [] if span in EXTERNAL or occurs(span) else [span]
    return []


@pytest.mark.parametrize(
    "page", [*PAGES, *READMES], ids=lambda page: page.relative_to(ROOT).as_posix()
)
def test_every_path_and_name_of_a_page_exists(page: Path) -> None:
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    spans = (" ".join(one.split()) for one in SPAN.findall(text))
    assert [name for span in spans for name in missing(span)] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    links = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_a_figure_and_at_most_250_lines(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MAX_LINES
    assert "```text\n" in text


def test_names_that_do_not_exist_are_found() -> None:
    for span in ("no/such.rs", "NoSuchType", "Machine::no_such", "no_such_name", "formalm.nosuch"):
        assert missing(span), span
    for span in ("machine/mod.rs", "Machine::step", "Matcher.bitmask()", "formalm.query"):
        assert not missing(span), span
