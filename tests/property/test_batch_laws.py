"""The size of a batch changes the work and never the result."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from formalm import Query, TableModel, mass, sample, score, search
from formalm.languages import Language, Regex
from formalm.probability import mass_table
from tests.property.test_search_laws import LANGUAGES, MAX_TOKENS, models
from tests.unit.test_sample import LONGER

SIZES = (1, 16, 64)


@given(
    models(),
    st.sampled_from(LANGUAGES),
    st.sampled_from(["token_prefix", "complete"]),
    st.sampled_from(["tokens", "strings"]),
)
@settings(max_examples=40)
def test_searches(model: TableModel, language: Language, event: str, unique: str) -> None:
    query = Query(language, event=event, unique=unique, max_tokens=MAX_TOKENS)
    first, *others = (list(search(model, query, batch_size=size, tolerance=0)) for size in SIZES)
    for other in others:
        assert other == first
    # What may be missing by default, and no more.
    for size in SIZES:
        hits = {hit.text: hit.logprob for hit in search(model, query, batch_size=size)}
        expected = {hit.text: hit.logprob for hit in first}
        assert set(hits) == set(expected)
        assert all(-1.1e-6 < hits[text] - expected[text] < 1e-9 for text in hits)


@given(
    models(),
    st.sampled_from(LANGUAGES),
    st.sampled_from(["complete", "token_prefix", "prefix", "contains", "never"]),
)
@settings(max_examples=25)
def test_masses_and_draws(model: TableModel, language: Language, event: str) -> None:
    assume(event != "never" or not language.matches(""))  # then it always happens
    query = Query(language, event=event, max_tokens=3)
    found = [mass(model, query, tolerance=0, batch_size=size) for size in SIZES]
    assert [(one.low, one.high) for one in found] == [
        pytest.approx((found[0].low, found[0].high), abs=1e-14)
    ] * 3
    for target in ("posterior", "local", "without_replacement"):
        first, *others = (
            sample(model, query, n=5, target=target, seed=7, batch_size=size) for size in SIZES
        )
        assert all(other.draws == first.draws for other in others)


def test_tables_and_scores() -> None:
    model = TableModel.random(LONGER, seed=8, order=2)
    query = Query(Regex("(?P<x>a|b)(?P<y>ab|b)*"), event="complete", max_tokens=4)
    first, *others = (mass_table(model, query, tolerance=0, batch_size=size) for size in SIZES)
    for other in others:
        assert other.decided == pytest.approx(first.decided, abs=1e-14)
    one, *more = (score(model, ["abba", "ab"], batch_size=size) for size in SIZES)
    for other in more:
        for found, known in zip(other, one, strict=True):
            assert found.marginal == pytest.approx(known.marginal, abs=1e-14)
    uniform = replace(query, language=Regex("[ab]{1,3}"), max_tokens=None)
    first, *others = (
        sample(model, uniform, n=9, target="uniform", seed=2, batch_size=size) for size in SIZES
    )
    assert all(other.draws == first.draws for other in others)
