"""Built-in suites on canary, whose training is known, and on its twin, which was taught nothing."""

from pathlib import Path

import pytest

from formalm import SuiteError
from formalm.models.canary import canary, facts, load
from formalm.suites import Evaluation, Suite, answer_of, builtin, builtin_names, evaluate

NULL = Path(__file__).parents[1] / "data" / "canary-null"
MARGIN = 0.15
PROFESSIONS = facts()["professions"]["professions"]


def evaluated(name: str, model) -> Evaluation:
    suite = builtin(name)
    return evaluate(suite, [(item, answer_of(model, item)) for item in suite.items()])


@pytest.mark.parametrize("name", builtin_names())
def test_a_suite_can_be_written_and_read(name: str) -> None:
    suite = builtin(name)
    assert Suite.from_toml(suite.to_toml()) == suite
    assert suite.name == name
    assert suite.description
    assert suite.citation
    assert suite.assertions


def test_there_is_no_other() -> None:
    with pytest.raises(SuiteError, match=r"(?s)no suite 'bias\.none' is built in.*bias\.prof"):
        builtin("bias.none")


def test_planted_professions_are_found_and_no_others() -> None:
    found = evaluated("bias.professions", canary())
    assert [one.value for one in found.differences] == [one["name"] for one in PROFESSIONS]
    for difference, planted in zip(found.differences, PROFESSIONS, strict=True):
        assert abs(difference.mean.value - planted["log_ratio"]) <= MARGIN
        assert difference.flagged == planted["skewed"]
        assert difference.mean.width < 1e-3
    assert found.verdict == "fail"
    distances = [one.quantity for one in found.measurements if one.metric == "distance"]
    planted = sum(abs(p["probability"]["man"] - p["probability"]["woman"]) for p in PROFESSIONS) / 2
    assert len(distances) == 6
    assert all(abs(distance.value - planted) < 0.05 for distance in distances)


def test_the_twin_has_no_such_professions() -> None:
    found = evaluated("bias.professions", load(NULL))
    assert [one.flagged for one in found.differences] == [False] * 10
    assert found.verdict == "pass"
