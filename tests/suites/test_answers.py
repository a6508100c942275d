"""What suites compute, against enumeration on a small model."""

import json
import math
from itertools import product

import pytest

from formalm import SuiteError
from formalm.models.canary import facts
from formalm.suites import Item, Suite, answer_of, evaluate
from tests.suites.small_suites import BYTES, MODEL, TINY

END = len(BYTES)


def probability(text: str, given: str = "", *, ended: bool) -> float:
    """Of a text after its beginning, a token a byte."""
    ids = [BYTES.index(letter) for letter in text]
    total = 1.0
    for place in range(len(given), len(ids) + ended):
        row = MODEL.next_logprobs([ids[:place]])[0]
        total *= math.exp(row[ids[place] if place < len(ids) else END])
    return total


def answered(suite: Suite) -> list[tuple[Item, dict]]:
    # Through JSON, as a journal keeps them.
    return [
        (item, json.loads(json.dumps(answer_of(MODEL, item), allow_nan=False)))
        for item in suite.items()
    ]


SUITE = Suite.from_toml(TINY)
ANSWERED = answered(SUITE)
EVALUATED = evaluate(SUITE, ANSWERED)
WHAT = ("a", "b", "ab")


def numbers(metric: str) -> dict[tuple[str, ...], object]:
    return {
        tuple(one.where.values()): one.quantity
        for one in EVALUATED.measurements
        if one.metric == metric
    }


def shares(who: str) -> list[float]:
    masses = [
        sum(probability(f"{who} {what}{end}", who, ended=True) for end in ".!") for what in WHAT
    ]
    return [mass / sum(masses) for mass in masses]


def test_shares_are_those_of_enumeration() -> None:
    found = numbers("share")
    assert len(found) == 6
    for who in "mw":
        for what, share in zip(WHAT, shares(who), strict=True):
            quantity = found["plain", who, what]
            assert quantity.low - 1e-12 <= share <= quantity.high + 1e-12
            assert quantity.width < 1e-3


def test_distances_and_ratios_are_those_of_enumeration() -> None:
    one, other = shares("m"), shares("w")
    distance = sum(abs(p - q) for p, q in zip(one, other, strict=True)) / 2
    assert numbers("distance")["plain",].value == pytest.approx(distance, abs=1e-3)
    divergence = sum(
        (p * math.log(2 * p / (p + q)) + q * math.log(2 * q / (p + q))) / 2
        for p, q in zip(one, other, strict=True)
    )
    assert numbers("divergence")["plain",].value == pytest.approx(divergence, abs=1e-3)
    for p, q, what in zip(one, other, WHAT, strict=True):
        odds = math.log(p / (1 - p)) - math.log(q / (1 - q))
        quantity = numbers("odds")["plain", what]
        assert quantity.low - 1e-9 <= odds <= quantity.high + 1e-9


def test_masses_are_those_of_enumeration() -> None:
    found = numbers("mass")
    assert len(found) == 6
    for who, what in product("mw", WHAT):
        given = f"{who} {what}"
        ids = [BYTES.index(letter) for letter in given]
        row = 2 * MODEL.next_logprobs([ids])[0]  # temperature 0.5
        weights = [math.exp(x) for x in row]
        mass = sum(weights[BYTES.index(end)] for end in ".!") / sum(weights)
        quantity = found["plain", who, what]
        assert quantity.low - 1e-9 <= mass <= quantity.high + 1e-9


def test_ranks_are_those_of_sorting() -> None:
    for who in "mw":
        texts = [f"{who} {what}{end}" for what in WHAT for end in ".!"]
        order = sorted(texts, key=lambda text: -probability(text, text[0], ended=False))
        for target in ("ab", "b"):
            places = [n for n, text in enumerate(order, 1) if text[2:-1] == target]
            quantity = numbers("rank")["plain", who, target]
            if places[0] <= 5:
                assert (quantity.value, quantity.coverage) == (places[0], "exact")
            else:
                assert (quantity.low, quantity.high) == (6, math.inf)


def test_a_text_that_no_hit_has_is_beyond_them() -> None:
    suite = Suite.from_toml(TINY.replace("limits = {hits = 5}", "limits = {hits = 1}"))
    items = [item for item in suite.items() if item.question.ask == "search"]
    found = evaluate(suite, [(item, answer_of(MODEL, item)) for item in items])
    ranks = [one.quantity for one in found.measurements if one.metric == "rank"]
    assert {(one.low, one.high) for one in ranks} <= {(1.0, 1.0), (2.0, math.inf)}
    assert any(one.high == math.inf for one in ranks)
    everything = Suite.from_toml(TINY.replace("limits = {hits = 5}", "limits = {hits = 50}"))
    items = [item for item in everything.items() if item.question.ask == "search"]
    answers = [(item, answer_of(MODEL, item)) for item in items]
    for _, answer in answers:
        assert answer["status"] == "exhausted"
        answer["hits"] = []
    lost = evaluate(everything, answers).measurements
    assert all(one.quantity.low == math.inf for one in lost)


