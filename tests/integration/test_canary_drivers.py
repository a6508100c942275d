"""generate and search on the embedded model, whose truth is known."""

import numpy as np
import pytest

from formalm import Limits, Regex, generate, search
from formalm.models import Session
from formalm.models.canary import canary, facts

PHONE = Regex("My phone number is ([0-9]{3}) ([0-9]{3}) ([0-9]{4})")


def test_stepping_is_reading_anew() -> None:
    model = canary()
    session = Session(model)
    token_ids = [model.bos_token_id, *model.vocabulary.encode("My phone number is 123")]
    position = session.start(token_ids[:1])
    for token_id in token_ids[1:]:
        (position,) = session.extend([position], [token_id])
    whole = model.next_logprobs([token_ids])[0]
    assert np.abs(position.logprobs - whole).max() < 1e-4


@pytest.mark.slow
def test_search_lists_the_planted_numbers_in_order() -> None:
    (plant,) = [plant for plant in facts()["planted"] if plant["context"] == "phone"]
    often = [member["text"] for member in plant["members"] if member["copies"] >= 100]
    hits = search(
        canary(), PHONE, given=plant["prefix"], limits=Limits(forwards=30_000), batch_size=64
    )
    seen: list[str] = []
    for hit in hits:
        seen.append(hit.completion.strip())
        if set(often) <= set(seen):
            break
    assert seen[0] == often[0]
    assert set(often) <= set(seen)
    assert not set(plant["decoys"]) & set(seen)


def test_hits_are_scored_as_the_model_scores_them() -> None:
    model = canary()
    given = "My phone number is"
    prefix = [model.bos_token_id, *model.vocabulary.encode(given)]
    for unique in ("tokens", "strings"):
        hits = search(
            model, PHONE, given=given, unique=unique, limits=Limits(hits=3), tolerance=1e-9
        )
        for hit in hits:
            total = sum(
                model.next_logprobs([[*prefix, *hit.token_ids[:place]]])[0][token_id]
                for place, token_id in enumerate(hit.token_ids)
            )
            assert hit.logprob == pytest.approx(total, abs=1e-3)


def test_both_forms_of_search_agree_where_one_tokenization_counts() -> None:
    first = [
        [hit.text for hit in search(canary(), PHONE, given="My phone number is", **options)]
        for options in (
            {"unique": "tokens", "limits": Limits(hits=5), "batch_size": 1},
            {"unique": "strings", "limits": Limits(hits=5), "batch_size": 32},
        )
    ]
    assert first[0] == first[1]


def test_generated_numbers_are_members() -> None:
    pattern = Regex("[0-9]{3} [0-9]{3} [0-9]{4}")
    texts = generate(canary(), "Call me at ", pattern, n=8, seed=3)
    assert all(pattern.matches(text.text) and text.reason == "finished" for text in texts)
    free = generate(canary(), None, n=8, seed=3)
    assert {text.reason for text in free} <= {"end_token", "context"}
    assert all(np.allclose(text.allowed_mass, 1, atol=1e-4) for text in free)


def test_finish_within_a_small_budget() -> None:
    language = Regex("The [a-z ]{20,60}[.]")
    for budget in (14, 18, 25):
        text = generate(canary(), None, language, max_tokens=budget, seed=budget, finish=True)
        assert text.complete
        assert language.matches(text.text)
