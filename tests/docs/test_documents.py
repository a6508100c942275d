"""The page on the five documents: every row names what exists, every command runs."""

from __future__ import annotations

import importlib
import re
import shlex
import subprocess
import sys
from collections import ChainMap
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from formalm import Regex
from formalm.reference.outlines import CharacterMachine, map_states_to_vocabulary
from formalm.reference.partial_match import allowed_tokens
from tests.support.notebooks import SEEDS, plain
from tests.support.processes import formalm

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "documents.md"
STATUSES = ("runs", "corrected", "canary", "measured", "not measured", "planned", "not here")
SPAN = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\]\(([^)]+)\)")


@dataclass(frozen=True)
class Row:
    """A row of a table of claims."""

    claim: str
    here: str
    status: str
    checked: str


def rows() -> list[Row]:
    found = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == 4 and cells[0] not in ("claim, figure or program", "---"):
            found.append(Row(*(cell.replace("\\|", "|") for cell in cells)))
    return found


ROWS = rows()
COMMANDS = sorted(
    {
        span
        for row in ROWS
        for span in SPAN.findall(row.here)
        if span.startswith(("formalm ", "python "))
    }
)


def test_the_page_has_every_document() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("| claim, figure or program |") == 5
    assert len(ROWS) > 50


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.claim[:60])
def test_a_row_names_what_exists(row: Row) -> None:
    assert row.status.startswith(STATUSES)
    for link in LINK.findall(row.here):
        assert (PAGE.parent / link).exists(), link
    spans = SPAN.findall(row.here)
    nothing = row.status.startswith(("planned", "not"))
    assert spans or LINK.findall(row.here) or nothing, row.claim
    for span in spans:
        if span.startswith("records/"):
            assert (ROOT / span).exists() or not (ROOT / "records").exists(), span
        elif span.startswith("formalm.") and " " not in span:
            module = span
            try:
                importlib.import_module(module)
            except ModuleNotFoundError:
                module, _, name = span.rpartition(".")
                assert hasattr(importlib.import_module(module), name), span
        else:
            assert span in COMMANDS, span
    assert row.checked != "–" or row.status.startswith(("planned", "not", "measured")), row.claim
    for span in SPAN.findall(row.checked):
        file, _, name = span.partition("::")
        source = (ROOT / file).read_text(encoding="utf-8")
        assert not name or f"\ndef {name}(" in source, span


@pytest.mark.parametrize(
    ("title", "document"),
    [
        ("ReLM", "000_*"),
        ("Outlines, the article", "001_*"),
        ("Outlines, the paper", "002_*"),
        ("Syntactically Constrained Sampling", "004_*"),
    ],
    ids=["relm", "article", "paper", "readme"],
)
def test_quotations_are_the_documents_own_words(title: str, document: str) -> None:
    if not SEEDS.exists():
        pytest.skip("the documents are not there")
    (path,) = SEEDS.glob(document)
    words = plain(path.read_text(encoding="utf-8"))
    text = PAGE.read_text(encoding="utf-8").partition(f"## {title}\n")[2].partition("\n## ")[0]
    claims = "\n".join(line.split("|")[1] for line in text.splitlines() if line.startswith("|"))
    quoted = re.findall(r'"([^"]+)"', claims)
    assert len(quoted) >= 2
    for quotation in quoted:
        assert plain(quotation) in words, quotation


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("formalm ")])
def test_a_command_of_the_page_runs(command: str) -> None:
    done = formalm(*shlex.split(command)[1:], env={"OPENBLAS_NUM_THREADS": "1"})
    if "--trace ab" in command:  # viable, and no member
        assert done.code == 3
        assert "some member continues" in done.stdout
    elif done.code == 3:  # sampled text that does not end by itself
        assert "cut short: --max-tokens reached" in done.stderr
    else:
        done.check()
        assert done.stdout


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.startswith("python ")])
def test_a_program_of_the_page_exists(command: str) -> None:
    """Examples run in another test, and experiments in theirs, because they take minutes."""
    words = shlex.split(command)
    if words[1] != "-m" or words[2] == "pytest":
        assert (ROOT / words[-1]).exists()
        return
    known = set(re.findall(r"[\w-]+", help_of(words[2])))
    for word in words[3:]:
        assert re.sub(r"^(figure|table)(\d)", r"\1_\2", word) in known, word


