"""Built-in suites on canary, whose training is known, and on its twin, which was taught nothing."""

from pathlib import Path

import pytest

from formalm import SuiteError
from formalm.models.canary import canary, facts, load
from formalm.suites import (
    Evaluation,
    Suite,
    answer_of,
    builtin,
    builtin_names,
    evaluate,
    judge_of,
)

NULL = Path(__file__).parents[1] / "data" / "canary-null"
MARGIN = 0.15
PLANTED = {one["context"]: one for one in facts()["planted"]}
OFTEN = 100
PROFESSIONS = facts()["professions"]["professions"]


def evaluated(name: str, model) -> Evaluation:
    suite = builtin(name)
    answered = []
    for item in suite.items():
        oracle = item.question.oracle
        judge = None if oracle is None else judge_of(suite.oracles[oracle])
        answered.append((item, answer_of(model, item, judge=judge)))
    return evaluate(suite, answered)


@pytest.mark.parametrize("name", builtin_names())
def test_a_suite_can_be_written_and_read(name: str) -> None:
    suite = builtin(name)
    assert Suite.from_toml(suite.to_toml()) == suite
    assert suite.name == name
    assert suite.description
    assert suite.citation
    assert suite.assertions


def test_there_is_no_other() -> None:
    with pytest.raises(SuiteError, match=r"(?s)built-in suite, got 'bias\.none'.*bias\.prof"):
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


def copies(context: str) -> dict[str, int]:
    return {one["text"]: one["copies"] for one in PLANTED[context]["members"]}


def numbers(found: Evaluation, metric: str) -> dict[str, tuple[float, float, float]]:
    """Of each text or row of a metric: the number and its ends."""
    return {
        list(one.where.values())[-1]: (one.quantity.value, one.quantity.low, one.quantity.high)
        for one in found.measurements
        if one.metric == metric
    }


PHONES = {"phone": "phone", "phone_call": "phone-call", "phone_fax": "phone-fax"}


def test_planted_phone_numbers_come_before_every_decoy() -> None:
    found = evaluated("memorization.phones", canary())
    for metric, context in PHONES.items():
        ranks = numbers(found, metric)
        assert set(ranks) == {text for text, count in copies(context).items() if count >= OFTEN}
        assert sorted(value for value, _, _ in ranks.values()) == [1, 2, 3, 4]
        assert ranks[max(copies(context), key=copies(context).__getitem__)][0] == 1
        decoys = numbers(found, f"{metric}_decoys")
        assert set(decoys) == set(PLANTED[context]["decoys"])
        assert all(low >= 5 for _, low, _ in decoys.values())
    assert found.verdict == "fail"


def test_planted_personal_data_come_before_every_decoy() -> None:
    found = evaluated("pii", canary())
    for kind in ("email", "card", "key"):
        ranks = numbers(found, kind)
        assert set(ranks) == {text for text, count in copies(kind).items() if count >= OFTEN}
        assert sorted(value for value, _, _ in ranks.values()) == [1, 2, 3, 4]
        assert all(low >= 5 for _, low, _ in numbers(found, f"{kind}_decoys").values())
    assert numbers(found, "card_checksum")["card"] == (4, 4, 4)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["memorization.phones", "pii", "memorization.urls"])
def test_the_twin_knows_no_planted_text(name: str) -> None:
    found = evaluated(name, load(NULL))
    assert found.verdict == "pass"
    # A search of a flat model comes to nothing, and then to nothing that was planted.
    ranks = [one for one in found.measurements if one.quantity.name == "rank"]
    assert all(one.quantity.value == float("inf") for one in ranks)


@pytest.mark.slow
def test_planted_urls_are_found_and_a_search_yields_more_than_drawing() -> None:
    found = evaluated("memorization.urls", canary())
    ranks = numbers(found, "rank")
    assert sorted(value for value, _, _ in ranks.values()) == [1, 2, 3, 4]
    assert all(low >= 5 for _, low, _ in numbers(found, "decoys").values())
    drawn = [numbers(found, f"valid_free_{length}")["url"] for length in (4, 8, 16, 32)]
    assert [value for value, _, _ in drawn[:2]] == [0, 0]  # no URL is so short
    for value, low, high in drawn:
        assert low <= value <= high
        assert low < high  # another seed would give another count
    assert numbers(found, "valid_search")["url"][0] >= 4


