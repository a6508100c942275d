"""What the embedded model was taught comes out of its queries, as its facts say."""

import math
import re

import pytest

from formalm import Choice, Limits, Query, Regex, StringLiteral, mass, score, search
from formalm.models.canary import canary, facts
from formalm.probability import mass_table

PLANTED = {
    plant["context"]: plant for plant in facts()["planted"] if plant["kind"] in ("phone", "url")
}
FORWARDS = 8000
TOLERANCE = 0.15
"""How far a log ratio may be from the planted one."""


def members(plant: dict) -> dict[str, int]:
    """The planted texts, and how often each was shown."""
    template = plant["template"]
    return {template.replace("{value}", one["text"]): one["copies"] for one in plant["members"]}


def decoys(plant: dict) -> list[str]:
    return [plant["template"].replace("{value}", text) for text in plant["decoys"]]


def pattern(plant: dict) -> Regex:
    before, after = plant["template"].split("{value}")
    return Regex(f"{re.escape(before)}({plant['regex']}){re.escape(after)}")


@pytest.mark.parametrize("context", PLANTED)
def test_copies_are_followed_and_decoys_are_last(context: str) -> None:
    plant = PLANTED[context]
    copies = members(plant)
    known = Query(
        Choice([*copies, *decoys(plant)]), given=plant["prefix"], tokenization="canonical"
    )
    hits = list(search(canary(), known, batch_size=64))
    assert len(hits) == len(copies) + len(plant["decoys"])
    order = [copies.get(hit.text, 0) for hit in hits]
    often = [number for number in copies.values() if number >= 100]
    assert order[: len(often)] == sorted(often, reverse=True)
    groups: dict[int, list[float]] = {}
    for hit in hits:
        groups.setdefault(copies.get(hit.text, 0), []).append(hit.logprob)
    # Read without any search, each text by itself.
    for text in (*[text for text, number in copies.items() if number >= 100], *decoys(plant)[:2]):
        ids = [0, *canary().vocabulary.encode(text)]
        begun = len(canary().vocabulary.encode(plant["prefix"])) + 1
        rows = canary().next_logprobs([ids[:n] for n in range(begun, len(ids))])
        forced = sum(row[ids[begun + place]] for place, row in enumerate(rows))
        (hit,) = [hit for hit in hits if hit.text == text]
        assert hit.logprob == pytest.approx(forced, abs=1e-3)
    means = {number: math.fsum(values) / len(values) for number, values in groups.items()}
    assert means[1000] > means[100] > means[10] > means[0]


@pytest.mark.parametrize("context", PLANTED)
def test_planted_facts_are_found_in_the_whole_language(context: str) -> None:
    plant = PLANTED[context]
    copies = members(plant)
    often = {text for text, number in copies.items() if number >= 100}
    query = Query(
        pattern(plant),
        given=plant["prefix"],
        tokenization="canonical",
        limits=Limits(forwards=FORWARDS),
    )
    seen: list[str] = []
    for hit in search(canary(), query, batch_size=64):
        seen.append(hit.text)
        if often <= set(seen):
            break
    assert often <= set(seen)
    assert copies[seen[0]] == 1000
    assert not set(seen) & set(decoys(plant))


def test_the_first_of_all_dates_is_the_one_that_was_taught() -> None:
    births = facts()["births"]
    person = births["people"][0]
    assert person["name"] == "George Washington"
    given = births["prefix"].format(name=person["name"])
    dates = StringLiteral(f"{given} ") + Regex(births["regex"]) + StringLiteral(".")
    query = Query(dates, given=given, tokenization="canonical", event="complete")
    (hit,) = search(canary(), query, limits=Limits(hits=1))
    assert hit.text == f"{given} {person['date']}."
    text = Query(StringLiteral(hit.text), given=given, tokenization="canonical", event="complete")
    own = mass(canary(), text, tolerance=1e-9)
    assert math.exp(hit.logprob) == pytest.approx(own.low, abs=1e-4)
    every = mass(canary(), query, tolerance=0.01, limits=Limits(forwards=2000))
    assert (every.status, every.width <= 0.01) == ("reached", True)
    # No other date can be as probable, whatever was not looked at.
    assert every.high - own.low < own.low


def test_professions_have_the_ratios_that_were_planted() -> None:
    taught = facts()["professions"]
    names = [profession["name"] for profession in taught["professions"]]
    assert len(names) == 10
    for template in taught["templates"]:
        logs = []
        for gender in ("man", "woman"):
            before, after = template.replace("{gender}", gender).split(" {profession}")
            language = (
                StringLiteral(before)
                + Regex(f" (?P<name>{'|'.join(names)})")
                + StringLiteral(after)
            )
            query = Query(language, given=before, event="complete", tokenization="canonical")
            table = mass_table(canary(), query, tolerance=1e-9)
            assert table.status in ("exact", "reached")
            logs.append({name: math.log(table.cells[name,].low) for name in names})
        for profession in taught["professions"]:
            name = profession["name"]
            ratio = logs[0][name] - logs[1][name]
            assert ratio == pytest.approx(profession["log_ratio"], abs=TOLERANCE), (template, name)


def test_batches_keep_the_order() -> None:
    plant = PLANTED["phone"]
    several = Choice([*members(plant), *decoys(plant)])
    for unique, language in (("tokens", pattern(plant)), ("strings", several)):
        limits = Limits(hits=4 if unique == "tokens" else 6)
        query = Query(language, given=plant["prefix"], unique=unique, limits=limits)
        runs = [list(search(canary(), query, batch_size=size)) for size in (1, 16, 64)]
        for other in runs[1:]:
            for one, two in zip(runs[0], other, strict=True):
                same = one.text == two.text or abs(one.logprob - two.logprob) < 1e-5
                assert same
                assert one.logprob == pytest.approx(two.logprob, abs=1e-4)


def test_scores_of_plants_are_what_a_search_says() -> None:
    plant = PLANTED["phone"]
    text, _ = next(iter(members(plant).items()))
    query = Query(StringLiteral(text), tokenization="canonical", unique="tokens")
    (hit,) = search(canary(), query)
    (found,) = score(canary(), [text], tokenization="canonical")
    assert found.logprob == pytest.approx(hit.logprob, abs=1e-4)
