"""The parts of a sequence that a decoding rule applies to, and its exactness."""

from __future__ import annotations

from fractions import Fraction
from math import exp, inf

import numpy as np
import pytest

from formalm import Choice, Query, Regex, TableModel, Vocabulary, mass, sample, search
from formalm.query import Decoding

VOCABULARY = Vocabulary.from_tokens(
    [b"a", b"b", None],
    end_token_ids=[2],
    encode=lambda text: [b"ab".index(byte) for byte in text.encode()],
)
MODEL = TableModel(VOCABULARY, {}, default=[0.6, 0.3, 0.1])
GIVEN = {"given": Choice(["a", "b"]), "decoding": Decoding(top_k=1), "event": "token_prefix"}
PAIRS = Choice(["aa", "ab", "ba", "bb"])
#: Without renormalizing, a rule of one token leaves 0.6 of `a` and nothing of `b`.
JOINT = {
    "suffix": {"aa": 0.36, "ba": 0.18},
    "prefix": {"aa": 0.36, "ab": 0.18},
    "both": {"aa": 0.36},
}


@pytest.mark.parametrize("unique", ["tokens", "strings"])
@pytest.mark.parametrize("decoded", JOINT)
def test_search_applies_decoding_to_the_configured_parts(decoded: str, unique: str) -> None:
    query = Query(PAIRS, decoded=decoded, prefix_cost="joint", **GIVEN)
    hits = search(MODEL, query, unique=unique)
    assert {hit.text: exp(hit.logprob) for hit in hits} == pytest.approx(JOINT[decoded])


@pytest.mark.parametrize("decoded", ["prefix", "both"])
def test_mass_and_sample_apply_decoding_to_the_configured_parts(decoded: str) -> None:
    options = {**GIVEN, "decoded": decoded, "prefix_weights": "model"}
    found = mass(MODEL, Query(Choice(["ab", "bb"]), **options))
    assert (found.low, found.high) == pytest.approx((0.3, 0.3) if decoded == "prefix" else (0, 0))
    drawn = {one.text for one in sample(MODEL, Query(PAIRS, **options), n=60, seed=1)}
    assert drawn == set(JOINT[decoded])


@pytest.mark.parametrize("temperature", [1e-1, 1e-2, 1e-4, 1e-6, 1e-200, 5e-324])
def test_low_temperatures_lose_no_digits(temperature: float) -> None:
    row = np.log([0.5000001, 0.4999999, 1e-9])
    decoding = Decoding(temperature=temperature)
    found = decoding.distribution(row)
    gaps = [Fraction(float(value)) - Fraction(float(row[0])) for value in row]
    below = [float(max(gap / Fraction(temperature), Fraction(-(10**300)))) for gap in gaps]
    total = sum(exp(value) for value in below)
    expected = [value - np.log(total) if value > -1e300 else -inf for value in below]
    assert found == pytest.approx(expected, rel=1e-14, abs=1e-300)
    query = Query(Regex("[ab]{3}"), event="token_prefix", decoding=decoding)
    bounds = mass(MODEL, query)
    power = 1 / max(temperature, 1e-3)
    ends = 1 / (1 + 6**power + 3**power) if power < 300 else 0.0
    assert bounds.low <= bounds.high
    assert bounds.low == pytest.approx((1 - ends) ** 3, rel=1e-13)


def test_sequences_whose_end_token_is_cut_off_are_not_counted() -> None:
    vocabulary = Vocabulary.from_tokens([b"a", b"aa", None], end_token_ids=[2])
    table = {(0, 0): [0.3, 0.3, 0.4], (1,): [0.6, 0.3, 0.1]}
    model = TableModel(vocabulary, table, default=[0.5, 0.4, 0.1])
    query = Query(Regex("aa"), event="complete", decoding=Decoding(top_k=2))
    (hit,) = search(model, query, unique="strings")
    assert (hit.tokenizations, hit.token_ids) == (1, (0, 0))
    # The most probable sequence is so with its end.
    (hit,) = search(model, Query(Regex("aa"), event="complete"), unique="strings")
    assert (hit.tokenizations, hit.token_ids) == (2, (0, 0))
    assert exp(hit.logprob) == pytest.approx(0.5 * 0.5 * 0.4 + 0.4 * 0.1)
