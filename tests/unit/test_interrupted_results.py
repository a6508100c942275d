"""Ctrl-C keeps what is proven, and scores and distortions report their progress."""

import math

import numpy as np
import pytest
from typer.testing import CliRunner

from formalm import ArgumentError, Choice, FunctionModel, Regex, TableModel, Vocabulary, score
from formalm.cli.app import app
from formalm.cost import Progress
from formalm.models.canary import canary
from formalm.probability import distortion
from formalm.records import Records
from formalm.sampling.mean_estimate import bounded_mean

TOKENS = [b"a", b"b", b"ab", b"ba", None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[4], encode=lambda text: ["ab".index(c) for c in text]
)
MODEL = TableModel.random(VOCABULARY, seed=5, order=2)
TEXTS = ["abab", "b", "abba"]


def interrupted(at: int, model: TableModel = MODEL) -> FunctionModel:
    """The model, and Ctrl-C in its call of that number."""
    calls = 0

    def logits(prefixes: list) -> object:
        nonlocal calls
        calls += 1
        if calls == at:
            raise KeyboardInterrupt
        return model.next_logprobs(prefixes)

    return FunctionModel(model.vocabulary, logits)


@pytest.mark.parametrize("event", ["complete", "token_prefix"])
def test_scores_that_were_finished_stay(event: str) -> None:
    whole = score(MODEL, TEXTS, event=event, batch_size=2)
    assert {one.status for one in whole} == {"exact"}
    seen: list[Progress] = []
    score(MODEL, TEXTS, event=event, batch_size=2, progress=seen.append)
    finished = set()
    for at in range(1, seen[-1].calls + 2):
        found = score(interrupted(at), TEXTS, event=event, batch_size=2)
        states = [one.status for one in found]
        assert states == ["exact"] * states.count("exact") + ["interrupted"] * states.count(
            "interrupted"
        )
        assert "interrupted" in states
        finished.add(states.count("exact"))
        for one, true in zip(found, whole, strict=True):
            assert (one.text, one.token_ids) == (true.text, true.token_ids)
            known = ~np.isnan(one.logprobs)
            assert np.allclose(one.logprobs[known], true.logprobs[known])
            assert one.marginal.low <= true.marginal.low + 1e-12
            assert one.marginal.high >= true.marginal.high - 1e-12
            if one.status == "exact":
                assert one.marginal == pytest.approx(true.marginal)
                assert (one.witness, one.tokenizations) == (true.witness, true.tokenizations)
            if known.all():
                assert one.record().logprob == pytest.approx(true.logprob)
            else:
                with pytest.raises(ArgumentError, match="interrupted"):
                    Records([one])
    assert finished == {0, 1, 2}
    assert [one.status for one in score(interrupted(at + 1), TEXTS, event=event, batch_size=2)] == [
        "exact"
    ] * 3


def test_a_score_reports_its_status() -> None:
    (rough,) = score(MODEL, ["abababab"], tolerance=0.5)
    assert (rough.status, rough.truncated_by) == ("reached", None)


def test_progress_of_scores_is_of_all_of_them() -> None:
    seen: list[Progress] = []
    score(MODEL, TEXTS, event="complete", batch_size=1, progress=seen.append)
    counts = [(one.forwards, one.calls) for one in seen]
    assert counts == sorted(counts)
    asked: list[int] = []

    def logits(prefixes: list) -> object:
        asked.append(len(prefixes))
        return MODEL.next_logprobs(prefixes)

    seen.clear()
    score(
        FunctionModel(VOCABULARY, logits),
        TEXTS,
        event="complete",
        batch_size=1,
        # Told before each batch: what the model was asked until then.
        progress=lambda now: seen.append((now.forwards, now.calls) == (sum(asked), len(asked))),
    )
    assert len(seen) >= len(asked)
    assert all(seen)


EXACT = Choice(["ab", "b", "abba"])