def test_an_exact_comparison_is_about_the_mean_of_the_templates() -> None:
    ratios = numbers("ratio")
    for one in EVALUATED.differences:
        if one.comparison != "skewed":
            continue
        mean = sum(ratios[name, one.value].value for name in ("plain", "turned round")) / 2
        assert one.mean.value == pytest.approx(mean)
        assert one.flagged == (abs(mean) > 0.1)
        assert one.p_value is None


def test_two_templates_flip_four_ways() -> None:
    ratios = numbers("ratio")
    for one in EVALUATED.differences:
        if one.comparison == "general":
            values = [ratios[name, one.value].value for name in ("plain", "turned round")]
            agree = min(values) > 0.1 or max(values) < -0.1
            assert (one.p_value == 0.5) == agree
            assert one.flagged == agree


def test_verdicts() -> None:
    distance, rank, skewed = EVALUATED.outcomes
    assert distance.verdict == "pass"
    within = all(quantity.value <= 5 for quantity in numbers("rank").values())
    assert rank.verdict == ("pass" if within else "inconclusive")
    flagged = {one.value for one in EVALUATED.differences
               if one.comparison == "skewed" and one.flagged}  # fmt: skip
    assert skewed.verdict == ("pass" if flagged == {"a", "ab"} else "fail")


def demanded(text: str, answers: list) -> tuple[str, str]:
    head = TINY.split("[[assertions]]", maxsplit=1)[0]
    (outcome,) = evaluate(Suite.from_toml(f"{head}[[assertions]]\n{text}"), answers).outcomes
    return outcome.verdict, outcome.why


def test_a_bound_inside_an_interval_is_inconclusive() -> None:
    value = numbers("distance")["plain",].value
    assert demanded(f'metric = "distance"\nmax = {value + 0.01}', ANSWERED)[0] == "pass"
    assert demanded(f'metric = "distance"\nmax = {value - 0.01}', ANSWERED)[0] == "fail"
    assert demanded(f'metric = "distance"\nmin = {value + 0.01}', ANSWERED)[0] == "fail"
    loose = [
        (item, {**answer, "undecided": answer["undecided"] + 0.2} if "cells" in answer else answer)
        for item, answer in ANSWERED
    ]
    assert demanded(f'metric = "distance"\nmax = {value + 0.01}', loose)[0] == "inconclusive"
    verdict, why = demanded('comparison = "skewed"\nflagged = []', loose)
    assert verdict == "inconclusive"
    assert "may differ" in why
    assert demanded('comparison = "general"\nflagged = []', loose)[0] != "pass"


def test_missing_answers_never_pass() -> None:
    verdict, why = demanded('metric = "distance"\nmax = 1', ANSWERED[:2])
    assert (verdict, why) == ("inconclusive", f"{len(ANSWERED) - 2} items have no answer yet")
    assert demanded('metric = "distance"\nmax = 1', [])[0] == "inconclusive"
    assert demanded('comparison = "skewed"\nflagged = []', [])[0] == "inconclusive"
    # What is wrong already stays wrong.
    assert demanded('metric = "distance"\nmax = 0', ANSWERED[:2])[0] == "fail"


def test_the_worst_outcome_is_the_verdict() -> None:
    head = TINY.split("[[assertions]]", maxsplit=1)[0]
    assert evaluate(Suite.from_toml(head), ANSWERED).verdict == "pass"
    low, high = (
        '[[assertions]]\nmetric = "mass"\nmin = 0\n',
        '[[assertions]]\nmetric = "mass"\nmin = 1\n',
    )
    assert evaluate(Suite.from_toml(head + low), ANSWERED).verdict == "pass"
    assert evaluate(Suite.from_toml(head + low + high), ANSWERED).verdict == "fail"
    assert evaluate(Suite.from_toml(head + low), ANSWERED[:3]).verdict == "inconclusive"


PROFESSIONS = facts()["professions"]


def test_too_few_templates_for_a_test_are_refused() -> None:
    templates = "\n".join(
        f"t{number} = {json.dumps(text)}" for number, text in enumerate(PROFESSIONS["templates"])
    )
    names = json.dumps([one["name"] for one in PROFESSIONS["professions"]])
    text = f"""
format = "formalm-suite"
version = 1
name = "few"
title = "?"
[slots]
gender = ["man", "woman"]
profession = {names}
[templates]
{templates}
[queries.q]
ask = "table"
event = "complete"
each = ["gender"]
[metrics.ratio]
kind = "log_ratio"
query = "q"
between = "gender"
of = "profession"
[comparisons.c]
metric = "ratio"
test = "sign_flips"
margin = 0.15
"""
    with pytest.raises(SuiteError, match="with 6 templates and 10 values, no difference"):
        Suite.from_toml(text)
    assert Suite.from_toml(text + 'correction = "none"').comparisons["c"].correction == "none"


def test_an_answer_on_distortion_has_its_whole_cost() -> None:
    """Tokens were once reported as 0 however many the model had read."""
    text = (
        TINY.partition("[queries.table]")[0]
        + """
[queries.moved]
ask = "distortion"
templates = ["plain"]
event = "complete"
given = false
draws = 2
"""
    )
    (item,) = Suite.from_toml(text).items()
    work = answer_of(MODEL, item)["work"]
    assert work["tokens_computed"] >= work["forwards"] >= work["calls"] > 0
    assert set(work) == {"forwards", "calls", "tokens_computed", "cache_hits", "expansions"}
