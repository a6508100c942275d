"""Canonical tokens while a model writes: prompts, forced tokens, and what is measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from formalm import (
    ArgumentError,
    Constraint,
    FunctionModel,
    LimitError,
    Regex,
    StringLiteral,
    TokenError,
    generate,
    stream,
)
from formalm.models.canary import canary

DATES = Regex(r" (July|June|February) [0-9]{1,2}, [0-9]{4}")
PROMPT = "George Washington was born on"


class Counting:
    """The embedded model, counting the prefixes that it is asked for."""

    def __init__(self) -> None:
        self.asked = 0
        self.model = FunctionModel(canary().vocabulary, self._logits, bos_token_id=0)

    def _logits(self, prefixes: Sequence[Sequence[int]]) -> Any:
        self.asked += len(prefixes)
        return canary().next_logprobs(prefixes)


@pytest.mark.parametrize("temperature", [0, 1.0, 3.0])
def test_forced_tokens_change_nothing_but_the_work(temperature: float) -> None:
    counting = Counting()
    options: dict[str, Any] = {"seed": 5, "n": 4, "max_tokens": 40, "temperature": temperature}
    options |= {"tokenization": "canonical"}
    all_asked = generate(counting.model, PROMPT, DATES, measure=True, **options)
    asked, counting.asked = counting.asked, 0
    some_asked = generate(counting.model, PROMPT, DATES, **options)
    forced = sum(int(text.forced.sum()) for text in some_asked)
    assert [text.token_ids for text in some_asked] == [text.token_ids for text in all_asked]
    assert forced > 0
    assert 0 < asked - counting.asked <= forced
    cached = generate(canary(), PROMPT, DATES, **options)
    assert [text.token_ids for text in cached] == [text.token_ids for text in all_asked]
    for one, other in zip(some_asked, all_asked, strict=True):
        assert not other.forced.any()
        assert np.isnan(one.logprob) == one.forced.any()
        kept = ~one.forced
        np.testing.assert_allclose(one.logprobs[kept], other.logprobs[kept], atol=1e-4)


def test_a_text_that_is_forced_needs_no_model() -> None:
    counting = Counting()
    text = StringLiteral(" cat sat on the mat.")
    result = generate(counting.model, "The", text, tokenization="canonical", max_tokens=20)
    assert result.text == " cat sat on the mat."
    assert result.forced.all()
    assert counting.asked == 0


def test_what_is_measured_is_what_the_masks_allow() -> None:
    model = canary()
    result = generate(
        model, PROMPT, DATES, tokenization="canonical", measure=True, temperature=5.0, seed=1
    )
    canonical = Constraint(DATES, model.vocabulary, tokenization="canonical")
    narrow = canonical.matcher(after=result.prompt_token_ids)
    wide = Constraint(DATES, model.vocabulary).matcher()
    prefix, weight = list(result.prompt_token_ids), 0.0
    for at, token_id in enumerate(result.token_ids):
        row = np.exp(model.next_logprobs([prefix])[0])
        allowed, spelled = row[narrow.mask()].sum(), row[wide.mask()].sum()
        assert not (narrow.mask() & ~wide.mask()).any()
        assert result.allowed_mass[at] == pytest.approx(allowed, abs=1e-6)
        assert result.byte_mass[at] == pytest.approx(spelled, abs=1e-6)
        assert result.trap_mass[at] == pytest.approx(spelled - allowed, abs=1e-6)
        weight += np.log(allowed)
        prefix.append(token_id)
        narrow.advance(token_id)
        wide.advance(token_id)
    assert result.log_importance_weight == pytest.approx(weight, abs=1e-5)
    assert result.logprob == pytest.approx(sum(result.logprobs))


def test_a_prompt_is_healed() -> None:
    model, language = canary(), Regex("(July|June) [0-9]{1,2}")
    with pytest.raises(TokenError, match=r"prompt\[1\]: .*born on ") as caught:
        generate(model, ["born on (", PROMPT + " "], language, tokenization="canonical")
    assert "heal=True" in (caught.value.hint or "")
    result = generate(model, PROMPT + " ", language, tokenization="canonical", heal=True, seed=2)
    assert result.regenerated == b" "
    assert result.is_accepting
    assert result.language == language
    assert language.matches(result.text)
    assert model.vocabulary.decode(result.token_ids) == b" " + result.data
    whole = [*result.prompt_token_ids, *result.token_ids]
    assert model.vocabulary.is_canonical(whole)
    assert whole[1:] == model.vocabulary.encode(PROMPT + " " + result.text)
    # A number gives back so many even where none need be.
    healed = generate(model, PROMPT, DATES, tokenization="canonical", heal=2, stop=[","], beams=2)
    assert healed.regenerated == b" born on"
    assert DATES.is_viable(healed.text)
    assert healed.stop_text == ","
    assert not healed.forced.any()


def test_a_free_text_is_canonical_and_streams() -> None:
    model = canary()
    for seed in range(5):
        result = generate(
            model, "The ", tokenization="canonical", heal=1, seed=seed, max_tokens=30,
            temperature=2.0,
        )  # fmt: skip
        assert model.vocabulary.is_canonical([*result.prompt_token_ids, *result.token_ids])
        assert result.language is None
    given: dict[str, Any] = {"tokenization": "canonical", "seed": 4, "max_tokens": 30}
    pieces = stream(model, PROMPT, DATES, **given)
    assert "".join(pieces) == generate(model, PROMPT, DATES, **given).text


def test_a_constraint_brings_its_tokenization() -> None:
    model = canary()
    constraint = Constraint(DATES, model.vocabulary, tokenization="canonical")
    assert generate(model, PROMPT, constraint, seed=1).forced.any()
    with pytest.raises(ArgumentError, match="the constraint's, 'canonical', got 'all'"):
        generate(model, PROMPT, constraint, tokenization="all")
    finished = generate(model, PROMPT, constraint, finish=True, max_tokens=30)
    assert DATES.matches(finished.text)
    with pytest.raises(LimitError):
        generate(model, PROMPT, constraint, finish=True, max_tokens=2)
    with pytest.raises(ArgumentError, match="heal=True does not apply"):
        generate(model, PROMPT, DATES, heal=True)
    with pytest.raises(ArgumentError, match="measure=True requires"):
        generate(model, PROMPT, DATES, measure=True)