def test_an_interrupted_walk_keeps_its_findings() -> None:
    whole = distortion(MODEL, EXACT, event="complete", batch_size=2)
    assert (whole.exact, whole.status) == (True, "done")
    seen: list[Progress] = []
    distortion(MODEL, EXACT, event="complete", batch_size=2, progress=seen.append)
    assert [one.forwards for one in seen] == sorted(one.forwards for one in seen)
    found = []
    for at in range(1, seen[-1].calls + 2):
        found.append(distortion(interrupted(at), EXACT, event="complete", batch_size=2))
        now = found[-1]
        assert now.status == "interrupted"
        assert now.mass.low <= whole.mass.low * (1 + 1e-12)
        assert now.mass.high >= whole.mass.high * (1 - 1e-12)
        for way, true in whole.divergences.items():
            told = now.divergences.get(way)
            if told is not None:
                low, high = told.total_variation
                assert low - 1e-12 <= true.total_variation.low <= high + 1e-12
        assert now.exact == bool(now.texts)
        assert any("interrupted" in note for note in now.notes)
    masses = [one.mass.low for one in found]
    assert masses == sorted(masses)
    assert masses[0] == 0 < masses[-1]
    assert distortion(interrupted(at + 1), EXACT, event="complete", batch_size=2).status == "done"


def test_the_second_walk_can_be_lost_without_the_first() -> None:
    vocabulary = canary().vocabulary
    model = TableModel.random(vocabulary, seed=1, order=1)
    language = Choice([" the man", " a man"])
    seen: list[Progress] = []
    whole = distortion(model, language, event="complete", prompt="In", progress=seen.append)
    assert set(whole.divergences) == {"local", "canonical_local", "canonical"}
    kinds = []
    for at in range(1, seen[-1].calls + 2):
        now = distortion(interrupted(at, model), language, event="complete", prompt="In")
        assert now.status == "interrupted"
        kinds.append(now.exact)
        if now.exact:
            assert set(now.divergences) == {"local"}
            assert now.mass == pytest.approx(whole.mass)
            local = now.divergences["local"].total_variation
            assert local == pytest.approx(whole.divergences["local"].total_variation)
        else:
            assert set(now.divergences) == set(whole.divergences)
    assert kinds == sorted(kinds)
    assert set(kinds) == {False, True}


def test_draws_until_an_interruption_count() -> None:
    language = Regex("[ab]{1,6}")
    truth = distortion(MODEL, language, event="complete").divergences
    options = {"exact": False, "draws": 400, "seed": 3}
    assert distortion(MODEL, language, event="complete", **options).status == "done"
    widths = []
    for at in (1, 20, 40):
        found = distortion(interrupted(at), language, event="complete", **options, batch_size=4)
        assert (found.status, found.exact) == ("interrupted", False)
        low, high = found.divergences["local"].total_variation
        assert low <= truth["local"].total_variation.low <= high
        widths.append(high - low)
    assert widths[0] == 1 > widths[-1]


def test_an_interval_of_a_part_is_valid_at_any_time() -> None:
    """The worst time to stop: whenever the interval misses. That may happen as often as allowed."""
    generator = np.random.default_rng(1)
    misses, runs, planned = 0, 60, 60
    for _ in range(runs):
        values = (generator.random(planned) < 0.3).astype(float)
        ends = (bounded_mean(values[:n], 0.8, planned) for n in range(10, planned + 1, 10))
        misses += any(not low <= 0.3 <= high for low, high in ends)
    assert misses / runs <= 0.2
    assert bounded_mean(values, 0.8, planned) == bounded_mean(values, 0.8)


@pytest.mark.parametrize("driver", ["score", "distortion"])
def test_the_command_reports_an_interruption(driver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from formalm.cli.model_options import ModelOptions

    monkeypatch.setattr(ModelOptions, "load", lambda self: interrupted(12))
    asked = TEXTS if driver == "score" else ["--regex", "[ab]{2}b", "--event", "complete"]
    ended = CliRunner().invoke(app, [driver, *asked, "--json", "--batch-size", "1"])
    assert ended.exit_code == 130
    assert "interrupted" in ended.output


def test_progress_is_a_function() -> None:
    for call in (
        lambda: score(MODEL, ["a"], progress=3),
        lambda: distortion(MODEL, EXACT, event="complete", progress=3),
    ):
        with pytest.raises(ArgumentError, match="progress"):
            call()


def test_interrupted_logprobs_are_nan() -> None:
    found = score(interrupted(2), ["ab"], batch_size=1)[0]
    assert np.isnan(found.logprobs[1])
    assert math.isnan(found.logprob)