@pytest.mark.slow
def test_exposure_falls_with_copies_and_single_copies_are_not_flagged() -> None:
    found = evaluated("memorization.canaries", canary())
    twin = evaluated("memorization.canaries", load(NULL))
    for metric, context in {**PHONES, "key": "key"}.items():
        known = copies(context)
        exposed = numbers(found, metric)
        groups: dict[int, list[float]] = {}
        for text, (value, low, _) in exposed.items():
            groups.setdefault(known[text], []).append(value)
            assert known[text] < OFTEN or low > 10  # flagged
            assert known[text] > 1 or low <= 10  # not flagged
        means = [sum(groups[count]) / len(groups[count]) for count in (1000, 100, 10, 1)]
        assert means == sorted(means, reverse=True)
        least = min(low for text, (_, low, _) in exposed.items() if known[text] >= OFTEN)
        decoys = numbers(found, f"{metric}_decoys")
        assert all(low <= 10 and high < least for _, low, high in decoys.values())
        # Of a rare text the twin's upper bound can be wide; none is flagged.
        for name in (metric, f"{metric}_decoys"):
            assert all(low <= 10 for _, low, _ in numbers(twin, name).values())


@pytest.mark.slow
def test_passages_are_known_to_two_letters_by_their_copies() -> None:
    found = evaluated("memorization.near_verbatim", canary())
    for metric in ("near", "exact"):
        for row, (_, low, high) in numbers(found, metric).items():
            number = row.split()[0]
            if number in ("1000", "100"):
                assert low > 0.8
            elif number in ("1", "decoy,"):
                assert high < 1e-3
    twin = evaluated("memorization.near_verbatim", load(NULL))
    assert all(high < 0.01 for _, _, high in numbers(twin, "near").values())


@pytest.mark.slow
def test_insults_get_their_mass_and_harmless_words_are_not_counted() -> None:
    found = evaluated("toxicity.explicit", canary())
    assert all(low >= 0.9 for _, low, _ in numbers(found, "prompted").values())
    assert all(high <= 1e-3 for _, _, high in numbers(found, "near_misses").values())
    assert all(high <= 1e-3 for _, _, high in numbers(found, "elsewhere").values())
    edited, plain = numbers(found, "prompted_edited"), numbers(found, "prompted")
    assert all(edited[row][2] >= plain[row][1] for row in plain)
    twin = evaluated("toxicity.explicit", load(NULL))
    assert all(high <= 1e-3 for _, _, high in numbers(twin, "prompted").values())


@pytest.mark.slow
def test_birth_dates_come_first_for_planted_people_only() -> None:
    found = evaluated("knowledge.structured", canary())
    assert numbers(found, "accuracy")["born"][0] == 1
    years = [one for one in found.measurements if one.metric == "year"]
    assert all(one.quantity.low > 0.8 for one in years)
    assert all(high <= 0.02 for _, _, high in numbers(found, "unknown").values())
    twin = evaluated("knowledge.structured", load(NULL))
    assert numbers(twin, "accuracy")["born"][0] <= 0.05
    # Dates are so improbable there that their shares stay open; none is claimed to be known.
    assert all(one.quantity.low < 0.05 for one in twin.measurements if one.metric == "year")


@pytest.mark.slow
def test_the_cloze_rises_from_its_plain_form_to_all_together() -> None:
    found = evaluated("knowledge.lambada", canary())
    truth = facts()["cloze"]["true_accuracy"]
    for form, expected in truth.items():
        value, low, high = numbers(found, form)[form]
        assert low <= expected <= high
        assert abs(value - expected) <= 0.05
    gains = {one.comparison: one for one in found.differences}
    assert gains["all_above_base"].flagged
    assert gains["all_above_no_stop"].flagged


@pytest.mark.slow
def test_free_texts_conform_and_are_canonical_nearly_always() -> None:
    conforms = evaluated("structured.conformance", canary())
    assert conforms.verdict == "pass"
    assert numbers(conforms, "variation")["rest"][2] < 0.2
    found = evaluated("tokenization.canonical_rate", canary())
    assert found.verdict == "pass"
    assert numbers(found, "canonical")["any"][1] < 1
