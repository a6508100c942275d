"""Scores are sums over tokenizations, and a decoding rule leaves what it leaves."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formalm import ArgumentError, Limits, TableModel, Vocabulary, score
from formalm.execution.query_contexts import encodings
from formalm.query import Decoding

TOKENS = [b"a", b"b", b"ab", b"ba", b"aa", None]
VOCABULARY = Vocabulary.from_tokens(
    TOKENS, end_token_ids=[5], encode=lambda text: [int(c == "b") for c in text]
)


@given(
    st.integers(0, 10**6),
    st.text("ab", max_size=5),
    st.sampled_from(["token_prefix", "complete"]),
    st.sampled_from([Decoding(), Decoding(0.8, top_k=3), Decoding(top_k=1)]),
)
@settings(max_examples=60)
def test_a_score_is_its_definition(seed: int, text: str, event: str, rule: Decoding) -> None:
    model = TableModel.random(VOCABULARY, seed=seed, order=2)

    def logprob(way: list[int]) -> float:
        steps = [*way, 5] if event == "complete" else way
        rows = [
            rule.distribution(model.next_logprobs([steps[:n]])[0], renormalize=False)
            for n in range(len(steps))
        ]
        return float(sum(row[step] for row, step in zip(rows, steps, strict=True)))

    ways = encodings(text.encode(), VOCABULARY)
    totals = {tuple(way): logprob(way) for way in ways}
    (found,) = score(model, [text], event=event, decoding=rule)
    assert found.text == text
    assert found.token_ids == tuple(VOCABULARY.encode(text))
    canonical = totals[found.token_ids]
    assert found.logprob == canonical == -np.inf or math.isclose(
        found.logprob, canonical, abs_tol=1e-9
    )
    alive = {way: total for way, total in totals.items() if total > -np.inf}
    marginal = math.fsum(math.exp(total) for total in alive.values())
    assert math.exp(found.marginal.low) <= marginal * (1 + 1e-13)
    assert marginal <= math.exp(found.marginal.high) * (1 + 1e-13)
    assert math.exp(found.marginal.high) - math.exp(found.marginal.low) < 1e-12
    assert found.tokenizations == len(alive)
    assert found.possible == bool(alive)
    if alive:
        assert math.isclose(alive[found.witness], max(alive.values()), abs_tol=1e-9)
    else:
        assert found.witness is None


def test_several_texts_share_what_they_begin_with() -> None:
    model = TableModel.random(VOCABULARY, seed=3, order=9)
    together = score(model, ["ab", "abb", "", "b"], event="complete", prompt="a")
    for one in together:
        (alone,) = score(model, [one.text], event="complete", prompt="a")
        assert alone.logprob == one.logprob
        assert alone.marginal == one.marginal
        assert len(one.logprobs) == len(one.text) + 1
    assert score(model, []) == []


def test_limits_leave_a_gap_between_bounds() -> None:
    model = TableModel.random(VOCABULARY, seed=3, order=9)
    (exact,) = score(model, ["abababab"])
    (rough,) = score(model, ["abababab"], limits=Limits(forwards=6), batch_size=1)
    assert rough.truncated_by == "forwards"
    assert rough.marginal.low <= exact.marginal.low <= exact.marginal.high <= rough.marginal.high
    assert exact.marginal.high - exact.marginal.low < 1e-9


@pytest.mark.parametrize(
    ("texts", "options"),
    [
        ("ab", {}),
        ([3], {}),
        (["a"], {"event": "contains"}),
        (["a"], {"tolerance": 2}),
        (["a"], {"batch_size": 0}),
        (["a"], {"limits": Limits(hits=3)}),
        (["a"], {"renormalize": True}),
    ],
)
def test_wrong_arguments_are_refused(texts: object, options: dict) -> None:
    with pytest.raises(ArgumentError):
        score(TableModel.random(VOCABULARY, seed=3), texts, **options)
