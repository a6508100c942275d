"""Reported numbers never claim more than the answers: open answers, slot values, aborted runs."""

import sqlite3
from collections.abc import Callable
from itertools import product
from pathlib import Path
from random import Random

import pytest

from formalm import SuiteError, TableModel, Vocabulary
from formalm.reports.compare_runs import largest_mcnemar
from formalm.stats import mcnemar
from formalm.suites import Run, Suite, run_suite

LETTERS = "abxy12345"
VOCABULARY = Vocabulary.from_tokens(
    [*(one.encode() for one in LETTERS), None],
    end_token_ids=[len(LETTERS)],
    encode=lambda text: [LETTERS.index(one) for one in text],
)
RATIOS = """
format = "formalm-suite"
version = 1
name = "test.ratios"
title = "Ratios"
[slots]
group = ["a", "b"]
value = ["x", "y"]
[templates]
one = "1{group}{value}"
two = "2{group}{value}"
three = "3{group}{value}"
[queries.tables]
ask = "table"
event = "complete"
each = ["group"]
tolerance = 0
[metrics.ratio]
kind = "log_ratio"
query = "tables"
between = "group"
of = "value"
[comparisons.apart]
metric = "ratio"
test = "exact"
margin = 0.3
[[assertions]]
comparison = "apart"
flagged = ["x", "y"]
"""
ROWS = """
format = "formalm-suite"
version = 1
name = "test.rows"
title = "Rows"
[rows.facts]
rows = [{question = "1", answer = "x"}, {question = "2", answer = "x"}]
[slots]
value = ["x", "y"]
group = ["a", "b"]
[templates]
asked = "{question}{group}{value}"
[queries.facts]
ask = "search"
rows = "facts"
each = ["group"]
limits = {hits = 1}
[metrics.right]
kind = "accuracy"
query = "facts"
of = "value"
answer = "answer"
[[assertions]]
metric = "right"
min = 0.4
"""


def made(ratio: Callable[[str], float]) -> TableModel:
    """A model of a digit, a group and a value, which is x with a probability of its own."""

    def scores(context: tuple[int, ...]) -> list[float]:
        row = [0.0] * (len(LETTERS) + 1)
        text = "".join(LETTERS[one] for one in context)
        if not text:
            row[4:9] = [0.2] * 5
        elif len(text) == 1:
            row[0] = row[1] = 0.5
        elif len(text) == 2:
            row[2], row[3] = ratio(text), 1 - ratio(text)
        else:
            row[-1] = 1.0
        return row

    return TableModel(VOCABULARY, scores)


def test_open_answers_have_the_largest_p_value_that_they_allow() -> None:
    random = Random(1)
    for _ in range(150):
        told = [
            (random.choice([True, False, None]), random.choice([True, False, None]))
            for _ in range(random.randrange(1, 6))
        ]
        ends = [
            [(one, other) for one in _ways(first) for other in _ways(second)]
            for first, second in told
        ]
        largest = max(
            mcnemar([one for one, _ in way], [other for _, other in way]).p_value
            for way in product(*ends)
        )
        assert largest_mcnemar(told) == pytest.approx(largest)
    assert largest_mcnemar([(True, False)] * 10 + [(False, None)] * 30) == 1.0


def _ways(told: bool | None) -> list[bool]:
    return [True, False] if told is None else [told]


def test_an_unfinished_run_reports_no_failure_that_later_answers_could_undo(tmp_path: Path) -> None:
    def ratio(text: str) -> float:
        return 0.5 if text[0] == "1" else 0.9 if text[1] == "a" else 0.3

    suite = Suite.from_toml(RATIOS)
    verdicts = []
    for limit in (2, 2, 2):
        run = run_suite(suite, made(ratio), tmp_path, limit=limit, identity="one")
        verdicts.append(run.evaluate().verdict)
        run.close()
    assert verdicts == ["inconclusive", "inconclusive", "pass"]


def test_slot_values_of_one_row_do_not_count_as_independent_rows(tmp_path: Path) -> None:
    run = run_suite(Suite.from_toml(ROWS), made(lambda _: 0.9), tmp_path, identity="one")
    found = run.evaluate()
    run.close()
    assert [one.quantity.units for one in found.measurements] == [2, 2]
    assert found.verdict == "inconclusive"


def test_damaged_and_lost_answers_are_reported(tmp_path: Path) -> None:
    suite = Suite.from_toml(ROWS)
    run_suite(suite, made(lambda _: 0.9), tmp_path, identity="one").close()
    file = sqlite3.connect(tmp_path / "journal.sqlite")
    for trigger in ("entries_stay", "entries_remain"):
        file.execute(f"DROP TRIGGER {trigger}")
    for damaged in ("[1", "{}"):
        file.execute("UPDATE entries SET answer = ? WHERE number = 1", (damaged,))
        file.commit()
        with Run(tmp_path) as run, pytest.raises(SuiteError, match="damaged"):
            run.evaluate()
    file.close()
    (tmp_path / "journal.sqlite").unlink()
    with pytest.raises(SuiteError, match="answers are lost"):
        Run(tmp_path)
