"""The claims of the ReLM paper: each is asked, and its table can be made."""

import pytest

from experiments.relm.__main__ import main
from experiments.relm.claims import CLAIMS
from experiments.relm.edits import edit_places
from formalm.models.canary import canary
from formalm.suites import answer_of, evaluate


def test_uniformly_drawn_steps_place_edits_near_the_start() -> None:
    found = edit_places(400, seed=1)
    assert found["steps"] > 0.8
    assert 0.15 < found["texts"] < 0.4


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_has_questions_and_lists_deviations(name: str) -> None:
    suite = CLAIMS[name].suite()
    assert suite.items()
    assert suite.metrics
    assert CLAIMS[name].differences


def test_canary_knows_the_date_with_and_without_a_choice() -> None:
    claim = CLAIMS["figure_1"]
    suite = claim.suite()
    found = evaluate(suite, [(item, answer_of(canary(), item)) for item in suite.items()])
    rows = claim.rows(found)
    assert [row[2] for row in rows[:3]] == ["yes", "yes", "1"]


def test_a_claim_that_is_not_there_is_an_error(monkeypatch, capsys) -> None:
    monkeypatch.setattr("sys.argv", ["relm", "figure_99"])
    with pytest.raises(SystemExit):
        main()
    assert "there is no claim 'figure_99'" in capsys.readouterr().err
