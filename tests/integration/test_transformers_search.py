"""Batches, caches and budgets change the work of a search and never what it finds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from formalm import Limits, Query, Regex, from_transformers, mass, search
from tests.integration.transformers_models import VOCABULARY, tiny

torch = pytest.importorskip("torch", reason="these models are PyTorch's")
pytest.importorskip("transformers", reason="these models are transformers'")
torch.set_num_threads(1)

CLOSE = 1e-5
WORDS = Regex("[A-D]{1,3}( [AB]{1,2})?")


def listed(model: Any, merge: bool, batch_size: int, state_bytes: int | None) -> dict[Any, float]:
    found = search(
        model,
        Query(WORDS, event="token_prefix", unique="strings" if merge else "tokens"),
        prompt=[1, 2, 3],
        limits=Limits(hits=60, state_bytes=state_bytes),
        batch_size=batch_size,
    )
    hits = {hit.data if merge else hit.token_ids: hit.logprob for hit in found}
    assert len(hits) == 60
    values = np.array(list(hits.values()))
    assert np.all(np.diff(values) <= CLOSE)
    return hits


@pytest.mark.parametrize("merge", [False, True])
@pytest.mark.parametrize("name", ["gpt2", "llama", "mistral-window", "mamba"])
def test_the_order_is_the_same_but_for_ties(name: str, merge: bool) -> None:
    model = from_transformers(tiny(name), vocabulary=VOCABULARY)
    one = listed(model, merge, 1, None)
    last = min(one.values())
    for batch_size, state_bytes in ((16, None), (64, None), (16, 1), (5, 1 << 16)):
        other = listed(model, merge, batch_size, state_bytes)
        assert list(other.values()) == pytest.approx(list(one.values()), abs=CLOSE)
        for key in one.keys() | other.keys():
            # What only one of them has is tied with the last.
            assert one.get(key, last) == pytest.approx(other.get(key, last), abs=2 * CLOSE)


def test_masses_are_the_same() -> None:
    model = from_transformers(tiny("gpt2"), vocabulary=VOCABULARY)
    bounds = [
        mass(
            model,
            Query(WORDS, event="prefix"),
            prompt=[1, 2, 3],
            tolerance=0,
            batch_size=batch_size,
            limits=Limits(state_bytes=state_bytes),
        )
        for batch_size, state_bytes in ((1, None), (64, None), (16, 1))
    ]
    assert bounds[0].low > 0
    for other in bounds[1:]:
        assert (other.low, other.high) == pytest.approx((bounds[0].low, bounds[0].high), rel=CLOSE)