@cache
def help_of(program: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", program, "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        cwd=ROOT,
    )
    return done.stdout


def test_the_articles_first_program_prints_the_same() -> None:
    """Its seed, its vocabulary, its pattern: it prints 1.211."""
    numbers = np.random.RandomState(30217)  # the article's generator
    vocabulary = ["a", ".", ".2", "1"]
    completion = ""
    for _ in range(4):
        allowed = allowed_tokens(r"[0-9]+\.[0-9]+", vocabulary, completion)
        weights = np.array([token in allowed for token in vocabulary], dtype=float)
        completion += vocabulary[numbers.choice(4, p=weights / weights.sum())]
    assert completion == "1.211"


class Fsm:
    """interegular's automaton of the article, as it is printed there."""

    initial = 0
    finals = frozenset({4, 5})
    map = {0: {0: 1, 2: 2}, 1: {0: 3, 2: 2}, 2: {0: 4}, 3: {0: 3, 2: 2}, 4: {0: 5}, 5: {0: 5}}  # noqa: RUF012

    @staticmethod
    def alphabet(symbol: str) -> int:
        return 2 if symbol == "." else 0 if symbol.isdigit() else 1


def partial_match(
    transitions: dict[int, int], token: str, rows: dict[int, dict[int, int]]
) -> tuple[int, ...] | None:
    """The article's function; `rows` are those that it leaves out."""
    state = Fsm.initial
    fsm_map = ChainMap({Fsm.initial: transitions}, rows)
    traversed: tuple[int, ...] = ()
    i = 0
    for i, symbol in enumerate(token):
        kind = Fsm.alphabet(symbol)
        if not (state in fsm_map and kind in fsm_map[state]):
            if state in Fsm.finals:
                i -= 1  # noqa: PLW2901 - as printed
                break
            return None
        state = fsm_map[state][kind]
        traversed += (state,)
    if state not in Fsm.finals and state == Fsm.initial:
        return None
    return traversed if i >= len(token) - 1 else None


def test_the_articles_index_as_printed_and_corrected() -> None:
    """As printed, no token of two symbols is found from any state; corrected, it is the index."""
    tokens = ["a", ".", ".2", "1", "12", "1.", ".."]
    rows = Fsm.map
    machine = CharacterMachine(
        {
            state: {c: row[Fsm.alphabet(c)] for c in "0123456789." if Fsm.alphabet(c) in row}
            for state, row in rows.items()
        },
        0,
        Fsm.finals,
    )
    index = map_states_to_vocabulary(machine, tokens)
    for state, row in rows.items():
        printed = {token for token in tokens if partial_match(row, token, {}) is not None}
        assert printed == {token for token in index[state] if len(token) == 1}
        corrected = {token for token in tokens if partial_match(row, token, rows) is not None}
        assert corrected == index[state]
    assert {len(token) for tokens in index.values() for token in tokens} == {1, 2}
    minimal = Regex(r"([0-9]+)?\.[0-9]+").to_automaton()
    assert minimal.state_count == 3


def test_the_listing_of_algorithm_3_allows_two_points() -> None:
    """As printed, its loop begins after the first symbol, in the state that reads that one."""
    machine = CharacterMachine.of(Regex(r"[0-9]+\.[0-9]+"), ".12")

    def as_printed(token: str) -> list[tuple[int, ...]]:
        found = []
        for state in machine.transitions:
            if token[0] not in machine.transitions[state]:
                continue
            path: tuple[int, ...] = (state,)
            here = state
            for symbol in token[1:]:
                if symbol not in machine.transitions[here]:
                    path = ()
                    break
                here = machine.transitions[here][symbol]
                path = (*path, here)
            found.append(path)
        return found

    assert any(as_printed(".."))
    index = map_states_to_vocabulary(machine, [".."])
    assert not any(index.values())
